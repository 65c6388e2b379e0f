"""A scenario in, an answer out: the catalog rows behind it, what a reader must know, and cards to move to."""

from typing import Any

import pytest

from app.calc.evaluate import FORMULA_VERSION, evaluate
from app.calc.optimize.suggestions import Lever
from app.catalog.accelerators import Confidence, Status
from app.scenario.answer import Answer, answer
from app.scenario.document import document
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from app.scenario.scenario import Scenario
from app.web.query import answer_from
from tests.factories import answer_to, custom_card, scenario, scenario_document, shipped_catalog

CATALOG = shipped_catalog()
WITH_16_BITS = [id_ for id_, device in CATALOG.devices.items() if "bf16" in device.peak_flops_per_s]
each_card = pytest.mark.parametrize("hardware", WITH_16_BITS)
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
}


def test_the_answer_carries_the_rows_and_the_versions_behind_it() -> None:
    found = answer_to()
    assert found.model is CATALOG.models["llama-3.1-8b"]
    assert found.accelerator is CATALOG.accelerators["h100-sxm-80gb"]
    assert (found.catalog_version, found.formula_version) == (CATALOG.version, FORMULA_VERSION)
    assert found.scenario.precision.compute is not None


def test_a_model_and_a_card_of_ones_own_have_no_rows() -> None:
    asked = scenario_document(hardware={"custom": custom_card()}) | {"model": {"config": TINY}}
    found = answer(Scenario.model_validate(asked), CATALOG)
    assert (found.model, found.accelerator) == (None, None)
    assert [notice.code for notice in found.notices] == ["memory_not_reported", "not_measured", "assumed_overheads"]


def test_the_same_question_has_the_same_answer() -> None:
    assert answer_to() == answer_to()
    first = answer_to()
    assert answer(first.scenario, CATALOG) == first  # the normalised scenario asks the same


def test_the_evaluation_is_that_of_the_resolved_deployment() -> None:
    found = answer_to(workload={"prompt_tokens": 77, "concurrency": None})
    deployment = resolve(scenario(workload={"prompt_tokens": 77, "concurrency": None}), CATALOG).deployment
    assert found.evaluation.deployment == deployment
    alone = evaluate(deployment)
    assert found.evaluation.measures == alone.measures
    assert found.evaluation.explanations == alone.explanations
    assert found.evaluation.rule_of_thumb == alone.rule_of_thumb
    assert found.evaluation.verdict == alone.verdict


def test_what_does_not_fit_is_answered_all_the_same() -> None:
    found = answer_to("llama-3.1-405b", "rtx-4090").evaluation
    assert found.verdict.state.value == "does_not_fit"
    assert found.measures.memory.max_concurrency == 0
    assert found.measures.decode.ceiling_s > 0
    assert found.explanations


def test_what_is_refused_has_no_answer() -> None:
    with pytest.raises(ScenarioError):
        answer_to("nothing")


def notices(hardware: str, **sections: Any) -> list[str]:
    return [notice.code for notice in answer_to(hardware=hardware, **sections).notices]


@each_card
def test_thin_sources_announcements_and_caveats_are_told(hardware: str) -> None:
    record, codes = CATALOG.accelerators[hardware], notices(hardware)
    assert ("uncertain_hardware" in codes) is (record.confidence is Confidence.C or bool(record.uncertain))
    assert ("announced_hardware" in codes) is (record.status is Status.ANNOUNCED)
    assert codes.count("hardware_caveat") == len(record.caveats)
    assert ("memory_not_reported" in codes) is (record.memory.reported_mib is None)
    assert "ideal_engine" not in codes
    assert notices(hardware, engine={"id": "ideal"}).count("ideal_engine") == 1


@pytest.mark.parametrize("model", CATALOG.models)
def test_the_caveats_of_a_model_are_told_by_its_name(model: str) -> None:
    record = CATALOG.models[model]
    told = [notice.message for notice in answer_to(model).notices if notice.code == "model_caveat"]
    assert told == [f"{record.name}: {caveat}" for caveat in record.caveats]


def card_levers(model: str, hardware: str, **sections: Any) -> list[Lever]:
    found = answer_to(model, hardware, **sections).evaluation.levers
    return [lever for lever in found if "id" in lever.change.get("hardware", {})]


@each_card
@pytest.mark.parametrize("model", ["qwen3-0.6b", "llama-3.1-70b"])
def test_a_card_to_move_to_is_of_the_same_maker_on_sale_well_attested_and_no_older(model: str, hardware: str) -> None:
    here = CATALOG.accelerators[hardware]
    for lever in card_levers(model, hardware):
        there = CATALOG.accelerators[lever.change["hardware"]["id"]]
        assert there.id != here.id
        assert there.vendor == here.vendor
        assert there.status is Status.RELEASED
        assert there.confidence is not Confidence.C
        assert there.year >= here.year
        assert there.memory.bandwidth_gb_per_s >= here.memory.bandwidth_gb_per_s
        assert lever.label == f"Move to {there.name}"


