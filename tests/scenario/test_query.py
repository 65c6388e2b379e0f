"""The flat names of a query: there and back, and what an empty value means."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from app.calc.dtypes import Dtype
from app.scenario import query
from app.scenario.answer import answer
from app.scenario.document import document as document_of
from app.scenario.parts import OwnCalibration, OwnFactor
from app.scenario.query import (
    BY_NAME,
    FIELDS,
    MAX_CONFIG,
    MAX_VALUE,
    Kind,
    name_of,
    names_set_aside,
    query_items,
    scenario_document,
    unknown_names,
    written_bytes,
)
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.scenario.techniques import Disaggregation, Speculative
from tests.calc.time.combined import combined_documents
from tests.factories import custom_card, scenario, shipped_catalog
from tests.features.strategies import Document, documents

REFERENCE = [("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb")]


def leaves_of(part: type[BaseModel]) -> dict[str, Any]:
    """The keys of a part that a scenario leaves out."""
    return dict.fromkeys(part.model_fields)


def refusals(items: list[tuple[str, str]]) -> list[tuple[str, str]]:
    with pytest.raises(ScenarioError) as refused:
        scenario_document(items)
    return [(refusal.path, refusal.message) for refusal in refused.value.refusals]


@given(documents())
@settings(derandomize=True, deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_every_scenario_comes_back_from_its_query(document: Document) -> None:
    asked = Scenario.model_validate(document)
    items = query_items(asked)
    assert Scenario.model_validate(scenario_document(items)) == asked
    assert query_items(Scenario.model_validate(scenario_document(items))) == items
    assert len(dict(items)) == len(items)


@given(combined_documents())
@settings(derandomize=True, deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
def test_every_technique_comes_back_from_the_query(document: Document) -> None:
    asked = Scenario.model_validate(document)
    items = query_items(asked)
    assert Scenario.model_validate(scenario_document(items)) == asked
    assert query_items(Scenario.model_validate(scenario_document(items))) == items
    assert Scenario.model_validate(asked.document()) == asked


@pytest.mark.parametrize(
    ("items", "path"),
    [
        ([("accept", "0.8"), ("accept_len", "2.8"), ("draft_tokens", "3")], "techniques.speculative"),
        ([("accept_len", "4.5"), ("draft_tokens", "3")], "techniques.speculative"),
        ([("draft", "qwen3-0.6b"), ("method", "eagle"), ("draft_tokens", "3")], "techniques.speculative"),
        ([("accept", "0.8")], "techniques.speculative.draft_tokens"),
        ([("accept", "1.5"), ("draft_tokens", "3")], "techniques.speculative.acceptance_rate"),
        ([("method", "medusa"), ("draft_tokens", "3")], "techniques.speculative.method"),
        ([("pd_tp", "4")], "techniques.disaggregation.hardware"),
        ([("pd_hw", "h100-sxm-80gb"), ("pd_x", "100001")], "techniques.disaggregation.instances"),
        ([("pd_hw", "h100-sxm-80gb"), ("pd_rate", "1e300")], "techniques.disaggregation.link_gb_per_s"),
        ([("pd_hw", "h100-sxm-80gb"), ("pd_custom", '{"memory_gb":1}')], "techniques.disaggregation.hardware"),
        ([("spread", "normal")], "workload.answer_shape"),
        ([("shared", "-1")], "workload.shared_prefix_tokens"),
        ([("reserved", "0")], "techniques.reserved_tokens"),
        ([("attention", "MLA")], "techniques.attention"),
    ],
)
def test_a_technique_that_is_no_technique_is_refused_in_the_form(items: list[tuple[str, str]], path: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Scenario.model_validate(scenario_document([*REFERENCE, *items]))
    assert any(".".join(map(str, error["loc"])).startswith(path) for error in caught.value.errors())
    assert name_of(path) in dict(items) or path.endswith(("draft_tokens", "hardware"))


_HOSTILE = ("nan", "inf", "1e999999", "٣", "<b>", "'--", "\x00", "\ud800", "{}", "1;2", "9" * 401)


@pytest.mark.parametrize("name", [field.name for field in FIELDS if field.path.startswith("techniques.")])
def test_hostile_text_is_refused_at_the_field_by_the_form_or_by_the_catalog(name: str) -> None:
    beside = [("draft_tokens", "3"), ("pd_hw", "h100-sxm-80gb")]
    for text in _HOSTILE:
        items = [*REFERENCE, *(item for item in beside if item[0] != name), (name, text)]
        with pytest.raises((ScenarioError, ValidationError)) as caught:
            resolve(Scenario.model_validate(scenario_document(items)), shipped_catalog())
        if isinstance(caught.value, ScenarioError):
            path = BY_NAME[name].path
            assert all(
                refusal.path.startswith(path.rpartition(".config")[0] or path) for refusal in caught.value.refusals
            )


@pytest.mark.parametrize(
    "name",
    ["\ufb2c" * 40, "e\u200b\u0301", "a\x00\u0327b\u0302", "\u0344", "\u1100\u200b\u1161"],
    ids=["grows in normal form", "composes once the middle is gone", "control between marks", "marks alone", "jamo"],
)
def test_a_cleaned_name_is_a_name_again(name: str) -> None:
    asked = scenario(hardware={"custom": custom_card(name=name)})
    assert Scenario.model_validate(asked.document()) == asked
    assert Scenario.model_validate(scenario_document(query_items(asked))) == asked


@pytest.mark.parametrize("name", ["\ufb2c" * 41, "\u0958" * 61])
def test_a_name_that_is_too_long_once_cleaned_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="At most 120 characters"):
        scenario(hardware={"custom": custom_card(name=name)})


def test_every_leaf_of_a_scenario_has_one_name() -> None:
    def leaves(document: Any, path: str = "") -> set[str]:
        if not isinstance(document, dict):
            return {path}
        return {leaf for key, value in document.items() for leaf in leaves(value, f"{path}.{key}".strip("."))}

    full = scenario(hardware={"custom": custom_card()}).document()
    full["hardware"]["custom"]["dense_tflops"] = dict.fromkeys(Dtype, 1.0)
    full["techniques"] |= {"speculative": leaves_of(Speculative), "disaggregation": leaves_of(Disaggregation)}
    full["techniques"]["speculative"]["draft"] = {"id": None, "config": None}
    full["techniques"]["disaggregation"]["hardware"] = {"id": None, "custom": None}
    full["calibration"] = leaves_of(OwnCalibration) | dict.fromkeys(("decode", "prefill"), leaves_of(OwnFactor))
    assert {field.path for field in FIELDS} == {*leaves(full), "model.config"}
    assert len(BY_NAME) == len(FIELDS)
    assert all(name_of(field.path) == field.name for field in FIELDS)


def test_an_empty_value_means_null_or_the_default() -> None:
    """What a normal scenario has as null is null; what is left out of a part that it lacks makes no part."""
    document = scenario_document(
        [*REFERENCE, *((field.name, "") for field in FIELDS if field.name not in ("model", "hw"))]
    )
    given = Scenario.model_validate(document)
    assert given == scenario(workload={"concurrency": None})  # nobody else has a default other than null
    assert document["workload"] == dict.fromkeys(("concurrency", "longest_answer", "slo_ttft_s", "slo_tpot_s"))
    assert document["precision"] == {"weights": None, "compute": None}
    assert document["techniques"] == {"reserved_tokens": None, "attention": None}
    assert document["hardware"] == {"id": "h100-sxm-80gb", "count": None}
    assert document["observed"] == dict.fromkeys(("kv_tokens", "gpu_blocks", "max_concurrency"))
    assert len(document["engine"]) == 14
    assert "calibration" not in document


@pytest.mark.parametrize(
    ("name", "path", "kind", "empty_is_null"),
    [
        ("prompt", "workload.prompt_tokens", Kind.WHOLE, False),
        ("batch", "workload.concurrency", Kind.WHOLE, True),
        ("count", "hardware.count", Kind.WHOLE, True),
        ("hw", "hardware.id", Kind.TEXT, False),
        ("hw_int8", "hardware.custom.dense_tflops.int8", Kind.REAL, False),
        ("hw_usd", "hardware.custom.usd_per_hour", Kind.REAL, False),
        ("config", "model.config", Kind.JSON, False),
        ("pd_custom", "techniques.disaggregation.hardware.custom", Kind.JSON, False),
        ("prefix", "engine.prefix_caching", Kind.FLAG, True),
        ("eager", "engine.enforce_eager", Kind.FLAG, False),
        ("seen", "engine.total_memory_bytes", Kind.BYTES, True),
        ("attention", "techniques.attention", Kind.TEXT, True),
        ("accept", "techniques.speculative.acceptance_rate", Kind.REAL, False),
        ("cal_prefill_high", "calibration.prefill.high", Kind.REAL, False),
        ("basis", "memory_basis", Kind.TEXT, False),
    ],
)
def test_names_of_saved_links_stay(name: str, path: str, kind: Kind, empty_is_null: bool) -> None:
    field = BY_NAME[name]
    assert (field.path, field.kind, field.empty_is_null) == (path, kind, empty_is_null)


def test_every_field_is_named_once() -> None:
    assert len(FIELDS) == 91
    assert len(BY_NAME) == len(FIELDS)
    for field in FIELDS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", field.name)
        assert field.label


def test_other_labels_change_no_name_and_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = scenario(hardware={"custom": custom_card()}, workload={"concurrency": None})
    before, figures = query_items(asked), document_of(answer(asked, shipped_catalog()))
    other = {f.name: replace(f, label="X", ui=replace(f.ui, label="X", hint="Y", empty="Z", group="")) for f in FIELDS}
    monkeypatch.setattr(query, "FIELDS", tuple(other.values()))
    monkeypatch.setattr(query, "BY_NAME", other)
    assert query_items(asked) == before
    again = Scenario.model_validate(scenario_document(before))
    assert again == asked
    assert document_of(answer(again, shipped_catalog())) == figures


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("model", "model"),
        ("model.id", "model"),
        ("model.config", "config"),
        ("model.config.num_hidden_layers", "config"),
        ("model.config.rope.type.0", "config"),
        ("hardware", "hw"),
        ("hardware.custom", "hw_name"),
        ("hardware.custom.memory_gb", "hw_mem"),
        ("hardware.custom.dense_tflops", "hw_bf16"),
        ("hardware.custom.dense_tflops.fp8", "hw_fp8"),
        ("hardware.custom.dense_tflops.fp9", "hw_bf16"),
        ("hardware.custom.colour", "hw_name"),
        ("hardware.count", "count"),
        ("workload.concurrency", "batch"),
        ("schema_version", "v"),
        ("workload", None),
        ("techniques", None),
        ("techniques.speculative", "draft_tokens"),
        ("techniques.speculative.method", "method"),
        ("techniques.disaggregation", "pd_hw"),
        ("calibration", "cal_name"),
        ("calibration.colour", "cal_name"),
        ("calibration.decode", "cal_decode"),
        ("calibration.prefill", "cal_prefill"),
        ("calibration.prefill.low", "cal_prefill_low"),
        ("techniques.disaggregation.hardware", "pd_hw"),
        ("techniques.disaggregation.hardware.custom.memory_gb", "pd_custom"),
        ("techniques.disaggregation.link_gb_per_s", "pd_rate"),
        ("", None),
        ("nope.nope", None),
    ],
)
def test_the_name_at_a_path_is_that_of_the_nearest_field(path: str, name: str | None) -> None:
    assert name_of(path) == name


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), (" 7 ", 7), ("+7", 7), ("-7", -7), ("007", 7), ("1" * 30, int("1" * 30))]
)
def test_whole_numbers(text: str, value: int) -> None:
    assert scenario_document([("prompt", text)]) == {"workload": {"prompt_tokens": value}}


@pytest.mark.parametrize(
    "text", ["7.0", "1e3", "1_000", "1,000", "0x10", "٣", "７", "1" * 31, "--1", "one", " ", "true"]
)
def test_what_is_no_whole_number(text: str) -> None:
    assert refusals([("prompt", text)]) == [("workload.prompt_tokens", "must be a whole number, written in digits.")]


@pytest.mark.parametrize(
    ("text", "value"), [("0.9", 0.9), (".5", 0.5), ("5.", 5), ("1e-3", 0.001), ("1E9", 1e9), (" 2 ", 2), ("-0", 0)]
)
def test_real_numbers(text: str, value: float) -> None:
    assert scenario_document([("util", text)]) == {"engine": {"memory_utilization": value}}


@pytest.mark.parametrize("text", ["nan", "inf", "Infinity", "1e", "e9", ".", "1e9999", "0x1p3", "1 000", "½", "1,5"])
def test_what_is_no_real_number(text: str) -> None:
    assert refusals([("util", text)]) == [("engine.memory_utilization", "must be a number, such as 0.9 or 1e9.")]


def test_a_real_that_overflows_is_refused_by_the_form() -> None:
    document = scenario_document([*REFERENCE, ("util", "1e999")])
    with pytest.raises(ValueError, match="memory_utilization"):
        Scenario.model_validate(document)


def test_a_config_is_json_of_the_strict_kind() -> None:
    custom = [("model", "custom"), ("hw", "h100-sxm-80gb")]
    assert scenario_document([*custom, ("config", '{"a": [1]}')])["model"] == {"config": {"a": [1]}}
    for text in ("{", '{"a": nan}', '{"a": 1, "a": 2}', '"\\ud800"', "[" * 30 + "]" * 30):
        ((path, message),) = refusals([*custom, ("config", text)])
        assert path == "model.config"
        assert message.startswith("is no JSON that is read here: ")


def test_long_values_are_refused_by_kind() -> None:
    assert MAX_CONFIG > MAX_VALUE
    for field in FIELDS:
        limit = MAX_CONFIG if field.kind is Kind.JSON else MAX_VALUE
        choosing = [(name, "custom") for name in ("model", "hw") if name != field.name]
        assert (field.path, "is too long.") in refusals([*choosing, (field.name, "1" * (limit + 1))])


def test_a_name_given_twice_is_refused_unless_it_says_the_same() -> None:
    assert refusals([("model", "a"), ("model", "b")]) == [("model.id", "is given twice.")]
    assert scenario_document([("model", "a"), ("model", "a")]) == {"model": {"id": "a"}}


def test_custom_fields_beside_a_catalog_id_are_kept_out() -> None:
    custom = [("hw_mem", "80"), ("hw_bw", "x"), ("hw_bf16", "1"), ("config", "{"), ("model_name", "n")]
    assert scenario_document([*REFERENCE, *custom]) == {
        "model": {"id": "llama-3.1-8b"},
        "hardware": {"id": "h100-sxm-80gb"},
    }
    chosen = scenario_document([("hw", "custom"), ("hw_mem", "80"), ("count", "1")])
    assert chosen == {"hardware": {"custom": {"memory_gb": 80.0}, "count": 1}}
    assert scenario_document([("hw_mem", "80")]) == {"hardware": {"custom": {"memory_gb": 80.0}}}


def test_what_is_kept_out_is_told_by_name() -> None:
    kept_out = [("hw_usd", "2"), ("hw_mem", ""), ("config", "{}"), ("under", "sglang"), ("draft_config", "{}")]
    told = names_set_aside([*REFERENCE, ("engine", "vllm"), ("draft", "qwen3-0.6b"), *kept_out, ("a", "1")])
    assert told == ["hw_usd", "config", "under", "draft_config"]
    assert not names_set_aside([*REFERENCE, ("cal_name", ""), ("cal_decode", "1.1"), ("cal_decode_n", "3")])
    assert not names_set_aside([("model", "llama-3.1-8b"), ("hw", "custom"), ("hw_usd", "2")])


def test_all_refusals_come_together() -> None:
    assert [path for path, _ in refusals([("prompt", "x"), ("util", "y"), ("batch", "z")])] == [
        "workload.prompt_tokens",
        "engine.memory_utilization",
        "workload.concurrency",
    ]


def test_names_that_nothing_reads() -> None:
    assert unknown_names(["a", "model", "b", "a", "units"], besides=("units",)) == ["a", "b"]
    assert scenario_document([("a", "1"), ("units", "gib")]) == {}


@pytest.mark.parametrize("value", [1.1, 1e15, 999999999999999.9, 1.0000000000000002, 3.0, 5e10])
def test_a_number_comes_back_to_the_last_bit(value: float) -> None:
    asked = scenario(engine={"kv_pool_bytes": value})
    assert Scenario.model_validate(scenario_document(query_items(asked))) == asked


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("46.8 GiB", 46.8 * 2**30),
        ("512MiB", 2.0**29),
        ("50 gb", 5e10),
        ("5e10", 5e10),
        ("3 TB", 3e12),
        ("12 B", 12.0),
        (" 1.5 KiB ", 1536.0),
    ],
)
def test_sizes_may_have_a_unit(text: str, size: float) -> None:
    document = scenario_document([*REFERENCE, ("activation", text)])
    assert document["engine"]["activation_bytes"] == size


@pytest.mark.parametrize("text", ["GiB", "4 PB", "4 Gibs", "0x10 B", "1,5 GiB", "nan GiB", "--1 MB", "4 G iB"])
def test_what_is_no_size(text: str) -> None:
    ((path, message),) = refusals([*REFERENCE, ("graphs", text)])
    assert path == "engine.graph_bytes"
    assert "46.8 GiB" in message


@given(st.floats(min_value=0, max_value=1e15, allow_nan=False))
def test_a_size_as_it_is_written_for_people_is_the_very_same(size: float) -> None:
    document = scenario_document([*REFERENCE, ("graphs", written_bytes(size))])
    assert document["engine"]["graph_bytes"] == size


def test_sizes_are_written_as_people_type_them() -> None:
    assert [written_bytes(size) for size in (46.8 * 2**30, 2.0**29, 5e10, 12.0, 85_520_809_984.0)] == [
        "46.8 GiB",
        "0.5 GiB",
        "50 GB",
        "12",
        "81559 MiB",
    ]


def test_what_runs_underneath_is_kept_out_beside_an_engine_that_runs_by_itself() -> None:
    assert "underneath" not in scenario_document([*REFERENCE, ("engine", "vllm"), ("under", "sglang")])["engine"]
    assert scenario_document([*REFERENCE, ("engine", "llm-d"), ("under", "sglang")])["engine"]["underneath"] == "sglang"


def test_a_draft_of_ones_own_is_chosen_as_a_model_is() -> None:
    config = '{"model_type":"llama"}'
    given_tokens = [*REFERENCE, ("draft_tokens", "3"), ("draft_config", config)]
    own = {"draft_tokens": 3, "draft": {"config": {"model_type": "llama"}}}
    for items in (given_tokens, [*given_tokens, ("draft", "custom")]):
        assert scenario_document(items)["techniques"]["speculative"] == own
    named = scenario_document([*given_tokens, ("draft", "llama-3.2-1b")])
    assert named["techniques"]["speculative"]["draft"] == {"id": "llama-3.2-1b"}
    none = scenario_document([*given_tokens, ("draft", "")])
    assert none["techniques"]["speculative"] == {"draft_tokens": 3}
    asked = scenario(techniques={"speculative": own})
    assert dict(query_items(asked))["draft"] == "custom"
    assert refusals([*REFERENCE, ("draft", "custom"), ("draft_tokens", "3")])[0][0].endswith("draft.config")
