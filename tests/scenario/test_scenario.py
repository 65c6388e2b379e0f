"""The stored, shared and posted form: what it refuses, what it writes out, and that it comes back the same."""

import json
import math
from copy import deepcopy
from typing import Any

import pytest
from pydantic import ValidationError

from app.scenario.parts import MAX_TEXT
from app.scenario.scenario import Scenario
from tests.factories import custom_card, scenario, scenario_document

# What a part needs beside the one value.
LEAST_OF_PART: dict[str, dict[str, Any]] = {
    "techniques.speculative": {"draft_tokens": 64},
    "techniques.disaggregation": {"hardware": {"id": "h100-sxm-80gb"}},
    "calibration": {
        "name": "Mine",
        "decode": {"factor": 1.1, "points": 12, "low": 0.9, "high": 1.2},
        "prefill": {"factor": 0.9, "points": 3},
    },
}


def document_with(path: str, value: Any) -> dict[str, Any]:
    """The least document with one value at a dotted path; null is set, and takes nothing away."""
    document = scenario_document()
    if path.startswith("hardware.custom"):
        document["hardware"] = {"custom": custom_card()}
    for part, least in LEAST_OF_PART.items():
        if path.startswith(f"{part}."):
            section, _, key = part.partition(".")
            document[section] = {key: deepcopy(least)} if key else deepcopy(least)
    table = document
    *parents, last = path.split(".")
    for key in parents:
        table = table.setdefault(key, {})
    table[last] = value
    return document


def value_at(found: Scenario, path: str) -> Any:
    value: Any = found.document()
    for key in path.split("."):
        value = value[key]
    return value


def places(document: Any) -> set[str]:
    """Where the document is refused."""
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(document)
    return {".".join(str(part) for part in error["loc"]) for error in caught.value.errors()}


@pytest.mark.parametrize(
    "path",
    [
        "colour",
        "model.colour",
        "hardware.colour",
        "hardware.custom.colour",
        "precision.colour",
        "parallelism.colour",
        "engine.colour",
        "workload.colour",
        "techniques.colour",
        "workload.Prompt_tokens",
        "workload.prompt_tokens ",
        "__class__",
    ],
)
def test_an_unknown_key_is_refused_by_name(path: str) -> None:
    assert places(document_with(path, 1)) == {path}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema_version", 0),
        ("schema_version", 2),
        ("schema_version", "1"),
        ("schema_version", None),
        ("precision.weights", "bf17"),
        ("precision.weights", "BF16"),
        ("precision.weights", "NATIVE"),
        ("model.mtp", 1),
        ("model.mtp", "true"),
        ("model.mtp", None),
        ("model.architecture", []),
        ("model.quantization", "fp8"),
        ("model.read_as", "../llama"),
        ("precision.weights", "fp4"),
        ("precision.kv_cache", "tf32"),
        ("precision.kv_cache", "mxfp4"),
        ("precision.kv_cache", None),
        ("precision.compute", "mxfp4"),
        ("precision.compute", 16),
        ("memory_basis", "real"),
        ("memory_basis", None),
        ("techniques.speculative.k", 4),
        ("techniques.speculative", 4),
        ("engine.prefix_caching", 1),
        ("engine.enforce_eager", None),
        ("engine.underneath", "../vllm"),
        ("observed", None),
        ("calibration", "mine"),
        ("calibration", []),
        ("calibration.name", None),
        ("calibration.name", 5),
        ("calibration.colour", "red"),
        ("calibration.decode", 1.1),
        ("calibration.decode.name", "mine"),
        ("techniques.disaggregation", True),
        ("techniques.disaggregation.hardware", None),
        ("techniques.disaggregation.hardware", "h100-sxm-80gb"),
        ("techniques.disaggregation.overlap", 1),
        ("techniques.disaggregation.overlap", None),
        ("techniques.disaggregation.link", None),
        ("techniques.disaggregation.link", 5),
        ("techniques.disaggregation.colour", 5),
        ("techniques.speculative.method", "eagle-3"),
        ("techniques.speculative.method", 1),
        ("techniques.chunked_prefill", 0),
        ("techniques.static_batching", "true"),
        ("techniques.static_batching", None),
        ("techniques.attention", "MLA"),
        ("techniques.attention", "mha\n"),
        ("techniques.attention", ["mha"]),
        ("workload.answer_shape", "normal"),
        ("workload.answer_shape", None),
        ("workload.answer_shape", 1),
        ("workload", None),
        ("workload", []),
        ("engine", "vllm"),
        ("engine.id", None),
        ("engine.id", 5),
        ("model.config", []),
        ("model.config", "{}"),
    ],
)
def test_a_value_of_another_kind_is_refused_where_it_stands(path: str, value: Any) -> None:
    (place,) = {place for place in places(document_with(path, value)) if place.startswith(path)}
    assert place == path


