"""Levers: each is a patch on the scenario that does, when it is applied, exactly what it says."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.measure import measure
from app.calc.model.attention_variants import Alternative
from app.calc.optimize.suggestions import MOST_LEVERS, WORTH_IT, Aim, Lever, aim_of, levers
from app.calc.verdict import State
from app.catalog.accelerators import Confidence, Status
from app.scenario.answer import Answer, answer
from app.scenario.refusal import ScenarioError
from app.scenario.scenario import Scenario
from tests.factories import answer_to, custom_card, deployment, h100_sxm, merge_patch, shipped_catalog, workload

CASES: dict[str, dict[str, Any]] = {
    "reference": {},
    "one user": {"workload": {"concurrency": 1}},
    "saturated": {"workload": {"concurrency": None}},
    "too many users": {"workload": {"concurrency": 5000}},
    "too long": {"workload": {"prompt_tokens": 3_000_000, "concurrency": 1}},
    "too long an answer": {"workload": {"prompt_tokens": 10, "output_tokens": 3_000_000, "concurrency": 1}},
    "too large": {"model": "llama-3.1-70b"},
    "far too large": {"model": "llama-3.1-405b", "hardware": "rtx-4090"},
    "too large, saturated": {"model": "llama-3.1-70b", "workload": {"concurrency": None}},
    "capped": {"engine": {"max_num_seqs": 8}},
    "capped below what is asked": {"engine": {"max_num_seqs": 8}, "workload": {"concurrency": 100}},
    "measured pool": {"engine": {"kv_pool_bytes": 2e9}},
    "measured pool, roomy": {"engine": {"kv_pool_bytes": 50e9}},
    "measured pool, too small": {"engine": {"kv_pool_bytes": 1e6}},
    "a small share": {"engine": {"memory_utilization": 0.1}},
    "fp8": {"precision": {"weights": "fp8", "kv_cache": "fp8"}},
    "int4": {"precision": {"weights": "int4", "kv_cache": "int4"}},
    "int8 arithmetic": {"precision": {"weights": "int8", "compute": "int8"}},
    "fp32": {"precision": {"weights": "fp32", "kv_cache": "fp32"}},
    "tf32 arithmetic": {"precision": {"compute": "tf32"}},
    "fp32 in 32 bits on a card of 16": {"hardware": "v100-sxm2-16gb", "precision": {"weights": "fp32"}},
    "no fp8 arithmetic": {"hardware": "a100-sxm-40gb", "model": "qwen2.5-32b"},
    "fp16 only": {"hardware": "v100-sxm2-16gb", "model": "qwen2.5-14b"},
    "windows": {"model": "gemma-3-27b", "workload": {"prompt_tokens": 100_000}},
    "windows everywhere": {"model": "mistral-7b-v0.1", "hardware": "rtx-3060-12gb"},
    "windows everywhere, long": {
        "model": "mistral-7b-v0.1",
        "hardware": "l4",
        "workload": {"prompt_tokens": 40_000, "concurrency": 30},
    },
    "top of the range": {"hardware": "gb300", "workload": {"concurrency": None}},
    "another maker": {"hardware": "mi300x", "model": "llama-3.1-405b"},
    "marketed": {"hardware": "h100-sxm-80gb", "memory_basis": "marketed", "workload": {"concurrency": 300}},
    "custom card": {"hardware": {"custom": custom_card()}, "workload": {"concurrency": 400}},
    "custom card of fp8 alone": {
        "hardware": {"custom": {"memory_gb": 24, "bandwidth_gb_per_s": 500, "dense_tflops": {"fp8": 300}}},
        "precision": {"weights": "fp8"},
        "workload": {"concurrency": 200},
    },
    "compute-bound": {"workload": {"prompt_tokens": 8000, "output_tokens": 1}},
    "prefix": {"workload": {"prefix_hit_rate": 0.9, "concurrency": 310}},
    "one token each": {"workload": {"prompt_tokens": 1, "output_tokens": 1}},
    "a million users": {"workload": {"concurrency": 10**6}},
    "latent on eight": {"model": "deepseek-v3", "hardware": "h200-sxm", "parallelism": {"tensor": 8}},
    "latent, too many": {
        "model": "deepseek-v3",
        "hardware": "h200-sxm",
        "parallelism": {"tensor": 8},
        "workload": {"concurrency": 1000},
    },
    "heads that do not divide": {"model": "qwen2.5-0.5b", "hardware": "t4", "workload": {"concurrency": 3000}},
    "stages": {"model": "llama-3.1-70b", "hardware": "a100-sxm-40gb", "parallelism": {"pipeline": 4}},
    "replicas": {"model": "llama-3.1-70b", "hardware": {"id": "h100-sxm-80gb", "count": 4}},
    "tight": {"workload": {"concurrency": 280}},
    "sglang": {"engine": {"id": "sglang"}, "model": "llama-3.1-70b", "parallelism": {"tensor": 2}},
    "tensorrt-llm": {"engine": {"id": "tensorrt-llm"}, "model": "qwen2.5-32b", "workload": {"concurrency": 200}},
    "llama.cpp": {"engine": {"id": "llama.cpp"}, "model": "qwen3-14b", "hardware": "rtx-4090"},
    "ideal": {"engine": {"id": "ideal"}, "workload": {"concurrency": 400}},
    "an old release": {"engine": {"id": "vllm", "version": "0.9.0"}, "workload": {"concurrency": 320}},
    "activations in the way": {"model": "gemma-3-12b", "hardware": "rtx-4090", "workload": {"concurrency": 1}},
    "given parts": {
        "engine": {
            "total_memory_bytes": 84e9,
            "weights_bytes": 17e9,
            "activation_bytes": 9e9,
            "non_framework_bytes": 5e8,
            "graph_bytes": 2e9,
        },
        "workload": {"concurrency": 280},
    },
    "hybrid on two small cards": {
        "model": "qwen3.5-27b",
        "hardware": "rtx-3090",
        "parallelism": {"tensor": 2},
        "precision": {"kv_cache": "fp8"},
    },
    "targets": {"workload": {"slo_ttft_s": 0.5, "slo_tpot_s": 0.02}},
    "a target that nobody meets": {"workload": {"slo_tpot_s": 0.001}},
    "targets on four": {
        "hardware": {"id": "h100-sxm-80gb", "count": 4},
        "workload": {"slo_ttft_s": 0.5, "slo_tpot_s": 0.02},
    },
    "guesses": {"techniques": {"speculative": {"draft_tokens": 3, "method": "eagle", "acceptance_length": 2.5}}},
    "static and reserved": {
        "techniques": {"static_batching": True, "reserved_tokens": 4096, "chunked_prefill": False},
        "workload": {"answer_shape": "uniform"},
    },
    "apart": {"techniques": {"disaggregation": {"hardware": {"id": "h100-sxm-80gb"}}}},
    "as multi-head": {"techniques": {"attention": "mha"}},
    "a draft": {
        "techniques": {"speculative": {"draft_tokens": 3, "draft": {"id": "llama-3.2-1b"}}},
        "workload": {"concurrency": 300},
    },
}
case = pytest.mark.parametrize("name", CASES)


@cache
def answered(name: str) -> Answer:
    return answer_to(**CASES[name])


def after(before: Answer, change: Any) -> Answer:
    """The answer to the scenario with the patch applied, as a client would apply it."""
    return answer(Scenario.model_validate(merge_patch(before.scenario.document(), change)), shipped_catalog())


def numbers(found: Answer) -> tuple[State, float, float, float]:
    measures = found.evaluation.measures
    return (
        found.evaluation.verdict.state,
        measures.memory.max_concurrency,
        measures.serving.tpot_s.best_known,
        measures.serving.output_tokens_per_s.best_known,
    )


def promised(lever: Lever, side: str) -> tuple[State, float, float, float]:
    effect = lever.effect
    return (
        effect.state[0 if side == "before" else 1],
        getattr(effect.max_concurrency, side),
        getattr(effect.tpot_s, side),
        getattr(effect.output_tokens_per_s, side),
    )


@case
def test_each_patch_does_exactly_what_its_lever_says(name: str) -> None:
    before = answered(name)
    for lever in before.evaluation.levers:
        assert promised(lever, "before") == numbers(before)
        assert promised(lever, "after") == numbers(after(before, lever.change))


@case
def test_the_best_come_first_and_they_are_few(name: str) -> None:
    found = answered(name).evaluation.levers
    assert len(found) <= MOST_LEVERS == 8
    was = {promised(lever, "before")[0] for lever in found}
    aim = aim_of(answered(name).evaluation.deployment)
    # What makes it fit comes first, then what moves the number that the user cares about.
    order = [
        (
            lever.effect.state[1] is State.DOES_NOT_FIT,
            not (was != {State.FITS} and lever.effect.state[1] is State.FITS),
            -lever.effect.gain(aim),
        )
        for lever in found
    ]
    assert order == sorted(order)
    assert len({lever.label for lever in found}) == len(found)


@case
def test_nothing_useless_is_proposed(name: str) -> None:
    before = answered(name)
    for lever in before.evaluation.levers:
        was, now = numbers(before), promised(lever, "after")
        if was[0] is State.DOES_NOT_FIT:
            assert now[0] is not State.DOES_NOT_FIT or now[1] > was[1]
        else:
            assert now[0] is not State.DOES_NOT_FIT
            eased = was[0] is State.TIGHT and now[0] is State.FITS
            better = now[1] > WORTH_IT * was[1] or now[3] > WORTH_IT * was[3] or WORTH_IT * now[2] < was[2]
            assert eased or better or lever.effect.gain(Aim.GOODPUT) > WORTH_IT


def single_changes(before: Answer) -> Iterator[dict[str, Any]]:
    """Everything that a reader would try, one thing at a time."""
    for kv_cache in ("fp8",):
        yield {"precision": {"kv_cache": kv_cache}}
    yield {"precision": {"weights": "fp8", "compute": "fp8"}}
    yield {"precision": {"weights": "int4", "compute": "bf16"}}
    yield {"precision": {"weights": "int4", "compute": "fp16"}}
    held = before.evaluation.measures.memory
    if before.scenario.workload.concurrency is not None:
        yield {"workload": {"concurrency": max(1, held.max_concurrency)}}
    prompt = held.max_context_tokens - before.scenario.workload.output_tokens
    if 1 <= prompt < before.scenario.workload.prompt_tokens:
        yield {"workload": {"prompt_tokens": prompt}}
    here = before.accelerator
    if before.scenario.engine.kv_pool_bytes is None:
        for ranks in (2, 4, 8):
            if ranks > before.scenario.parallelism.tensor:
                yield {"hardware": {"count": None}, "parallelism": {"tensor": ranks}}
        for stages in (2, 4, 8):
            yield {"hardware": {"count": None}, "parallelism": {"tensor": 8, "pipeline": stages}}
        for engine in ({"enforce_eager": True}, {"memory_utilization": 0.95}, {"max_batched_tokens": 2048}):
            yield {"engine": engine}
    if here is not None and before.scenario.engine.kv_pool_bytes is None:  # measured here, unknown there
        for record in shipped_catalog().accelerators.values():
            on_sale = record.status is Status.RELEASED and record.confidence is not Confidence.C
            newer = record.vendor == here.vendor and record.year >= here.year
            if on_sale and newer and record.memory.bandwidth_gb_per_s >= here.memory.bandwidth_gb_per_s:
                yield {"hardware": {"id": record.id}}


def fits(found: Answer) -> bool:
    return found.evaluation.verdict.state is not State.DOES_NOT_FIT


@pytest.mark.parametrize("name", [name for name in CASES if not fits(answer_to(**CASES[name]))])
def test_what_does_not_fit_gets_a_lever_that_makes_it_fit_when_one_exists(name: str) -> None:
    before = answered(name)

    def helps(change: dict[str, Any]) -> bool:
        narrower = change.get("precision", {})
        if "kv_cache" in narrower and before.scenario.precision.kv_cache.bits <= 8:
            return False
        bits = before.evaluation.deployment.precision.weights.narrowest.element.bits
        if "weights" in narrower and bits <= (8 if narrower["weights"] == "fp8" else 4):
            return False
        try:
            return fits(after(before, change))
        except ScenarioError:
            return False

    exists = any(helps(change) for change in single_changes(before))
    found = before.evaluation.levers
    assert bool(found and promised(found[0], "after")[0] is not State.DOES_NOT_FIT) is exists


def test_the_reference_case_is_told_of_room_narrower_numbers_and_a_newer_card() -> None:
    found = {lever.label: lever for lever in answered("reference").evaluation.levers}
    room = answered("reference").evaluation.measures.memory.max_concurrency
    assert found[f"Serve as many at a time as fit: {room:,}"].change == {"workload": {"concurrency": room}}
    assert "Weights and arithmetic in FP8" in found


def test_a_70b_model_on_one_h100_fits_in_int4_in_fp8_or_on_a_larger_card() -> None:
    patches = [dict(lever.change) for lever in answered("too large").evaluation.levers]
    assert {"precision": {"weights": "int4", "compute": "bf16"}} in patches
    assert any("hardware" in patch for patch in patches)


def test_too_many_users_are_told_how_many_fit() -> None:
    room = answered("too many users").evaluation.measures.memory.max_concurrency
    patches = [dict(lever.change) for lever in answered("too many users").evaluation.levers]
    assert {"workload": {"concurrency": room}} in patches


def test_a_prompt_that_is_too_long_is_told_how_long_it_may_be() -> None:
    before = answered("too long")
    (patch,) = [
        lever.change for lever in before.evaluation.levers if "prompt_tokens" in lever.change.get("workload", {})
    ]
    prompt = patch["workload"]["prompt_tokens"]
    assert prompt + 500 == before.evaluation.measures.memory.max_context_tokens
    assert fits(after(before, patch))
    assert not fits(after(before, {"workload": {"prompt_tokens": prompt + 1}}))


def test_a_custom_card_is_never_told_to_become_another() -> None:
    for lever in answered("custom card").evaluation.levers:
        assert "id" not in lever.change.get("hardware", {})


def test_no_lever_proposes_a_scenario_that_the_form_refuses() -> None:
    # Two-token requests on a large card: 15 million sequences would fit, and the form takes a million at most.
    small = {"prompt_tokens": 1, "output_tokens": 1}
    before = answer_to("falcon-7b", "b300-sxm", workload=small, engine={"id": "ideal"})
    assert before.evaluation.measures.memory.max_concurrency == 10**6
    for lever in before.evaluation.levers:
        assert promised(lever, "after") == numbers(after(before, lever.change))


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gemma-3-27b", "llama-3.1-70b", "falcon-40b", "qwen3-0.6b"])
@pytest.mark.parametrize("hardware", list(shipped_catalog().devices)[::6])
def test_across_the_catalog_each_patch_does_what_it_says(model: str, hardware: str) -> None:
    try:
        before = answer_to(model, hardware, workload={"prompt_tokens": 5000, "output_tokens": 100, "concurrency": 20})
    except ScenarioError:
        rates = shipped_catalog().devices[hardware].peak_flops_per_s
        assert not {"bf16", "fp16"} & set(rates)
        return
    for lever in before.evaluation.levers:
        assert promised(lever, "after") == numbers(after(before, lever.change))


def faster(name: str, factor: float, memory_gb: float = 80) -> Accelerator:
    card = h100_sxm()
    return replace(
        card,
        id=name,
        name=name,
        bandwidth_bytes_per_s=card.bandwidth_bytes_per_s * factor,
        memory_marketed_bytes=memory_gb * 1e9,
        memory_reported_bytes=None,
    )


def next_card(asked: Deployment, *cards: Accelerator) -> str | None:
    found = [
        lever.change["hardware"]["id"]
        for lever in levers(asked, measure(asked), [Alternative(card, 256) for card in cards])
        if "id" in lever.change.get("hardware", {})
    ]
    return found[0] if found else None


def test_where_it_fits_the_next_card_is_the_slowest_that_is_a_tenth_faster() -> None:
    asked = deployment(workload=workload(concurrency=1))
    by_a_twentieth, by_a_fifth, by_half = faster("5 %", 1.05), faster("20 %", 1.2), faster("50 %", 1.5)
    assert next_card(asked, by_half, by_a_twentieth, by_a_fifth) == "20 %"
    assert next_card(asked, by_a_twentieth) is None
    assert next_card(asked, replace(by_a_fifth, peak_flops_per_s={Dtype.FP8: 1e15})) is None  # other arithmetic
    assert next_card(asked, faster("small", 2, memory_gb=17)) is None  # 15.3 GB of it for 16.06 GB of weights


def test_where_it_does_not_fit_the_next_card_is_the_smallest_that_holds_it_and_is_no_slower() -> None:
    asked = deployment(workload=workload(concurrency=400))  # 16.06 GB and 400 × 196.6 MB are 94.7 GB: 106 GB of card
    assert next_card(asked, faster("large", 3, 200), faster("enough", 1, 110), faster("short", 1, 100)) == "enough"
    assert next_card(asked, faster("slow", 0.9, 200)) is None


def test_a_pool_measured_on_this_card_is_not_carried_to_another() -> None:
    engine = {"kv_pool_bytes": 60e9}
    found = answer_to(workload={"concurrency": None}, engine=engine).evaluation.levers
    assert found
    assert not any("hardware" in lever.change for lever in found)
    assert any("hardware" in lever.change for lever in answer_to(workload={"concurrency": None}).evaluation.levers)


def test_with_targets_levers_are_ranked_by_goodput_and_say_it() -> None:
    found = answered("targets")
    good = found.evaluation.goodput
    assert good is not None
    for lever in found.evaluation.levers:
        change = lever.effect.goodput_per_s
        assert change is not None
        assert change.before == good.rate_per_s
        then = after(found, lever.change).evaluation.goodput
        assert change.after == (then.rate_per_s if then else 0.0)


def test_without_targets_no_lever_speaks_of_goodput() -> None:
    assert all(lever.effect.goodput_per_s is None for lever in answered("reference").evaluation.levers)


def test_what_is_not_used_yet_is_proposed_and_what_is_used_is_not() -> None:
    plain = [lever.label for lever in answered("reference").evaluation.levers]
    assert any("EAGLE-3" in label for label in plain)
    guessing = [lever.label for lever in answered("guesses").evaluation.levers]
    assert not any("Guess" in label for label in guessing)
    labels = [lever.label for lever in answered("static and reserved").evaluation.levers]
    assert "Fill places as they fall free" in labels
    assert any("GQA" in label for label in [lever.label for lever in answered("as multi-head").evaluation.levers])
