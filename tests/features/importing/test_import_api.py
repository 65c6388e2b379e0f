"""A configuration is read field by field, or refused at the key; whatever the JSON, never with a failure of ours."""

import json
from typing import Any

import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from app.calc.dtypes import Dtype
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.parameters import count_parameters
from app.catalog.architecture_document import architecture_document, read_architecture
from app.catalog.catalog import load_catalog
from app.features.importing.hub import Hub
from app.web.urls import API
from tests.features.problems import paths, problem
from tests.web.hub_library import Library, found

IMPORT = f"{API}/import"
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "mystery_size": 12,
}
CATALOG = load_catalog()


def imported(client: TestClient, config: Any, **more: Any) -> dict[str, Any]:
    answer = client.post(IMPORT, json={"config": config, **more})
    assert answer.status_code == 200, answer.text[:500]
    document: dict[str, Any] = answer.json()
    return document


def test_a_known_configuration_is_read(calculator: TestClient) -> None:
    document = imported(calculator, LLAMA, name="Mine")
    assert document["name"] == "Mine"
    assert document["model_type"] == "llama"
    assert document["read_as"] is None
    assert document["source"] is None
    assert document["parameters"]["total"] == 8_030_261_248
    assert document["parameters"]["active"]["all_weights"] == 8_030_261_248
    assert document["parameters"]["active"]["without_embedding"] == 8_030_261_248 - 128_256 * 4_096
    assert document["weights"]["bytes"] == 8_030_261_248 * 2
    assert sum(group["bytes"] for group in document["weights"]["groups"]) == document["weights"]["bytes"]
    assert document["kv_cache"]["bytes_per_token"] == {"1024": 131_072, "8192": 131_072, "131072": 131_072}
    assert document["layers"] == [{"kind": "grouped", "label": "GQA · gated", "group": 0}] * 32
    assert document["unread"] == ["mystery_size"]


def test_every_field_says_where_it_came_from(calculator: TestClient) -> None:
    document = imported(calculator, LLAMA)
    fields = {field["name"]: field for field in document["fields"]}
    assert all(set(field) == {"name", "value", "origin", "key", "note"} for field in document["fields"])
    assert fields["hidden_size"] == {
        "name": "hidden_size",
        "value": 4096,
        "origin": "read",
        "key": "hidden_size",
        "note": "",
    }
    assert {field["origin"] for field in document["fields"]} <= {"read", "derived", "default", "assumed"}
    assert all(field["key"] for field in document["fields"] if field["origin"] == "read")


def test_the_architecture_reads_back_to_the_same_model(calculator: TestClient) -> None:
    document = imported(calculator, LLAMA, name="Mine")
    architecture = read_architecture(document["architecture"], "Mine")
    assert count_parameters(architecture).total == document["parameters"]["total"]
    assert architecture_document(architecture) == document["architecture"]
    ours = CATALOG.architectures["llama-3.1-8b"]
    assert architecture.layers == ours.layers


@pytest.mark.parametrize("by", ["model", "architecture"])
def test_a_scenario_carries_the_import_alone(calculator: TestClient, by: str) -> None:
    document = imported(calculator, LLAMA)
    model = document["scenario_model"]
    if by == "architecture":
        model = {"name": model["name"], "architecture": document["architecture"]}
    answer = calculator.post(f"{API}/evaluate", json={"model": model, "hardware": {"id": "h100-sxm-80gb"}})
    assert answer.status_code == 200, answer.text[:500]
    memory = answer.json()["memory"]
    assert memory["per_gpu"]["weights_bytes"] == document["weights"]["bytes"]
    architecture = CATALOG.architectures["llama-3.1-8b"]
    assert memory["kv_bytes_per_sequence"] == kv_bytes_per_sequence(architecture, 1_500, Dtype.BF16)


def test_an_unknown_family_is_offered_and_never_guessed(calculator: TestClient) -> None:
    unknown = {**LLAMA, "model_type": "wonder"}
    answer = calculator.post(IMPORT, json={"config": unknown})
    assert paths(answer) == ["config.model_type"]
    suggestions = problem(answer, 422)["suggestions"]
    assert "llama" in [one["read_as"] for one in suggestions]
    assert all(one["because"] for one in suggestions)
    accepted = imported(calculator, unknown, read_as="llama")
    assert accepted["read_as"] == "llama"
    assert accepted["parameters"]["total"] == 8_030_261_248
    assert accepted["scenario_model"]["read_as"] == "llama"