@pytest.mark.parametrize(
    "id_",
    ["", " ", "Llama", "llama 3", "llama\n", "-llama", ".llama", "ll\x00ama", "../x", "a/b", "é", "x" * 121, "a\u202e"],
)
@pytest.mark.parametrize(
    "path",
    ["model.id", "hardware.id", "engine.id", "techniques.disaggregation.hardware.id", "techniques.disaggregation.link"],
)
def test_an_id_is_short_and_plain(path: str, id_: str) -> None:
    assert places(document_with(path, id_)) == {path}


@pytest.mark.parametrize("key", ["model", "hardware"])
def test_model_and_hardware_have_no_default(key: str) -> None:
    document = scenario_document()
    del document[key]
    assert places(document) == {key}


@pytest.mark.parametrize(
    ("section", "value"),
    [
        ("model", {}),
        ("model", {"id": "a", "config": {}}),
        ("model", {"id": "a", "name": "b"}),
        ("model", {"name": "b"}),
        ("hardware", {}),
        ("hardware", {"id": "a", "custom": custom_card()}),
        ("hardware", {"count": 1}),
    ],
)
def test_a_model_and_a_card_are_named_or_described_and_not_both(section: str, value: Any) -> None:
    assert places(scenario_document() | {section: value}) == {section}


@pytest.mark.parametrize(
    "speculative",
    [
        {"draft_tokens": 3, "acceptance_rate": 0.5, "acceptance_length": 2.0},
        {"draft_tokens": 3, "acceptance_length": 4.000001},
        *({"draft_tokens": 3, "method": method, "draft": {"id": "a"}} for method in ("eagle", "mtp", "ngram")),
    ],
)
def test_guesses_that_contradict_each_other_are_refused_as_one(speculative: Any) -> None:
    assert places(scenario_document(techniques={"speculative": speculative})) == {"techniques.speculative"}


def test_a_null_that_was_saved_before_chunks_were_computed_means_them() -> None:
    old = scenario_document(techniques={"speculative": None, "disaggregation": None, "chunked_prefill": None})
    assert Scenario.model_validate(old) == scenario()


@pytest.mark.parametrize("hardware", [{}, {"id": "a", "custom": custom_card()}])
def test_the_card_of_a_prefill_pool_is_named_or_described_and_not_both(hardware: Any) -> None:
    found = places(scenario_document(techniques={"disaggregation": {"hardware": hardware}}))
    assert found == {"techniques.disaggregation.hardware"}


def test_a_prefill_pool_needs_a_card() -> None:
    assert places(scenario_document(techniques={"disaggregation": {}})) == {"techniques.disaggregation.hardware"}


@pytest.mark.parametrize("missing", ["memory_gb", "bandwidth_gb_per_s", "dense_tflops"])
def test_a_custom_card_needs_its_three_numbers(missing: str) -> None:
    document = scenario_document(hardware={"custom": custom_card(**{missing: None})})
    assert places(document) == {f"hardware.custom.{missing}"}


@pytest.mark.parametrize("rates", [{}, {"bf17": 1.0}, {"bf16": None}, [], None])
def test_a_custom_card_has_at_least_one_known_rate(rates: Any) -> None:
    found = places(document_with("hardware.custom.dense_tflops", rates))
    assert all(place.startswith("hardware.custom.dense_tflops") for place in found)


def test_a_config_has_a_limited_number_of_keys() -> None:
    keys = {f"k{n}": n for n in range(400)}
    Scenario.model_validate(scenario_document() | {"model": {"config": keys}})
    assert places(scenario_document() | {"model": {"config": keys | {"more": 1}}}) == {"model.config"}


TEXTS = ["model.name", "hardware.custom.name", "calibration.name"]


def text_document(path: str, text: Any) -> dict[str, Any]:
    if path == "model.name":
        return scenario_document() | {"model": {"config": {}, "name": text}}
    return document_with(path, text)


@pytest.mark.parametrize("path", TEXTS)
def test_text_is_cleaned_of_what_cannot_be_seen(path: str) -> None:
    typed = "  My\u202e \x00card\u2066\ufeff e\u0301 "
    assert value_at(Scenario.model_validate(text_document(path, typed)), path) == "My card é"


@pytest.mark.parametrize("path", TEXTS)
@pytest.mark.parametrize(
    "text", ["", "   ", "\u202e\u200b", "\x00", "a\ud800", "\udfff", "x" * (MAX_TEXT + 1), 5, True, ["a"]]
)
def test_text_that_is_empty_broken_or_too_long_is_refused(path: str, text: Any) -> None:
    assert places(text_document(path, text)) == {path}


