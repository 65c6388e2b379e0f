"""The import page: what was read and where from, what was assumed, and the ways on."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from app.features.importing.hub import Hub
from tests.features.asking import items_of, json_of, page
from tests.features.dom import Node, parse
from tests.features.importing.test_import_api import LLAMA
from tests.web.hub_library import Library, found

HOSTILE = '"><script>alert(1)</script>'


def read(client: TestClient, status: int = 200, files: Any = None, **texts: str) -> Node:
    answer = client.post("/import", data=texts, files=files)
    assert answer.status_code == status, answer.text[:500]
    return parse(answer.text)


def pasted(client: TestClient, config: dict[str, Any], status: int = 200, **texts: str) -> Node:
    return read(client, status, config=json.dumps(config), **texts)


def link_of(tree: Node, text: str) -> str:
    return next(a["href"] for a in tree.all("a") if a.text == text)


def test_the_empty_form_asks_nothing(reader: TestClient) -> None:
    tree = page(reader, "/import")
    assert not tree.id("msg-config").text
    assert tree.id("import")["enctype"] == "multipart/form-data"
    assert "TOKENROOF_HUB_IMPORT=true" in tree.text


def test_a_pasted_configuration_is_shown_as_read(reader: TestClient) -> None:
    tree = pasted(reader, LLAMA, model_name="Mine")
    assert tree.id("read-title").text == "Mine"
    assert "8,030,261,248" in tree.text
    assert "32 layers" in tree.id("layers-text").text
    rows = {row["Field"]: row for row in tree.one(role="region", aria_label="Fields, table").table()}
    assert rows["hidden_size"]["Value"] == "4,096"
    assert rows["hidden_size"]["From"] == "the file hidden_size"
    assert "mystery_size" in tree.id("unread").text
    assert tree.id("f-config").raw.strip() == json.dumps(LLAMA)


def test_it_can_be_used_in_the_workbench(reader: TestClient) -> None:
    tree = pasted(reader, LLAMA, model_name="Mine")
    link = link_of(tree, "Use it in the workbench")
    assert json.loads(items_of(link)["config"]) == LLAMA
    document = json_of(reader, f"/api/v1/evaluate{link.removeprefix('/')}")
    assert document["memory"]["per_gpu"]["weights_bytes"] == 8_030_261_248 * 2
    assert document["scenario"]["model"]["name"] == "Mine"


def test_the_cache_that_a_file_asks_for_is_carried_to_the_workbench(reader: TestClient) -> None:
    scheme = {"num_bits": 8, "type": "float"}
    weights = {"num_bits": 8, "type": "float", "strategy": "tensor"}
    groups = {"group_0": {"targets": ["Linear"], "weights": weights}}
    quantization = {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": groups,
        "ignore": ["lm_head"],
        "kv_cache_scheme": scheme,
    }
    tree = pasted(reader, LLAMA | {"quantization_config": quantization})
    assert "fp8, at 8,192 tokens" in tree.text
    link = link_of(tree, "Use it in the workbench")
    assert items_of(link)["kv"] == "fp8"
    document = json_of(reader, f"/api/v1/evaluate{link.removeprefix('/')}")
    assert document["memory"]["kv_bytes_per_token"] == 131_072 / 2


def test_it_can_be_edited(reader: TestClient) -> None:
    editor = page(reader, link_of(pasted(reader, LLAMA, model_name="Mine"), "Edit it"))
    assert editor.id("f-model_name")["value"] == "Mine"
    assert editor.id("f-layers-0-mixer-n_kv_heads")["value"] == "8"
    assert "8,030,261,248" in editor.text


def test_a_chosen_file_is_read(reader: TestClient) -> None:
    file = {"config_file": ("config.json", json.dumps(LLAMA).encode(), "application/json")}
    tree = read(reader, files=file, config="")
    assert "8,030,261,248" in tree.text
    assert json.loads(tree.id("f-config").raw) == LLAMA


def test_a_file_that_is_no_text_is_told(reader: TestClient) -> None:
    tree = read(reader, 422, files={"config_file": ("a.bin", b"\xff\xfe\x00")}, config="")
    assert "no text" in tree.id("msg-config").text


def test_an_unknown_family_is_offered_and_pressed(reader: TestClient) -> None:
    unknown = {**LLAMA, "model_type": "wonder"}
    tree = pasted(reader, unknown, 422)
    assert "wonder" in tree.id("msg-config").text
    offers = tree.one("ul", aria_label="Ways to read it all the same")
    button = next(b for b in offers.all("button") if b["value"] == "llama")
    assert button.text == "Read as llama"
    assert "because" in offers.text
    accepted = read(reader, config=json.dumps(unknown), accept=button["value"])
    assert button["name"] == "accept"
    assert "8,030,261,248" in accepted.text
    assert "because you chose so" in accepted.text
    items = items_of(link_of(accepted, "Use it in the workbench"))
    assert items["read_as"] == "llama"
    assert page(reader, link_of(accepted, "Use it in the workbench")).id("verdict").text


def test_the_number_that_json_does_not_have_is_left_out(reader: TestClient) -> None:
    text = json.dumps(LLAMA)[:-1] + ', "time_step_limit": [0.0, Infinity]}'
    tree = read(reader, config=text)
    assert "8,030,261,248" in tree.text
    items = items_of(link_of(tree, "Use it in the workbench"))
    assert json.loads(items["config"])["time_step_limit"] == [0.0, None]


@pytest.mark.parametrize(
    ("texts", "field"),
    [
        ({"config": "{"}, "config"),
        ({"config": "[]"}, "config"),
        ({"config": ""}, "config"),
        ({"config": "   "}, "config"),
        ({"config": "{}"}, "config"),
        ({"config": '{"model_type": "llama"}'}, "config"),
        ({"config": '{"a": 1, "a": 2}'}, "config"),
        ({"config": '{"a": NaN, "a": 2}'}, "config"),
        ({"config": "{" * 5000}, "config"),
        ({"config": '{"a":' * 900 + "NaN" + "}" * 900}, "config"),
        ({"config": HOSTILE}, "config"),
        ({"config": json.dumps(LLAMA), "quant": "["}, "quant"),
        ({"config": json.dumps(LLAMA), "quant": "3"}, "quant"),
        ({"config": json.dumps(LLAMA), "model_name": "n" * 121}, "model_name"),
        ({"config": json.dumps(LLAMA), "read_as": HOSTILE}, "read_as"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_told_at_its_field_and_kept(reader: TestClient, texts: dict[str, str], field: str) -> None:
    answer = reader.post("/import", data=texts)
    assert answer.status_code == 422
    assert "<script>alert" not in answer.text
    tree = parse(answer.text)
    assert tree.id(f"msg-{field}").text
    for name, text in texts.items():
        node = tree.id(f"f-{name}")
        shown = node.raw.removeprefix("\n") if node.tag == "textarea" else node["value"]
        assert shown == text


def test_a_long_configuration_is_carried_by_the_keys_that_were_read(reader: TestClient) -> None:
    long = {**LLAMA, "id2label": {str(n): f"a label that says nothing of size, number {n}" for n in range(150)}}
    tree = pasted(reader, long)
    link = link_of(tree, "Use it in the workbench")
    assert "only the keys that were read" in tree.text
    assert "id2label" not in items_of(link)["config"]
    document = json_of(reader, f"/api/v1/evaluate{link.removeprefix('/')}")
    assert document["memory"]["per_gpu"]["weights_bytes"] == 8_030_261_248 * 2


def test_the_address_can_bring_the_configuration(reader: TestClient) -> None:
    answer = reader.get("/import", params={"config": json.dumps(LLAMA), "model_name": "Mine"})
    assert answer.status_code == 200
    assert parse(answer.text).id("read-title").text == "Mine"


def test_the_hub_is_asked_only_where_the_operator_allows_it(reader: TestClient) -> None:
    tree = page(reader, "/import?hub=owner/name", 403)
    assert "TOKENROOF_HUB_IMPORT" in tree.id("msg-hub").text


def test_a_model_of_the_hub_is_read(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library({"https://huggingface.co/owner/name/resolve/main/config.json": found(LLAMA)})
    services = app.state.services
    hub = Hub(services.settings.model_copy(update={"hub_import": True}), library)
    monkeypatch.setattr(type(services), "hub", property(lambda _: hub), raising=False)
    with TestClient(app, raise_server_exceptions=False) as client:
        tree = page(client, "/import?hub=owner/name")
        assert tree.id("read-title").text == "owner/name"
        assert json.loads(items_of(link_of(tree, "Use it in the workbench"))["config"]) == LLAMA
        missing = page(client, "/import?hub=owner/other", 404)
        assert missing.id("f-hub")["value"] == "owner/other"
        assert missing.id("msg-hub").text
