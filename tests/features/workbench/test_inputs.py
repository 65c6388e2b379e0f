"""What is not right is told at its field and keeps what was typed; what is not known is mentioned and left out."""

import json
from collections.abc import Mapping
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from tests.features.asking import OWN_CARD, address, json_of, page, partial, twin_of
from tests.features.dom import Node, parse

HOSTILE = '"><script>alert(1)</script>'
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
}
WRONG = [
    ({"prompt": "many"}, "prompt"),
    ({"prompt": "0"}, "prompt"),
    ({"prompt": "-5"}, "prompt"),
    ({"prompt": "1.5"}, "prompt"),
    ({"prompt": "1e3"}, "prompt"),
    ({"prompt": "9" * 40}, "prompt"),
    ({"prompt": "٣"}, "prompt"),
    ({"out": "100000001"}, "out"),
    ({"batch": "0"}, "batch"),
    ({"batch": "NaN"}, "batch"),
    ({"hit": "1.01"}, "hit"),
    ({"hit": "nan"}, "hit"),
    ({"hit": "inf"}, "hit"),
    ({"util": "0"}, "util"),
    ({"util": "1e999"}, "util"),
    ({"util": "0x1"}, "util"),
    ({"ttft": "0"}, "ttft"),
    ({"tpot": "-1"}, "tpot"),
    ({"pool": "1e16"}, "pool"),
    ({"max_seqs": "0"}, "max_seqs"),
    ({"w": "bf17"}, "w"),
    ({"kv": "tf32"}, "kv"),
    ({"compute": "fp4"}, "compute"),
    ({"engine": "none-such"}, "engine"),
    ({"basis": "dreamt"}, "basis"),
    ({"model": "llama-9"}, "model"),
    ({"model": "../etc"}, "model"),
    ({"hw": "h100"}, "hw"),
    ({"hw": "gb300-ws"}, "compute"),
    ({"tp": "3"}, "tp"),
    ({"tp": "0"}, "tp"),
    ({"mtp": "1"}, "mtp"),
    ({"count": "7", "tp": "2"}, "count"),
    ({"block": "0"}, "block"),
    ({"pp": "33"}, "pp"),
    ({"ep": "2"}, "ep"),
    ({"dp": "0"}, "dp"),
    ({"dcp": "3", "tp": "2"}, "dcp"),
    ({"max_len": "long"}, "max_len"),
    ({"max_batched": "0"}, "max_batched"),
    ({"prefix": "maybe"}, "prefix"),
    ({"engine_version": "?"}, "engine_version"),
    ({"engine": "llm-d", "under": "llama.cpp"}, "under"),
    ({"draft_tokens": "65"}, "draft_tokens"),
    ({"draft": "llama-3.2-1b"}, "draft_tokens"),
    ({"draft": "no-such", "draft_tokens": "3"}, "draft"),
    ({"draft": "custom", "draft_tokens": "3"}, "draft_config"),
    ({"draft": "custom", "draft_tokens": "3", "draft_config": "{"}, "draft_config"),
    ({"seen": "80 PiB"}, "seen"),
    ({"seen": "0"}, "seen"),
    ({"loaded": "GiB"}, "loaded"),
    ({"activation": "-1 GiB"}, "activation"),
    ({"non_framework": "1,5 GiB"}, "non_framework"),
    ({"graphs": "some"}, "graphs"),
    ({"pool": "1 kibi"}, "pool"),
    ({"log_tokens": "1.5"}, "log_tokens"),
    ({"log_blocks": "-1"}, "log_blocks"),
    ({"log_concurrency": "x"}, "log_concurrency"),
    ({"v": "2"}, "v"),
    ({"hw": "custom"}, "hw_mem"),
    ({"hw": "custom"}, "hw_bf16"),
    ({**OWN_CARD, "hw_bw": ""}, "hw_bw"),
    ({**OWN_CARD, "hw_bf16": ""}, "hw_bf16"),
    ({**OWN_CARD, "hw_mem": "0"}, "hw_mem"),
    ({**OWN_CARD, "hw_name": "\u202e"}, "hw_name"),
    ({**OWN_CARD, "hw_fp8": "1e10"}, "hw_fp8"),
    ({"model": "custom"}, "config"),
    ({"model": "custom", "config": "{"}, "config"),
    ({"model": "custom", "config": "[]"}, "config"),
    ({"model": "custom", "config": "{}"}, "config"),
    ({"model": "custom", "config": '{"model_type": "mamba"}'}, "config"),
    ({"model": "custom", "config": '{"a": NaN}'}, "config"),
    ({"model": "custom", "config": json.dumps({**CONFIG, "num_experts": 8})}, "config"),
    ({"model": "custom", "config": json.dumps(CONFIG), "quant": "{"}, "quant"),
    ({"model": "custom", "config": json.dumps(CONFIG), "read_as": "no-such"}, "read_as"),
    ({"model": "custom", "arch": '{"layers": []}'}, "arch"),
]