def test_the_least_document_is_written_out_in_full() -> None:
    document = scenario().document()
    assert list(document) == list(Scenario.model_fields)
    for path, value in {
        "schema_version": 1,
        "model.id": "llama-3.1-8b",
        "model.mtp": False,
        "hardware.custom": None,
        "hardware.count": None,
        "precision": {"weights": None, "kv_cache": "bf16", "compute": None},
        "parallelism": {"tensor": 1, "pipeline": 1, "expert": 1, "data": 1, "decode_context": 1},
        "engine.id": "vllm",
        "engine.memory_utilization": None,
        "engine.enforce_eager": False,
        "workload": {
            "prompt_tokens": 1000,
            "output_tokens": 500,
            "concurrency": 64,
            "answer_shape": "fixed",
            "longest_answer": None,
            "prefix_hit_rate": 0.0,
            "shared_prefix_tokens": 0,
            "slo_ttft_s": None,
            "slo_tpot_s": None,
        },
        "techniques": {
            "speculative": None,
            "disaggregation": None,
            "chunked_prefill": True,
            "static_batching": False,
            "reserved_tokens": None,
            "attention": None,
        },
        "observed": {"kv_tokens": None, "gpu_blocks": None, "max_concurrency": None},
        "calibration": None,
        "memory_basis": "reported",
    }.items():
        assert value_at(scenario(), path) == value, path
    custom = scenario(hardware={"custom": custom_card()}).document()["hardware"]["custom"]
    assert custom == {
        "name": "Custom accelerator",
        "memory_gb": 80.0,
        "memory_reported_mib": None,
        "bandwidth_gb_per_s": 3350.0,
        "dense_tflops": {"bf16": 989.0},
        "tdp_w": None,
        "usd_per_hour": None,
        "link_one_way_gb_per_s": None,
    }


def test_whatever_the_order_of_keys_the_document_is_the_same() -> None:
    written = scenario().document()
    turned = {key: written[key] for key in reversed(written)}
    assert json.dumps(Scenario.model_validate(turned).document()) == json.dumps(written)


def test_a_name_that_grows_in_normal_form_comes_back_as_the_same_scenario() -> None:
    # U+0958 is two characters in normal form C: 120 of them become 240, twice what a name may have.
    document = text_document("model.name", "\u0958" * MAX_TEXT)
    try:
        found = Scenario.model_validate(document)
    except ValidationError:
        return  # refused at the door is as good
    assert Scenario.model_validate(found.document()) == found


def test_a_name_with_a_hidden_mark_inside_comes_back_as_the_same_scenario() -> None:
    found = Scenario.model_validate(text_document("model.name", "e\x01\u0301"))
    assert Scenario.model_validate(found.document()) == found


def test_a_config_holds_no_nan_and_no_infinity() -> None:
    for value in (math.nan, math.inf, [-math.inf], {"a": math.nan}):
        assert places(scenario_document() | {"model": {"config": {"rope_theta": value}}}) == {"model.config"}


def test_a_config_holds_no_lone_surrogate_or_can_be_encoded_all_the_same() -> None:
    for config in ({"a": "\ud800"}, {"\ud800": 1}, {"a": ["x", {"b": "\udfff"}]}):
        try:
            found = Scenario.model_validate(scenario_document() | {"model": {"config": config}})
        except ValidationError:
            continue  # refused at the door is as good
        json.dumps(found.document(), ensure_ascii=False).encode()


@pytest.mark.parametrize("value", [True, 1.0])
def test_the_version_of_the_form_is_a_whole_number(value: Any) -> None:
    with pytest.raises(ValidationError):
        Scenario.model_validate(scenario_document() | {"schema_version": value})


def test_a_scenario_cannot_be_changed() -> None:
    found = scenario()
    with pytest.raises(ValidationError):
        found.workload.prompt_tokens = 5  # type: ignore[misc]
    with pytest.raises(ValidationError):
        found.memory_basis = "marketed"  # type: ignore[assignment, misc]


def test_every_refusal_is_told_at_once() -> None:
    document = scenario_document(
        workload={"prompt_tokens": 0, "output_tokens": -1}, engine={"max_num_seqs": "x"}, extra=1
    )
    assert places(document) == {"workload.prompt_tokens", "workload.output_tokens", "engine.max_num_seqs", "extra"}


@pytest.mark.parametrize("document", [None, [], "x", 5, True, b"{}"])
def test_only_an_object_is_a_scenario(document: Any) -> None:
    assert places(document) == {""}
