"""The changes that levers try: over GPUs, inside the engine, on another card, and what was measured before them."""

from contextlib import suppress
from typing import Any

from app.catalog.accelerators import Confidence, Status
from app.scenario.refusal import ScenarioError
from tests.calc.optimize.test_suggestions import after, answered, fits
from tests.factories import shipped_catalog


def patches(name: str) -> list[dict[str, Any]]:
    return [dict(lever.change) for lever in answered(name).evaluation.levers]


def test_more_gpus_are_counted_over_all_replicas_and_stages() -> None:
    (split,) = [patch for patch in patches("replicas") if "parallelism" in patch]
    sizes = split["parallelism"]
    assert split["hardware"]["count"] == 4 * sizes["tensor"] * sizes["pipeline"]
    assert sizes["tensor"] > 1


def test_where_heads_do_not_divide_the_layers_do() -> None:
    assert not fits(answered("heads that do not divide"))
    (found,) = [patch["parallelism"] for patch in patches("heads that do not divide") if "parallelism" in patch]
    assert found["tensor"] == 2  # 14 heads: neither 4 nor 8
    assert found["pipeline"] > 1


def test_latents_are_shared_out_among_context_ranks() -> None:
    assert {"parallelism": {"decode_context": 8}} in patches("latent on eight")
    assert {"parallelism": {"decode_context": 8}} in patches("latent, too many")
    assert not any("decode_context" in patch.get("parallelism", {}) for patch in patches("reference"))


def engine_levers(name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for patch in patches(name):
        found |= patch.get("engine", {})
    return found


def test_memory_that_is_short_is_sought_in_the_engine_too() -> None:
    tight = engine_levers("tight")
    assert tight.get("memory_utilization") == 0.95 or "enforce_eager" in tight or "max_num_seqs" in tight
    assert not engine_levers("reference")  # where it fits, nothing of the engine is touched
    assert not engine_levers("ideal").get("enforce_eager")  # it charges nothing
    assert not engine_levers("measured pool, too small")  # the pool would not follow


def test_what_was_measured_is_forgotten_where_a_change_ends_it() -> None:
    given = ("total_memory_bytes", "weights_bytes", "activation_bytes", "non_framework_bytes", "graph_bytes")
    for lever in answered("given parts").evaluation.levers:
        change = lever.change
        dropped = {name for name in given if name in change.get("engine", {})}
        if "parallelism" in change and "tensor" in change["parallelism"]:
            assert dropped == set(given)
        if "weights" in change.get("precision", {}):
            assert dropped == {"weights_bytes"}
        if "id" in change.get("hardware", {}):
            assert dropped == {"total_memory_bytes", "non_framework_bytes"}
        if change.get("engine", {}).get("enforce_eager"):
            assert dropped == {"graph_bytes"}
        assert all(change["engine"][name] is None for name in dropped)


def test_a_card_is_judged_by_the_engines_rules_and_not_by_bytes_alone() -> None:
    before = answered("too large")
    (card,) = [patch["hardware"]["id"] for patch in patches("too large") if "id" in patch.get("hardware", {})]
    assert fits(after(before, {"hardware": {"id": card}}))
    held = before.evaluation.measures.memory
    here = before.accelerator
    assert here is not None
    smaller = [
        record.id
        for record in shipped_catalog().accelerators.values()
        if record.vendor == here.vendor
        and record.status is Status.RELEASED
        and record.confidence is not Confidence.C
        and record.year >= here.year
        and record.memory.bandwidth_gb_per_s >= here.memory.bandwidth_gb_per_s
        and shipped_catalog().devices[record.id].memory_bytes(before.scenario.memory_basis)
        < shipped_catalog().devices[card].memory_bytes(before.scenario.memory_basis)
    ]
    assert held.needed_bytes > held.budget_bytes
    for id_ in smaller:
        with suppress(ScenarioError):  # a card without the arithmetic
            assert not fits(after(before, {"hardware": {"id": id_}}))
