"""The paste and launch pages: what is read is shown, what is missing is asked for, what was typed is kept."""

import pytest
from starlette.testclient import TestClient

from tests.engine_io.logs.logs import EVERY_LOG, VLLM_CONSUMED
from tests.features.asking import BASE, items_of, page
from tests.features.dom import Node, parse

HOSTILE = '"><script>alert(1)</script>'


def paste(client: TestClient, text: str, status: int = 200, **more: str) -> Node:
    answer = client.post("/paste", data={"text": text, **more})
    assert answer.status_code == status, answer.text[:500]
    return parse(answer.text)


def test_the_empty_form_asks_nothing(reader: TestClient) -> None:
    tree = page(reader, "/paste")
    assert not tree.id("msg-text").text
    assert tree.id("paste")["enctype"] == "multipart/form-data"


@pytest.mark.parametrize(("engine", "log"), EVERY_LOG)
def test_a_log_is_shown_as_read_and_stays_in_the_form(reader: TestClient, engine: str, log: str) -> None:
    tree = paste(reader, log)
    assert engine
    assert tree.id("told-title").text.startswith("A start-up log of ")
    assert tree.id("f-text").raw.strip() == log.strip()


def test_a_whole_log_is_put_beside_its_prediction_and_leads_on(reader: TestClient) -> None:
    tree = paste(reader, VLLM_CONSUMED, hw="h100-sxm-80gb")
    rows = {row["Figure"]: row for row in tree.one(role="region", aria_label="Logged beside predicted, table").table()}
    assert rows["Weights"]["Logged"].endswith(" GiB")
    assert rows["Cache pool"]["Difference"].endswith(" %")
    link = next(a["href"] for a in tree.all("a") if a.text == "Open in the workbench")
    assert items_of(link)["pool"]
    shown = page(reader, link)
    assert shown.id("verdict-title").text


def test_what_is_missing_is_asked_for_at_its_field(reader: TestClient) -> None:
    tree = paste(reader, "vllm serve meta-llama/Llama-3.1-8B --swap-space 4")
    assert "card" in tree.id("msg-hw").text
    assert not tree.id("msg-model").text
    assert "--swap-space" in tree.text
    chosen = paste(reader, "vllm serve meta-llama/Llama-3.1-8B", hw="l40s")
    assert chosen.id("verdict-title").text


@pytest.mark.parametrize("text", ["", "   ", "hello", HOSTILE, "\x00", "vllm serve '", "x" * (2**20 + 1)])
def test_what_is_not_read_is_told_at_the_field_and_kept(reader: TestClient, text: str) -> None:
    tree = paste(reader, text, 422)
    assert tree.id("msg-text").text
    assert not tree.all("script", text="alert(1)")


def test_a_file_takes_the_place_of_the_text(reader: TestClient) -> None:
    answer = reader.post("/paste", data={"text": "old"}, files={"file": ("start.log", VLLM_CONSUMED.encode())})
    assert answer.status_code == 200
    assert "A start-up log of" in answer.text


def test_the_launch_page_has_every_variant_and_a_way_back(reader: TestClient) -> None:
    query = "&".join(f"{name}={value}" for name, value in BASE.items())
    tree = page(reader, f"/launch?{query}")
    for variant in ("shell", "container", "kubernetes"):
        assert tree.id(f"launch-{variant}").text
    assert "vllm serve" in tree.text
    back = next(a["href"] for a in tree.all("a") if a.text == "Workbench" and "?" in a["href"])
    assert items_of(back)["model"] == BASE["model"]


def test_an_engine_without_a_command_says_why_on_the_page(reader: TestClient) -> None:
    query = "&".join(f"{name}={value}" for name, value in {**BASE, "engine": "deepinfer"}.items())
    assert "publishes no command" in page(reader, f"/launch?{query}").text


def test_a_wrong_scenario_has_no_launch_page(reader: TestClient) -> None:
    assert reader.get("/launch?model=nobody&hw=l40s").status_code == 422
