"""A lever's page offers the way back, by its address alone; and what the form leaves open follows other choices."""

from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from app.features.workbench.undo import MOST_CHARACTERS, replaced, undo_of
from tests.features.asking import SCENARIOS, address, items_of, json_of, page, twin_of
from tests.features.dom import Node

SHORT = {"model": "llama-3.1-70b"}


def undo_link(tree: Node) -> Node:
    return tree.one("a", **{"class": "button quiet undo"})


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_lever_can_be_taken_back(reader: TestClient, name: str) -> None:
    before = page(reader, address(SCENARIOS[name]))
    here = before.id("results")["data-address"]
    levers = [li.one("a") for li in before.all("li") if "data-state" in li.attributes]
    assert levers
    for lever in levers:
        there = page(reader, lever["href"])
        link = undo_link(there)
        assert link.text.startswith("Undo: back to ")
        if link["href"] != here:  # what that address shows is seen above
            assert page(reader, link["href"]).id("results")["data-address"] == here
        assert "undo" not in items_of(there.id("results")["data-address"])  # the address of the scenario itself
        assert "undo" not in items_of(twin_of(there))


def test_it_says_what_comes_back(reader: TestClient) -> None:
    tree = page(reader, address(kv="fp8", undo="kv=bf16"))
    assert undo_link(tree).text == "Undo: back to KV cache: bf16"
    for changed, undo, words in (
        ({"batch": "9"}, "batch=", "Concurrent requests: as many as fit"),
        ({"tp": "2"}, "count=1&tp=1", "Tensor parallelism: 1"),
        ({"eager": "1"}, "eager=0", "No captured CUDA graphs (eager): off"),
        ({"static": "1"}, "static=0", "Batches: continuous"),
        ({"pool": "40 GiB"}, "pool=", "what was measured"),
    ):
        assert undo_link(page(reader, address(changed, undo=undo))).text == f"Undo: back to {words}"


def test_it_outlives_a_change_of_units_and_no_other(reader: TestClient) -> None:
    tree = page(reader, address(kv="fp8", undo="kv=bf16"))
    toggle = tree.one(role="group", aria_label="Units of sizes")
    assert all(items_of(a["href"])["undo"] == "kv=bf16" for a in toggle.all("a"))
    assert "undo" not in [node["name"] for node in tree.id("scenario") if "name" in node.attributes]
    assert "Not read" not in tree.text


@pytest.mark.parametrize("text", ["", "nonsense=1", "kv=bf16&evil=1", "x" * (MOST_CHARACTERS + 1), "&" * 50])
def test_what_is_no_way_back_is_none(reader: TestClient, text: str) -> None:
    tree = page(reader, f"{address()}&undo={quote(text)}")
    assert not tree.all("a", **{"class": "button quiet undo"})


def test_what_someone_wrote_into_it_stays_text(reader: TestClient) -> None:
    tree = page(reader, f"{address()}&undo={quote('kv=<b>bold</b>')}")
    link = undo_link(tree)
    assert link.text == "Undo: back to KV cache: <b>bold</b>"
    assert link["href"].startswith("/?")
    page(reader, link["href"], 422)


def test_only_what_differs_is_remembered() -> None:
    before, after = [("tp", "1"), ("kv", "bf16"), ("batch", "")], [("tp", "1"), ("kv", "fp8"), ("batch", "9")]
    text = replaced(before, after)
    assert text == "kv=bf16&batch="
    back = undo_of(text, after)
    assert back is not None
    assert back.href == "/?tp=1&kv=bf16&batch="


def test_what_was_logged_does_not_outlive_a_change(reader: TestClient) -> None:
    tree = page(reader, address(SHORT, log_tokens="1000", activation="2 GiB"))
    for li in tree.all("li"):
        if "data-state" not in li.attributes:
            continue
        items = items_of(li.one("a")["href"])
        assert items["log_tokens"] == ""
        assert "log_tokens=1000" in items["undo"]


def test_an_engines_defaults_stand_empty_and_follow_the_engine(reader: TestClient) -> None:
    tree = page(reader, address())
    for name in ("util", "max_batched", "block", "count"):
        assert tree.id(f"f-{name}")["value"] == ""
        assert items_of(tree.id("results")["data-address"])[name] != ""  # the address has them all the same
    assert tree.id("f-prefix").one("option", selected="")["value"] == ""
    kept = {n["name"]: n["value"] for n in tree.id("scenario").all("input") if n.attributes.get("type") == "text"}
    other = json_of(reader, twin_of(page(reader, address({**kept, "engine": "sglang"}))))["scenario"]["engine"]
    assert other["memory_utilization"] not in (None, 0.9)
    assert other["block_size"] == 1


def test_a_setting_of_ones_own_stands_in_its_field(reader: TestClient) -> None:
    tree = page(reader, address(util="0.95", max_batched="4096", prefix="0", count="4", seen="84e9", pool="46.8GiB"))
    for name, value in {
        "util": "0.95",
        "max_batched": "4096",
        "count": "4",
        "seen": "84 GB",
        "pool": "46.8 GiB",
    }.items():
        assert tree.id(f"f-{name}")["value"] == value
    assert tree.id("f-prefix").one("option", selected="")["value"] == "0"
    for name in ("util", "seen", "count"):
        around = [
            d for d in tree.id("scenario").all("details") if any(n.attributes.get("id") == f"f-{name}" for n in d)
        ]
        assert all("open" in details.attributes for details in around)


def test_what_the_engine_works_with_is_told_beside_its_empty_fields(reader: TestClient) -> None:
    assert "share 0.9, 8,192 tokens a step" in page(reader, address()).id("engine-now").text
    assert "share 0.95" in page(reader, address(util="0.95")).id("engine-now").text
    assert "buffers for 8 sequences" in page(reader, address(max_seqs="8")).id("engine-now").text


def test_a_draft_model_is_chosen_from_the_catalog_or_brought(reader: TestClient) -> None:
    tree = page(reader, address(SHORT, draft="llama-3.2-1b", draft_tokens="3"))
    assert tree.id("f-draft").one("option", selected="")["value"] == "llama-3.2-1b"
    alone = json_of(reader, twin_of(page(reader, address(SHORT))))
    assert (
        json_of(reader, twin_of(tree))["memory"]["per_gpu"]["weights_bytes"]
        > alone["memory"]["per_gpu"]["weights_bytes"]
    )
    config = (
        '{"model_type":"llama","hidden_size":2048,"num_hidden_layers":16,"num_attention_heads":32,'
        '"num_key_value_heads":8,"intermediate_size":8192,"vocab_size":128256}'
    )
    own = page(reader, address(SHORT, draft="custom", draft_tokens="3", draft_config=config))
    assert own.id("f-draft").one("option", selected="")["value"] == "custom"
    assert own.id("f-draft_config").raw == config