def test_a_70b_model_on_one_h100_is_told_of_the_smallest_card_that_holds_it() -> None:
    (lever,) = card_levers("llama-3.1-70b", "h100-sxm-80gb", workload={"concurrency": 1})
    there = CATALOG.accelerators[lever.change["hardware"]["id"]]
    # 141.1 GB of weights and a sequence in 0.9 of the card: no H200 (150.8 GB), but a card of 180 GB and more
    assert there.memory.marketed_gb >= 180


def test_a_custom_card_has_no_maker_and_no_card_to_move_to() -> None:
    found = answer_to("llama-3.1-70b", {"custom": custom_card()}).evaluation.levers
    assert not [lever for lever in found if "id" in lever.change.get("hardware", {})]


@pytest.mark.parametrize(
    ("model", "weights", "told"),
    [
        ("deepseek-v3", "bf16", True),
        ("deepseek-v3", None, False),
        ("deepseek-v3", "int4", False),
        ("llama-3.1-8b", "bf16", False),
        ("llama-3.1-8b", "fp32", True),
        ("gpt-oss-120b", "fp8", True),
    ],
)
def test_weights_wider_than_the_published_ones_are_told(model: str, weights: str | None, told: bool) -> None:
    found = answer_to(model, precision={"weights": weights} if weights else {})
    messages = [notice.message for notice in found.notices if notice.code == "wider_than_shipped"]
    assert bool(messages) is told
    if model == "deepseek-v3" and told:
        (message,) = messages
        assert "673 GB" in message
        assert "1.34 TB" in message


def test_several_gpus_are_told_what_their_link_means() -> None:
    eight = answer_to("llama-3.1-70b", "h100-sxm-80gb", parallelism={"tensor": 8})
    assert [notice.code for notice in eight.notices if "all_reduce" in notice.code] == ["ring_all_reduce"]
    assert "beyond_node" not in {notice.code for notice in eight.notices}
    many = answer_to("llama-3.1-70b", "h100-sxm-80gb", parallelism={"tensor": 16})
    (told,) = [notice.message for notice in many.notices if notice.code == "beyond_node"]
    assert "nodes of 8; 16 of them" in told
    unlinked = answer_to("llama-3.1-70b", {"custom": custom_card()}, parallelism={"tensor": 8})
    assert "link_unknown" in {notice.code for notice in unlinked.notices}


def test_the_working_of_one_gpu_of_several_has_a_symbol_of_its_own() -> None:
    for engine, one, fitting in (
        ("ideal", "L × (r + p) × b × c", "⌊pool ÷ KV_one⌋"),
        ("vllm", "(⌈c ÷ n⌉) × b", "⌊⌊pool ÷ b⌋ ÷ D⌋"),
        ("sglang", "c × b", "min(slots, ⌊T ÷ c⌋)"),
    ):
        found = answer_to("deepseek-v3", "h200-sxm", parallelism={"tensor": 8}, engine={"id": engine}).evaluation
        by_id = {explanation.id: explanation for explanation in found.explanations}
        assert by_id["memory.gpu_bytes_per_sequence"].formula == one
        assert by_id["memory.max_concurrency"].formula == f"min({fitting}, most)"
        assert "KV_sequence" in by_id["memory.kv_bytes_per_token"].formula


def test_a_setting_without_effect_is_said_and_changes_nothing() -> None:
    def codes(found: Answer) -> list[str]:
        return [notice.message for notice in found.notices if notice.code == "setting_without_effect"]

    plain, spread = answer_to(), answer_to(workload={"answer_shape": "exponential"})
    assert codes(plain) == []
    (told,) = codes(spread)
    assert "static batches" in told
    assert document(spread)["serving"] == document(plain)["serving"]
    assert codes(answer_to(workload={"answer_shape": "exponential"}, techniques={"static_batching": True})) == []
    hardware = {"id": None, "custom": custom_card()}
    (told,) = codes(answer_to(hardware=hardware, memory_basis="marketed"))
    assert "marketed size" in told
    reported = {"id": None, "custom": custom_card(memory_reported_mib=80_000)}
    assert codes(answer_to(hardware=reported, memory_basis="marketed")) == []


def test_what_a_query_says_in_vain_is_said() -> None:
    items = [("model", "llama-3.1-8b"), ("hw", "h100-sxm-80gb")]
    plain, priced = (answer_from([*items, *more], shipped_catalog()) for more in ([], [("hw_usd", "2")]))
    (told,) = [n.message for n in priced.notices if n.code == "setting_without_effect"]
    assert "Price an hour (hw_usd)" in told
    assert document(priced) == document(plain) | {"warnings": document(priced)["warnings"]}
