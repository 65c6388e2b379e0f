"""The editors: every catalog item goes through and comes out the same; what is wrong is told at its field."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.measure import Measures
from app.calc.memory.rank import RankMemory
from app.calc.model.architecture import LayerGroup, MultiTokenPrediction, SidePath
from app.calc.model.layers.registry import FEED_FORWARDS, MIXERS
from app.catalog.catalog import load_catalog
from app.catalog.models import spelled
from app.features.editors.labels import KINDS
from app.features.editors.reading import read_form, samples_of, start_from, workbench_items
from app.features.editors.tree import Tree, change, flat_specs, leaf, nest, settle, shape_specs, specs_of, spelling
from app.features.links.saving import MAX_QUERY
from app.scenario.answer import answer
from app.scenario.query import MAX_CONFIG
from app.scenario.scenario import Scenario
from app.web.query import answer_from
from tests.features.asking import PARTIAL, items_of, json_of, page, twin_of
from tests.features.dom import Node, parse

CATALOG = load_catalog()
SAMPLES = samples_of(CATALOG)
EDITOR, CARDS = "/models/custom", "/hardware/custom"
WHOLE = {**PARTIAL, "HX-Target": "div#editor"}
SOME = ("llama-3.1-8b", "deepseek-v3.2", "gemma-3n-e4b", "nemotron-h-8b", "minimax-m3", "kimi-linear-48b-a3b")


def flat(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, below in tree.items():
        here = f"{path}-{key}" if path else key
        if isinstance(below, dict):
            yield from flat(below, here)
        else:
            yield here, below


def through_the_form(tree: Tree) -> Tree:
    """What comes back of a form that shows the tree: boxes that are not ticked are not sent."""
    sent = nest([(name, text) for name, text in flat(tree) if text])
    settle(sent, SAMPLES)
    return sent


def sent_by(form: Node) -> dict[str, str]:
    """What a browser sends of a form as it stands."""
    sent: dict[str, str] = {}
    for node in form:
        name = node.attributes.get("name")
        if not name or node.tag == "button":
            continue
        if node.tag == "select":
            sent[name] = node.one("option", selected="")["value"]
        elif node.attributes.get("type") == "checkbox":
            sent |= {name: node["value"]} if "checked" in node.attributes else {}
        else:
            sent[name] = node.raw if node.tag == "textarea" else node.attributes.get("value", "")
    return sent


def numbers(measures: Measures) -> dict[str, Any]:
    """Everything but the ranks of the memory, whose models have names; of them what is computed."""
    held = measures.memory
    found = {field.name: getattr(held, field.name) for field in fields(held)}
    found = {name: value for name, value in found.items() if not isinstance(value, RankMemory)}
    found["ranks"] = [(rank.weights, rank.overheads, rank.pool, rank.plan) for rank in held.ranks]
    return found | {part.name: getattr(measures, part.name) for part in fields(measures) if part.name != "memory"}


@pytest.mark.parametrize("id_", CATALOG.models)
def test_every_model_comes_out_as_it_went_in(id_: str) -> None:
    begun = start_from([("from", id_)], CATALOG)
    read = read_form(through_the_form(begun.tree), "Copy")
    assert read.errors == {}
    items = workbench_items("Copy", json.dumps(read.document), leaf(begun.tree, "w"), begun.carried)
    ours = answer_from(items, CATALOG).evaluation
    catalog = answer(
        Scenario.model_validate(
            {
                "model": {"id": id_},
                "hardware": {"id": "h100-sxm-80gb"},
                "precision": {"weights": leaf(begun.tree, "w")},
            }
        ),
        CATALOG,
    ).evaluation
    assert ours.measures.memory.per_gpu.weights_bytes == catalog.measures.memory.per_gpu.weights_bytes
    assert ours.measures.memory.kv_bytes_per_sequence == catalog.measures.memory.kv_bytes_per_sequence
    assert numbers(ours.measures) == numbers(catalog.measures)


@pytest.mark.parametrize("id_", SOME)
def test_the_page_shows_the_model_and_leads_to_the_workbench(reader: TestClient, id_: str) -> None:
    tree = page(reader, f"{EDITOR}?from={id_}")
    link = next(a["href"] for a in tree.all("a") if a.text == "Use it in the workbench")
    items = items_of(link)
    assert items["model"] == "custom"
    document = json_of(reader, twin_of(tree))
    theirs = json_of(reader, f"/api/v1/evaluate?{urlencode({'model': id_, 'hw': items['hw'], 'w': items['w']})}")
    for key in ("kv_bytes_per_sequence", "needed_bytes"):
        assert document["memory"][key] == theirs["memory"][key]
    assert page(reader, link).id("verdict").text
    # What the form sends back as it stands is the same model.
    again = reader.post(EDITOR, data=sent_by(tree.id("description")))
    assert again.status_code == 200
    assert twin_of(parse(again.text)) == twin_of(tree)


def test_what_the_workbench_shows_can_be_edited(reader: TestClient) -> None:
    tree = page(reader, f"{EDITOR}?model=qwen3-8b&hw=rtx-4090&prompt=4000&batch=2&w=int4")
    items = items_of(next(a["href"] for a in tree.all("a") if a.text == "Use it in the workbench"))
    assert (items["hw"], items["prompt"], items["batch"], items["w"]) == ("rtx-4090", "4000", "2", "int4")
    again = page(reader, f"{EDITOR}?{urlencode(items)}")
    assert twin_of(again) == twin_of(tree)


@pytest.mark.parametrize("query", ["from=no-such-model", "from=", "from=../etc"])
def test_an_unknown_start_is_not_found(reader: TestClient, query: str) -> None:
    page(reader, f"{EDITOR}?{query}", 404)
    page(reader, f"{CARDS}?{query}", 404)


@pytest.mark.parametrize("query", ["arch={", "arch=[]", 'arch={"layers":[]}', "config={}", "model=nothing"])
def test_an_address_that_cannot_be_read_is_told(reader: TestClient, query: str) -> None:
    tree = page(reader, f"{EDITOR}?{query}", 422)
    assert "The address could not be read" in tree.text


def edited(reader: TestClient, status: int = 200, **changes: str) -> Node:
    sent = sent_by(page(reader, f"{EDITOR}?from=gemma-3-27b").id("description"))
    answered = reader.post(EDITOR, data={**sent, **{name.replace("__", "-"): text for name, text in changes.items()}})
    assert answered.status_code == status, answered.text[:500]
    return parse(answered.text)


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("hidden_size", ""),
        ("hidden_size", "0"),
        ("hidden_size", "-1"),
        ("hidden_size", "1e3"),
        ("hidden_size", "٣"),
        ("hidden_size", "9" * 40),
        ("hidden_size", "1" * 16),
        ("layers__0__count", "many"),
        ("layers__0__mixer__n_heads", ""),
        ("layers__0__mixer__qk_norm", "sideways"),
        ("layers__1__feed_forwards__0__intermediate_size", "1.5"),
        ("layers__0__mixer__kind", "telepathy"),
        ("order", "abc"),
        ("order", "a"),
        ("order", "A*3"),
        ("order", "a" * 13_000),
        ("w", "bf17"),
        ("model_name", "n" * 121),
    ],
    ids=lambda value: value[:24],
)
def test_bad_input_is_told_at_its_field_and_kept(reader: TestClient, field: str, text: str) -> None:
    tree = edited(reader, 422, **{field: text})
    path = field.replace("__", "-")
    assert tree.id(f"msg-{path}").text
    assert tree.id(f"f-{path}")["aria-invalid"] == "true"
    kept = sent_by(tree.id("description"))[path]
    assert kept == text or (len(text) > 400 and text.startswith(kept))


def test_everything_wrong_is_told_at_once(reader: TestClient) -> None:
    tree = edited(reader, 422, hidden_size="x", vocab_size="", layers__0__count="0")
    told = [n["id"] for n in tree if n.attributes.get("id", "").startswith("msg-") and n.text]
    assert told == ["msg-hidden_size", "msg-vocab_size", "msg-layers-0-count"]


def test_what_was_typed_comes_back_as_text(reader: TestClient) -> None:
    hostile = '"><script>alert(1)</script>'
    sent = sent_by(page(reader, EDITOR).id("description"))
    for name in sent:
        answered = reader.post(EDITOR, data={**sent, name: hostile})
        assert "<script>alert" not in answered.text, name


def test_groups_come_and_go_with_their_letters(reader: TestClient) -> None:
    more = edited(reader, do="add:layers")
    assert more.id("f-order")["value"] == "aaaaab*10 aac"
    assert more.id("f-layers-2-count")["value"] == "1"
    sent = sent_by(more.id("description"))
    fewer = parse(reader.post(EDITOR, data={**sent, "do": "remove:layers-0"}).text)
    assert fewer.id("f-order")["value"] == "a*10 b"
    assert len(fewer.all("section", **{"class": "panel group"})) == 2


@pytest.mark.parametrize("do", ["remove:layers-99", "remove:layers", "add:order", "remove:mtp-layers-0", "add:" * 50])
def test_a_change_that_there_is_not_changes_nothing(reader: TestClient, do: str) -> None:
    assert twin_of(edited(reader, do=do)) == twin_of(edited(reader))


@pytest.mark.parametrize("kind", [*MIXERS, "none"])
def test_a_chosen_kind_begins_filled_in(reader: TestClient, kind: str) -> None:
    tree = edited(reader, layers__0__mixer__kind=kind)
    assert sent_by(tree.id("description"))["layers-0-mixer-kind"] == kind
    assert twin_of(tree)


def test_multi_token_prediction_begins_as_the_last_layer(reader: TestClient) -> None:
    tree = edited(reader, 422, mtp__there="1")
    assert tree.id("msg-mtp-joint_params").text
    assert tree.id("f-mtp-layers-0-count")["value"] == "1"


def test_the_fragment_brings_numbers_or_messages(reader: TestClient) -> None:
    sent = sent_by(page(reader, EDITOR).id("description"))
    right = reader.post(EDITOR, data=sent, headers=PARTIAL)
    assert right.status_code == 200
    assert "<html" not in right.text
    assert right.headers["hx-replace-url"].startswith(f"{EDITOR}?")
    assert parse(right.text).id("numbers-title").text
    wrong = reader.post(EDITOR, data={**sent, "hidden_size": "x"}, headers=PARTIAL)
    assert wrong.status_code == 422
    assert "hx-replace-url" not in wrong.headers
    assert parse(wrong.text).id("msg-hidden_size").text
    whole = reader.post(EDITOR, data={**sent, "do": "add:layers"}, headers=WHOLE)
    assert parse(whole.text).id("f-layers-1-count")["value"] == "1"


def test_a_description_too_long_for_a_link_says_so(reader: TestClient) -> None:
    for letter in ('"', "字"):
        rows = {
            f"{owner}side_paths__{n}__{field}": text
            for owner in ("", "layers__0__", "layers__1__")
            for n in range(12)
            for field, text in (("name", letter * 400), ("params", "1"))
        }
        tree = edited(reader, 200, **rows)
        assert "too long for a link" in tree.text
        assert f"{MAX_CONFIG:,}" in tree.text or f"{MAX_QUERY:,}" in tree.text
        assert not [a for a in tree.all("a") if a.text == "Use it in the workbench"]
        assert tree.id("f-side_paths-0-name")["value"] == letter * 400


def test_no_form_makes_it_fail(reader: TestClient) -> None:
    sent = sent_by(page(reader, EDITOR).id("description"))
    odd = [
        {"layers": "x"},
        {"layers-0": "x", "layers-0-mixer": "y"},
        {f"layers-{n}-count": "1" for n in range(200)},
        {"layers-0-" * 30 + "x": "1"},
        {"-" * 40: "1"},
        {"mtp": "1"},
        {"mtp-there": "1", "mtp-layers-0-count": "1"},
        {"layers-0-count": "10001"},
        {"layers-0-count": "9999", "hidden_size": "1" * 15, "vocab_size": "1" * 15},
        {"side_paths-0-name": "x"},
        {"side_paths-0-params": "5"},
        {"layers-0-feed_forwards-3-kind": "experts"},
        {"carried": "a=b&" * 500},
        {"carried": "hw=custom&hw=custom&" + "%00" * 50},
        {f"x{n}": "1" for n in range(3_000)},
    ]
    for changes in odd:
        for base in (sent, {}):
            answered = reader.post(EDITOR, data={**base, **changes})
            assert answered.status_code in (200, 422), (changes, answered.text[:300])
    assert reader.post(EDITOR, data={f"x{n}": "1" for n in range(5_000)}).status_code == 400
    assert reader.post(EDITOR, files={"hidden_size": ("a", b"1")}).status_code == 422


@given(st.lists(st.integers(0, 25), max_size=60))
@settings(derandomize=True, deadline=None, max_examples=100)
def test_an_order_reads_back_from_its_spelling(order: list[int]) -> None:
    assert list(spelled(spelling(order))) == order


@given(st.text(max_size=12), st.sampled_from([name for name, _ in flat(start_from([], CATALOG).tree)]))
@settings(derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_in_any_field_is_read_or_told(text: str, name: str) -> None:
    sent = nest([*flat(start_from([], CATALOG).tree), (name, text)])
    settle(sent, SAMPLES)
    change(sent, text)
    read = read_form(sent, "x")
    assert (read.architecture is None) == bool(read.errors)


def test_every_field_and_kind_has_words() -> None:
    assert set(KINDS) == {*MIXERS, *FEED_FORWARDS}
    kinds = (*MIXERS.values(), *FEED_FORWARDS.values(), LayerGroup, SidePath, MultiTokenPrediction)
    for kind in kinds:
        assert all(spec.label for spec in specs_of(kind))
        assert all(spec.label for _, spec in flat_specs(kind))
    assert all(spec.label for spec in shape_specs())


@pytest.mark.parametrize("id_", [id_ for id_, device in CATALOG.devices.items() if device.peak_flops_per_s])
def test_every_accelerator_comes_out_as_it_went_in(reader: TestClient, id_: str) -> None:
    tree = page(reader, f"{CARDS}?from={id_}")
    items = items_of(next(a["href"] for a in tree.all("a") if a.text == "Use it in the workbench"))
    assert items["hw"] == "custom"
    device = CATALOG.devices[id_]
    assert float(items["hw_mem"]) * 1e9 == pytest.approx(device.memory_marketed_bytes, rel=1e-12)
    assert float(items["hw_bw"]) * 1e9 == pytest.approx(device.bandwidth_bytes_per_s, rel=1e-12)
    rates = {dtype: float(items[f"hw_{dtype}"]) * 1e12 for dtype in Dtype if f"hw_{dtype}" in items}
    assert rates == pytest.approx(dict(device.peak_flops_per_s), rel=1e-12)
    if device.memory_reported_bytes is not None:
        assert int(items["hw_mib"]) * 2**20 == pytest.approx(device.memory_reported_bytes, abs=2**19)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"hw_mem": ""}, "hw_mem"),
        ({"hw_bw": "fast"}, "hw_bw"),
        ({"hw_bf16": "-1"}, "hw_bf16"),
        ({"hw_mib": "1.5"}, "hw_mib"),
    ],
)
def test_a_wrong_figure_is_told_at_its_field(reader: TestClient, changes: Mapping[str, str], name: str) -> None:
    sent = sent_by(page(reader, CARDS).id("description"))
    tree = page(reader, f"{CARDS}?{urlencode({**sent, **changes})}", 422)
    assert tree.id(f"msg-{name}").text
    assert tree.id(f"f-{name}")["value"] == changes[name]


def test_a_card_carries_the_model_along(reader: TestClient) -> None:
    tree = page(reader, f"{CARDS}?model=qwen3-8b&prompt=77&w=fp8&hw=rtx-4090&from=rtx-4090")
    items = dict(
        parse_qsl(urlsplit(next(a["href"] for a in tree.all("a") if "workbench" in a.text and "?" in a["href"])).query)
    )
    assert (items["model"], items["prompt"], items["w"], items["hw"]) == ("qwen3-8b", "77", "fp8", "custom")


def test_the_formats_offered_are_all_there_are(reader: TestClient) -> None:
    offered = [option["value"] for option in page(reader, EDITOR).id("f-w").all("option")]
    assert sorted(offered) == sorted(WeightFormat)


@pytest.mark.parametrize("id_", ["deepseek-v3", "glm-4.5", "llama-3.1-8b"])
def test_an_unchanged_copy_shows_the_numbers_of_its_source(reader: TestClient, id_: str) -> None:
    tree = page(reader, f"{EDITOR}?from={id_}")
    known = json_of(reader, f"/api/v1/models/{id_}")
    assert f"{known['params']:,}" in tree.text
    if known["mtp_params"]:
        assert f"{known['mtp_params']:,} of multi-token prediction, not loaded" in tree.text
