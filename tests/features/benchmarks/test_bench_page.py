"""The benchmark page: results over the prediction, what was typed is kept, a fit goes on by link or is kept."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from tests.features.asking import BASE, items_of, page
from tests.features.benchmarks.files import contents
from tests.features.dom import Node, parse

BENCHMARKS, CALIBRATIONS = "/benchmarks", "/calibrations"
HOSTILE = '"><script>alert(1)</script>'
SWEEP = contents("vllm_serve_appended.jsonl").decode()
FIRST = SWEEP.partition("\n")[0] + "\n"
STACK = {**BASE, "engine": "vllm", "w": "bf16", "tp": "1"}
USE = "Use this calibration in the workbench"


def post(client: TestClient, text: str, files: Sequence[tuple[str, bytes]] = (), **more: str) -> Response:
    uploads = [("file", (name, body)) for name, body in files]
    return client.post(BENCHMARKS, data={**STACK, "text": text, **more}, files=uploads or None)


def laid(client: TestClient, text: str = SWEEP, status: int = 200, **more: Any) -> Node:
    answer = post(client, text, **more)
    assert answer.status_code == status, answer.text[:800]
    return parse(answer.text)


@pytest.fixture(scope="module")
def swept(reader: TestClient) -> Node:
    """The page of the sweep, asked for once."""
    return laid(reader, name="H100 sweep", prompt="777")


def link_to_workbench(tree: Node) -> str:
    return next(a["href"] for a in tree.all("a") if a.text == USE)


def test_the_page_asks_for_results_and_says_how_they_are_made(reader: TestClient) -> None:
    tree = page(reader, BENCHMARKS)
    assert tree.id("bench")["enctype"] == "multipart/form-data"
    assert not tree.id("msg-text").text
    assert tree.id("f-name")["value"] == "My benchmark"
    for words in ("--save-result", "--output-file", "benchmarks.json", "profile_export_*.json", "llama-bench -o json"):
        assert words in tree.text


def test_an_address_fills_the_form_and_what_is_not_shown_goes_along(reader: TestClient) -> None:
    carried = {"prompt": "777", "util": "0.8", "batch": ""}
    old = {"cal_name": "Old", "cal_decode": "2", "cal_decode_n": "3"}
    asked = {"model": "qwen3-32b", "hw": "h200-sxm", "tp": "2", **carried, **old}
    tree = page(reader, f"{BENCHMARKS}?{urlencode(asked)}")
    hidden = {node["name"]: node["value"] for node in tree.id("bench").all("input", type="hidden")}
    assert hidden | carried == hidden
    assert not hidden.keys() & old.keys()
    assert tree.id("f-tp")["value"] == "2"


def test_a_sweep_is_drawn_told_and_fitted(swept: Node) -> None:
    tree = swept
    assert "8 runs of vllm bench serve" in tree.id("fit-title").text
    told = tree.id("fit").text
    assert "Decode times are 1.29 times those of the default (8 points)" in told
    assert "had not seen" in told
    for figure in ("tpot_s", "ttft_s", "output_tokens_per_s"):
        assert tree.id(f"chart-bench-{figure}").text
    rows = tree.one(role="region", aria_label="Every run beside its prediction, table").table()
    assert len(rows) == 8 * 4
    assert {row["Interval"] for row in rows} == {"inside"}
    assert rows[1]["Figure"] == "Time per output token (TPOT)"
    assert rows[1]["Ratio"].startswith("× 1.2")
    assert rows[1]["With the fit"].startswith("× 0.9") or rows[1]["With the fit"].startswith("× 1")


def test_the_calibration_goes_on_by_value(reader: TestClient, swept: Node) -> None:
    href = link_to_workbench(swept)
    items = items_of(href)
    assert (items["cal_name"], items["prompt"]) == ("H100 sweep", "777")
    assert float(items["cal_decode"]) == pytest.approx(1.29, abs=0.02)
    shown = page(reader, href)
    assert "H100 sweep" in shown.text


def test_results_and_name_stay_in_the_form(swept: Node) -> None:
    assert swept.id("f-text").raw.strip() == SWEEP.strip()
    assert swept.id("f-name")["value"] == "H100 sweep"
    assert swept.id("f-engine").one("option", selected="")["value"] == "vllm"


def test_several_files_are_one_benchmark(reader: TestClient) -> None:
    files = [("a.json", contents("vllm_serve.json")), ("b.json", contents("aiperf.json"))]
    answer = post(reader, "old", files)
    assert answer.status_code == 200
    tree = parse(answer.text)
    assert "2 runs of vllm bench serve, AIPerf" in tree.id("fit-title").text
    assert "aiperf_version" in tree.id("f-text").raw


def test_tables_of_several_runs_are_one_benchmark_too(reader: TestClient) -> None:
    files = [("a.csv", contents("aiperf.csv")), ("b.csv", contents("genai_perf.csv"))]
    assert "2 runs of AIPerf, GenAI-Perf" in parse(post(reader, "", files).text).id("fit-title").text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Paste the results"),
        ("   ", "Paste the results"),
        ("hello", "no file of results"),
        (HOSTILE, "no file of results"),
        ('{"<script>alert(1)</script>": 1}', "keys seen"),
        ("<html><body>404", "web page"),
        ('{"request_throughput": 1, "total_token_throughput": 1, "completed": 1, "mean_ttft_ms": NaN}', "is NaN"),
        (SWEEP[:500], "cut off"),
        ("[" * 5000 + "]" * 5000, "nested deeper"),
    ],
    ids=range(9),
)
def test_what_is_not_read_is_told_at_the_field_and_kept(reader: TestClient, text: str, words: str) -> None:
    tree = laid(reader, text, 422)
    assert words in tree.id("msg-text").text
    assert tree.id("f-text").raw.strip() == text.strip()
    assert not tree.all("script", text="alert(1)")


def test_a_file_that_is_no_text_is_refused(reader: TestClient) -> None:
    answer = post(reader, "", [("a.gz", b"\x1f\x8b\x08\x00\xff\xfe")])
    assert answer.status_code == 422
    assert parse(answer.text).id("msg-text").text


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("model", "no-such", "no model"),
        ("hw", "no-such", "no accelerator"),
        ("tp", "x", "whole number"),
        ("tp", "3", "divide"),
    ],
)
def test_a_wrong_stack_is_told_at_its_field_and_the_results_are_kept(
    reader: TestClient, field: str, value: str, words: str
) -> None:
    tree = laid(reader, status=422, **{field: value})
    assert words in tree.id(f"msg-{field}").text
    assert tree.id("f-text").raw.strip() == SWEEP.strip()


def test_a_wrong_name_is_told_at_its_field(reader: TestClient) -> None:
    assert laid(reader, status=422, name="x" * 200).id("msg-name").text


def test_runs_that_cannot_be_asked_are_named(reader: TestClient) -> None:
    text = FIRST + '{"request_throughput": 0, "total_token_throughput": 0, "completed": 0}\n'
    tree = laid(reader, text)
    assert "Run 2: no request was completed." in tree.text


def test_what_is_faster_than_can_be_is_flagged(reader: TestClient) -> None:
    tree = laid(reader, FIRST, hw="rtx-4090", w="fp16")
    assert "better than any software could be" in tree.text
    assert "beats the ceiling" in tree.text


def test_results_without_times_give_charts_but_no_fit(reader: TestClient) -> None:
    run = (
        '{"request_throughput": 2, "total_token_throughput": 2560, "output_throughput": 512, "completed": 64,'
        ' "max_concurrency": 8, "total_input_tokens": 65536, "total_output_tokens": 16384}'
    )
    tree = laid(reader, run)
    assert "nothing can be fitted" in tree.id("fit").text
    assert not [a for a in tree.all("a") if a.text == USE]


def test_the_page_is_at_hand_in_the_bar(reader: TestClient) -> None:
    tree = page(reader, BENCHMARKS)
    assert [a["aria-current"] for a in tree.all("a") if a.text == "Benchmarks"] == ["page"]


@pytest.fixture
def kept(client: TestClient, swept: Node) -> Response:
    """A calibration that was kept, as the browser is led to it."""
    query = swept.one("input", name="query")["value"]
    made = client.post(CALIBRATIONS, data={"query": query, "title": "Night <b>run</b>", "expires_in_days": "7"})
    assert made.status_code == 200, made.text[:500]
    assert made.history[0].status_code == 303
    return made


def test_a_kept_calibration_shows_its_token_once_leads_on_and_is_revoked_with_it(
    client: TestClient, kept: Response
) -> None:
    path, tree = kept.url.path, parse(kept.text)
    token = tree.id("edit-token").text
    assert "Night <b>run</b>" in tree.text
    assert kept.headers["cache-control"] == "private, no-store"
    again = page(client, path)
    assert not again.all(id="edit-token")
    href = next(a["href"] for a in again.all("a") if a.text == "Use it in the workbench")
    assert items_of(href)["cal_name"] == "Night <b>run</b>"
    assert "llama-3.1-8b on h100-sxm-80gb, vllm" in again.text
    assert "Night <b>run</b>" in page(client, href).text
    assert client.post(f"{path}/revoke", data={"edit_token": "wrong"}).status_code == 403
    assert client.get(path).status_code == 200
    assert client.post(f"{path}/revoke", data={"edit_token": token}).status_code == 200
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("model=llama-3.1-8b&hw=h100-sxm-80gb", "No calibration"),
        ("model=no-such&hw=l4&cal_name=a&cal_decode=1&cal_decode_n=1", "Unknown model"),
        ("model=llama-3.1-8b&hw=l4&cal_name=a&cal_decode=nan&cal_decode_n=1", "No number"),
        ("model=llama-3.1-8b&hw=l4&cal_name=a&cal_decode=99&cal_decode_n=1", "Too slow"),
        ("model=llama-3.1-8b&hw=l4&cal_name=a&cal_decode=1.2&cal_decode_n=1", " "),
        ("", "Empty"),
        ("x" * 40_000, "Long"),
    ],
    ids=range(7),
)
def test_what_is_no_calibration_is_not_kept(reader: TestClient, query: str, title: str) -> None:
    assert reader.post(CALIBRATIONS, data={"query": query, "title": title}).status_code == 422


@pytest.mark.parametrize("days", ["soon", "-1", "0", "99999", "1e2"])
def test_an_expiry_that_is_none_is_refused(reader: TestClient, days: str) -> None:
    query = "model=llama-3.1-8b&hw=l4&cal_name=a&cal_decode=1.2&cal_decode_n=1"
    assert reader.post(CALIBRATIONS, data={"query": query, "title": "A", "expires_in_days": days}).status_code == 422


def test_another_model_than_the_chosen_one_is_told_before_the_numbers(reader: TestClient) -> None:
    told = laid(reader, FIRST, model="qwen3-8b").id("fit").text
    assert "The runs name meta-llama/Llama-3.1-8B-Instruct, and Qwen3-8B is chosen" in told
    assert told.index("is chosen") < told.index("Decode times")


def test_a_link_that_never_was_is_not_found(reader: TestClient) -> None:
    assert reader.get(f"{CALIBRATIONS}/aaaaaaaaaaaaaaaaaaaaaaaaaa").status_code == 404
