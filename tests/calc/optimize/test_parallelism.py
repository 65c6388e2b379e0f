"""Ways of using the same GPUs: sizes by hand, what divides and fits, and the change that leads there and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.calc.measure import measure
from app.calc.model.architecture import LayerGroup
from app.calc.model.split import Split
from app.calc.optimize.optimization import Asked, Level, Optimization
from app.calc.optimize.parallelism import GPUS, LINK, PER_GPU, SPEC
from app.calc.optimize.sides import THROUGHPUT, TPOT
from tests.calc.optimize.asking import by_hand, changed, check, column, models_and_cards, numbers, of_product
from tests.calc.strategies import catalog_architectures, deployments, repeatable
from tests.factories import deployment, scenario_document, workload


def notes(found: Optimization) -> dict[str, str]:
    assert found.variants is not None
    return {row.label: row.note for row in found.variants.rows}


def here(found: Optimization) -> str:
    assert found.variants is not None
    return next(row.label for row in found.variants.rows if row.is_here)


def test_all_reduces_of_the_reference_case() -> None:
    """32 layers with two of them each: 2·7/8 of 64 tokens of 4,096 in 16 bits."""
    found = SPEC.compare(by_hand())
    expected = 2 * 7 / 8 * 64 * 64 * 4096 * 2
    assert column(found, "link_bytes")["TP 8"] == expected == 58_720_256
    assert next(told.value for told in found.explanations if told.id.endswith("all_reduce")) == expected
    assert numbers(found, LINK) == (0, expected)
    assert numbers(found, GPUS) == (1, 8)


def test_ceilings_divide_as_the_work_does() -> None:
    alone = by_hand().measures.decode.ceiling_s
    tpot = column(SPEC.compare(by_hand()), "tpot")
    assert tpot["1 GPU"] == tpot["PP 8"] or (tpot["PP 8"] or 0) < alone  # parts of the batch pass the stages
    assert tpot["TP 8"] == pytest.approx(alone / 8, rel=0.02)  # the link is unknown; norms are copied
    assert (tpot["8 replicas"] or 0) < alone  # eight users each


def test_a_scenario_of_one_card_opens_to_eight() -> None:
    found = SPEC.compare(of_product(workload={"concurrency": 1, "prompt_tokens": 1000, "output_tokens": 500}))
    assert not found.is_used
    assert here(found) == "1 GPU"
    assert found.change["hardware"] == {"count": 8}
    assert found.change["parallelism"]["tensor"] == 8
    assert "TP 8" in found.sentence
    assert "The scenario’s one GPU gives" in found.sentence


def test_what_is_split_best_closes_to_the_fewest_that_hold_it() -> None:
    found = SPEC.compare(of_product("llama-3.1-70b", parallelism={"tensor": 8}))
    assert found.is_used
    assert here(found) == "TP 8"
    assert numbers(found, GPUS) == (2, 8) or numbers(found, GPUS) == (4, 8)
    assert found.label.startswith("Back to")
    assert notes(found)["8 replicas"] == "does not fit"
    assert column(found, "throughput")["8 replicas"] is None


def test_several_cards_stay_as_many() -> None:
    found = SPEC.compare(of_product("llama-3.1-70b", parallelism={"pipeline": 8}))
    assert not found.is_used
    assert found.change["hardware"] == {"count": 8}
    assert numbers(found, GPUS) == (8, 8)
    before, after = numbers(found, THROUGHPUT, Level.EXPECTED)
    assert (after or 0) > (before or 0)


def test_replicas_of_groups_are_kept() -> None:
    cards = {"id": "h100-sxm-80gb", "count": 16}
    found = SPEC.compare(of_product("llama-3.1-70b", cards, parallelism={"pipeline": 4}))
    assert here(found) == "PP 4, 4 times"
    assert found.change["hardware"] == {"count": 16}
    assert "16 replicas" in notes(found)


def test_experts_bring_two_ways_more() -> None:
    dense, sparse = (
        notes(SPEC.compare(of_product(model, "h200-sxm", parallelism={"tensor": 8})))
        for model in ("llama-3.1-70b", "deepseek-v3")
    )
    assert set(sparse) - set(dense) == {"TP 8 × EP 8", "DP 8 × EP 8"}


def test_data_parallel_attention_copies_no_latent() -> None:
    room = column(SPEC.compare(of_product("deepseek-v3", "h200-sxm", parallelism={"tensor": 8})), "capacity")
    assert (room["DP 8 × EP 8"] or 0) > 4 * (room["TP 8"] or 1)


def test_what_does_not_divide_is_said_in_the_row() -> None:
    found = SPEC.compare(of_product("qwen2.5-0.5b"))  # 14 heads, 24 layers
    assert "14 attention heads do not divide among 8 GPUs" in notes(found)["TP 8"]
    assert column(found, "tpot")["TP 8"] is None
    assert column(found, "tpot")["PP 8"] is not None


@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"parallelism": {"tensor": 8}},
        {"parallelism": {"pipeline": 2}, "engine": {"activation_bytes": 1e9, "kv_pool_bytes": 1e10}},
        {"workload": {"prompt_tokens": 2000, "output_tokens": 10, "concurrency": None}},
    ],
)
def test_the_change_leads_to_the_other_side(sections: dict[str, dict[str, float | None]]) -> None:
    document = scenario_document(**sections)
    found = SPEC.compare(of_product(**sections))
    there = changed(document, found)
    side = 0 if found.is_used else 1
    assert there.deployment.gpus == numbers(found, GPUS)[side]
    assert there.measures.decode.ceiling_s == numbers(found, TPOT, Level.CEILING)[side]
    assert there.deployment.engine.given.kv_pool is None


def test_no_gain_leaves_the_scenario_as_it_is() -> None:
    """TP 8 with whole experts is as fast as with their widths: nothing to move for."""
    found = SPEC.compare(of_product("deepseek-v3", "h200-sxm", parallelism={"tensor": 8, "expert": 8}))
    assert found.is_used
    assert here(found) == "TP 8 × EP 8"


def test_where_nothing_holds_it_there_is_nothing_to_tell() -> None:
    found = SPEC.compare(of_product("deepseek-v3", "rtx-4090", parallelism={"tensor": 2}))
    check(found, "parallelism")
    assert found.refused == "No way of splitting 2 of these cards holds a single sequence."


def test_those_who_find_no_room_wait() -> None:
    found = SPEC.compare(of_product(workload={"prompt_tokens": 3000, "output_tokens": 3000, "concurrency": 900}))
    assert "the others wait" in notes(found)["1 GPU"]
    assert found.refused is None


@repeatable
@given(
    deployments(
        architecture=catalog_architectures(),
        workload=st.sampled_from([workload(1, 1, 1), workload(900, 90, 64), workload(50, 50, 5000)]),
    )
)
def test_any_model_is_split_within_its_floors(asked: Deployment) -> None:
    found = SPEC.compare(Asked(asked, measure(asked)))
    check(found, "parallelism")
    if found.refused is None:
        rates, each = column(found, "throughput"), column(found, "throughput_per_gpu")
        for label, rate in rates.items():
            assert rate is None or (each[label] or 0) <= rate


def test_it_is_told_of_any_model_and_card() -> None:
    for asked in models_and_cards():
        check(SPEC.compare(asked), "parallelism")


def test_the_yield_of_a_card_is_what_all_give_by_their_number() -> None:
    found = SPEC.compare(by_hand())
    whole, each = numbers(found, THROUGHPUT, Level.CEILING), numbers(found, PER_GPU, Level.CEILING)
    assert each == (whole[0], (whole[1] or 0) / 8)


def test_one_layer_is_no_pipeline() -> None:
    model = deployment().architecture
    small = LayerGroup(1, model.layers[0].mixer, model.layers[0].feed_forwards)
    asked = deployment(architecture=type(model)("one", 4096, 1000, (small,)), split=Split(tensor=4))
    assert "1 layers cannot be cut into 4" in notes(SPEC.compare(Asked(asked, measure(asked))))["PP 4"]