def test_a_family_that_there_is_not_is_refused(calculator: TestClient) -> None:
    answer = calculator.post(IMPORT, json={"config": {**LLAMA, "model_type": "wonder"}, "read_as": "no-such"})
    assert problem(answer, 422)["errors"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"hidden_size": "4096"}, "config.hidden_size"),
        ({"hidden_size": 0}, "config.hidden_size"),
        ({"hidden_size": True}, "config.hidden_size"),
        ({"hidden_size": 10**30}, "config.hidden_size"),
        ({"num_hidden_layers": 10**9}, "config.num_hidden_layers"),
        ({"num_attention_heads": None}, "config.num_attention_heads"),
        ({"vocab_size": [1]}, "config.vocab_size"),
        ({"model_type": "bert"}, "config.model_type"),
        ({"model_type": None}, "config.model_type"),
        ({"model_type": ["llama"]}, "config.model_type"),
        ({"text_config": 3}, "config.text_config"),
        ({"is_encoder_decoder": True}, "config.is_encoder_decoder"),
    ],
    ids=str,
)
def test_a_refusal_names_the_key(calculator: TestClient, change: dict[str, Any], path: str) -> None:
    assert paths(calculator.post(IMPORT, json={"config": {**LLAMA, **change}})) == [path]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("{}", 422),
        ("[]", 422),
        ("null", 422),
        ('{"config": null}', 422),
        ('{"config": []}', 422),
        ('{"config": {}}', 422),
        ('{"config": {}, "hub": "a/b"}', 422),
        ('{"hub": "a/b", "quantization": {}}', 422),
        ('{"config": {}, "surprise": 1}', 422),
        ('{"config": {}, "name": "' + "n" * 121 + '"}', 422),
        ('{"config": {}, "read_as": "../etc"}', 422),
        ('{"config": {"model_type": "llama", "hidden_size": NaN}}', 422),
        ('{"config": {"a": nan}}', 400),
        ('{"config": {"a": 1e999}}', 400),
        ('{"config": {"a": 1, "a": 2}}', 400),
        ('{"config": ' + '{"a": ' * 40 + "1" + "}" * 41, 400),
        ('{"config": {"a": "\\ud800"}}', 400),
        ('{"config": {"a": ' + "9" * 5000 + "}}", 400),
        ("{", 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_no_import_is_refused(calculator: TestClient, body: str, status: int) -> None:
    answer = calculator.post(IMPORT, content=body, headers={"content-type": "application/json"})
    problem(answer, status)


def test_more_keys_than_a_scenario_carries_are_refused(calculator: TestClient) -> None:
    config = {**LLAMA, **{f"key_{n}": n for n in range(400)}}
    assert paths(calculator.post(IMPORT, json={"config": config})) == ["config"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=6,
)
KEYS = st.sampled_from([*LLAMA, "num_experts", "layer_types", "sliding_window", "quantization_config", "text_config"])


@given(st.dictionaries(KEYS | st.text(max_size=10), VALUES, max_size=6), VALUES)
@settings(
    derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_json_makes_it_fail(calculator: TestClient, change: dict[str, Any], quantization: Any) -> None:
    try:
        body = json.dumps({"config": {**LLAMA, **change}, "quantization": quantization}, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    answer = calculator.post(IMPORT, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (200, 400, 422), answer.text[:500]
    for error in answer.json().get("errors", ()):
        assert error["path"].partition(".")[0] in ("config", "quantization")


def test_the_hub_is_asked_only_where_the_operator_allows_it(calculator: TestClient) -> None:
    told = problem(calculator.post(IMPORT, json={"hub": "owner/name"}), 403)
    assert "TOKENROOF_HUB_IMPORT" in told["detail"]


def test_a_model_of_the_hub_says_where_it_is_from(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library({"https://huggingface.co/owner/name/resolve/main/config.json": found(LLAMA)})
    services = app.state.services
    hub = Hub(services.settings.model_copy(update={"hub_import": True}), library)
    monkeypatch.setattr(type(services), "hub", property(lambda _: hub), raising=False)
    with TestClient(app, raise_server_exceptions=False) as client:
        document = client.post(IMPORT, json={"hub": "owner/name"}).json()
    assert document["name"] == "owner/name"
    assert document["source"]["hub"] == "owner/name"
    assert document["parameters"]["total"] == 8_030_261_248
    assert document["scenario_model"]["config"] == LLAMA


def test_the_constants_of_published_files_are_no_obstacle(calculator: TestClient) -> None:
    # Python writes Infinity where JSON has no word for it; some published configurations hold it.
    body = json.dumps({"config": LLAMA | {"time_step_limit": [0.0, float("inf")]}})
    assert "Infinity" in body
    answer = calculator.post(IMPORT, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert answer.json()["parameters"]["total"] == 8_030_261_248
    body = json.dumps({"config": LLAMA | {"hidden_size": float("nan")}})
    refused = calculator.post(IMPORT, content=body, headers={"content-type": "application/json"})
    assert paths(refused) == ["config.hidden_size"]
    assert "whole number" in refused.json()["errors"][0]["message"]