def typed(tree: Node, name: str) -> str:
    """What stands in a field of the page."""
    field = next(n for n in tree.id("scenario") if n.attributes.get("name") == name)
    if field.tag == "select":
        return field.one("option", selected="")["value"]
    return field.raw if field.tag == "textarea" else field["value"]


@pytest.mark.parametrize(("changes", "name"), WRONG, ids=lambda v: str(v)[:40])
def test_a_wrong_input_is_told_at_its_field(reader: TestClient, changes: Mapping[str, str], name: str) -> None:
    tree = page(reader, address(changes), 422)
    assert tree.id(f"msg-{name}").text
    for sent, value in changes.items():
        assert sent == "v" or typed(tree, sent) == value
    fields = [n for n in tree.id("scenario") if n.attributes.get("name") == name]
    if fields[0].attributes.get("type") != "hidden":
        assert fields[0]["aria-invalid"] == "true"
    others = [n["id"] for n in tree if n.attributes.get("id", "").startswith("msg-") and n.text]
    assert f"msg-{name}" in others
    swapped = parse(partial(reader, address(changes)).text)
    assert [n["id"] for n in swapped if n.attributes.get("id", "").startswith("msg-") and n.text] == others
    assert swapped.id(f"msg-{name}").text == tree.id(f"msg-{name}").text


@pytest.mark.parametrize(
    "name", ["prompt", "hit", "model", "hw", "w", "engine", "config", "model_name", "hw_name", "tp"]
)
def test_what_was_typed_comes_back_as_text(reader: TestClient, name: str) -> None:
    changes = {name: HOSTILE}
    if name in ("config", "model_name"):
        changes["model"] = "custom"
    if name == "hw_name":
        changes |= {"hw": "custom", "hw_mem": "none"}
    answer = reader.get(address(changes))
    assert answer.status_code == 422
    assert "<script>alert" not in answer.text
    assert typed(parse(answer.text), name) == HOSTILE
    assert "<script>alert" not in partial(reader, address(changes)).text


def test_several_are_told_at_once_and_the_summary_leads_to_them(reader: TestClient) -> None:
    tree = page(reader, address(prompt="x", hit="2", model="nope"), 422)
    told = [n["id"] for n in tree if n.attributes.get("id", "").startswith("msg-") and n.text]
    assert "msg-prompt" in told
    tree = page(reader, address(out="0", hit="2", model="llama-3.1-8b"), 422)
    for name in ("out", "hit"):
        assert tree.id(f"msg-{name}").text
        assert tree.id("results").one("a", href=f"#f-{name}").text == tree.id(f"msg-{name}").text


def test_a_field_given_twice_is_told(reader: TestClient) -> None:
    assert "twice" in page(reader, f"{address()}&prompt=1&prompt=2", 422).id("msg-prompt").text
    assert page(reader, f"{address()}&prompt=7&prompt=7").id("f-prompt")["value"] == "7"


def test_what_belongs_to_no_field_is_told_in_general(reader: TestClient) -> None:
    many = urlencode([("batch", "1")] * 300)
    answer = reader.get(f"/?{many}")
    assert answer.status_code == 422
    assert "More than 200" in parse(answer.text).one("main").text


def test_a_missing_choice_is_told(reader: TestClient) -> None:
    assert page(reader, "/?hw=h100-sxm-80gb&model=", 422).id("msg-model").text
    assert page(reader, "/?model=llama-3.1-8b&hw=", 422).id("msg-hw").text


@pytest.mark.parametrize(
    "name",
    [
        "hit",
        "ttft",
        "util",
        "pool",
        "max_len",
        "max_seqs",
        "basis",
        "hw_fp16",
        "hw_mib",
        "pp",
        "draft_tokens",
        "graphs",
    ],
)
def test_a_message_never_stands_in_closed_details(reader: TestClient, name: str) -> None:
    tree = page(reader, address({**(OWN_CARD if name.startswith("hw_") else {}), name: "x"}), 422)
    assert tree.id(f"msg-{name}").text
    around = [d for d in tree.all("details") if any(n.attributes.get("id") == f"msg-{name}" for n in d)]
    assert around
    assert all("open" in details.attributes for details in around)


def test_unknown_names_are_mentioned_and_left_out(reader: TestClient) -> None:
    tree = page(reader, address({"colour": "red", "<b>": "1", "prompt": "2000"}))
    assert "Not read from the address: colour, <b>." in tree.id("results").text
    assert twin_of(tree) == twin_of(page(reader, address(prompt="2000")))
    assert "Not read" not in page(reader, address(units="gib")).text


def test_only_unknown_names_show_the_default(reader: TestClient) -> None:
    tree = page(reader, "/?utm_source=letter")
    assert twin_of(tree) == twin_of(page(reader, "/"))
    assert "utm_source" in tree.id("results").text


def test_numbers_may_stand_between_spaces(reader: TestClient) -> None:
    assert page(reader, address(prompt=" 2000 ")).id("f-prompt")["value"] == "2000"


def test_a_model_of_ones_own(reader: TestClient) -> None:
    """The dimensions of a catalog model give that model's numbers."""
    own = address(model="custom", model_name="Mine <b>", config=json.dumps(CONFIG))
    tree = page(reader, own)
    assert typed(tree, "model") == "custom"
    assert json.loads(typed(tree, "config")) == CONFIG
    assert typed(tree, "model_name") == "Mine <b>"
    mine, theirs = json_of(reader, twin_of(tree)), json_of(reader, twin_of(page(reader, address())))
    for key in ("memory", "serving", "rule_of_thumb", "prefill"):
        assert mine[key] == theirs[key]
    given = {key: value for key, value in mine["scenario"]["model"].items() if value not in (None, False)}
    assert given == {"name": "Mine <b>", "config": CONFIG}


def test_an_accelerator_of_ones_own(reader: TestClient) -> None:
    tree = page(reader, address(OWN_CARD, hw_mib="81559"))
    mine = json_of(reader, twin_of(tree))
    assert mine["scenario"]["hardware"]["custom"]["name"] == "My card"
    assert mine["memory"]["per_gpu"]["capacity_bytes"] == 81559 * 2**20
    assert mine["roofline"]["roofs"][0]["ridge_flops_per_byte"] == pytest.approx(989e12 / 3350e9)
    assert mine["cost"]["usd_per_hour"] == 3
    for name, value in OWN_CARD.items():
        assert typed(tree, name) == value


def test_the_customs_stand_ready_beside_a_catalog_choice(reader: TestClient) -> None:
    """A browser sends every field of the form; those of the other choice must not be in the way."""
    everything = {**OWN_CARD, "hw": "h100-sxm-80gb", "model": "llama-3.1-8b", "model_name": "x", "config": "nonsense"}
    assert twin_of(page(reader, address(everything))) == twin_of(page(reader, address()))
