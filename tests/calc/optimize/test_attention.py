"""MHA, GQA, MQA and MLA beside each other: bytes and intensity by hand, which is open, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment
from app.calc.measure import measure
from app.calc.memory.engines.parts import Given
from app.calc.model.architecture import Architecture
from app.calc.model.attention_variants import AttentionVariant, as_variant
from app.calc.model.split import Split
from app.calc.optimize.attention import INTENSITY, SEQUENCE, SPEC, TOKEN, token_bytes
from app.calc.optimize.optimization import Asked, Level
from app.calc.optimize.sides import CAPACITY, TPOT
from tests.calc.optimize.asking import by_hand, changed, check, column, models_and_cards, numbers, of_product
from tests.calc.strategies import deployments, repeatable
from tests.factories import deployment, engine, llama_3_1_8b, scenario_document, shipped_catalog, workload


def test_the_reference_case() -> None:
    found = SPEC.compare(by_hand())
    assert found.is_used
    assert found.change == {"techniques": {"attention": "mha"}}
    assert numbers(found, TOKEN) == (524_288, 131_072)
    assert numbers(found, SEQUENCE) == (1500 * 524_288, 1500 * 131_072)
    assert numbers(found, INTENSITY) == (1, 4)
    assert column(found, "token") == {"MHA": 524_288, "GQA": 131_072, "MQA": 16_384, "MLA": 36_864}
    assert "4 times less" in found.sentence


def test_intensity_of_decode_by_hand() -> None:
    """FLOP a byte in 16 bits: query heads for each KV head; a latent 2·H·(r + p + r) a row of 2·(r + p) bytes."""
    found = SPEC.compare(by_hand())
    latent = 32 * (576 + 512) / 576
    expected = {"MHA": 1, "GQA": 4, "MQA": 32, "MLA": pytest.approx(latent)}
    assert column(found, "intensity") == expected
    assert latent == pytest.approx(60.44, abs=0.01)


def test_room_by_hand() -> None:
    """Nine tenths of 81,559 MiB less the weights, in whole sequences of 1,500 tokens."""
    budget, attention = 0.9 * 81_559 * 2**20, 2 * 32 * 2 * 4096 * 1024  # keys and values, bytes
    before, after = numbers(SPEC.compare(by_hand()), CAPACITY)
    assert after == (budget - 16_060_522_496) // (1500 * 131_072)
    assert before == (budget - 16_060_522_496 - 3 * attention) // (1500 * 524_288)


def test_a_latent_model_as_heads() -> None:
    found = SPEC.compare(of_product("deepseek-v3", "h200-sxm", parallelism={"tensor": 8}))
    assert numbers(found, TOKEN) == (2 * 2_498_560, 70_272)
    assert "71.1 times less" in found.sentence
    room = column(found, "capacity")
    assert (room["MHA"] or 0) < (room["MLA"] or 0) < (room["GQA"] or 0)  # eight ranks copy the latent, not the heads


def test_a_model_of_plain_heads_opens_to_groups() -> None:
    found = SPEC.compare(of_product("llama-2-7b"))
    assert not found.is_used
    assert found.change == {"techniques": {"attention": "gqa"}}
    assert numbers(found, TOKEN) == (524_288, 131_072)


def put_into(published: Architecture, variant: AttentionVariant) -> Asked:
    return by_hand(architecture=as_variant(published, variant), published_architecture=published)


def test_what_was_put_into_a_model_goes_back_to_the_published_one() -> None:
    published = shipped_catalog().architectures["qwen2.5-7b"]
    found = SPEC.compare(put_into(published, AttentionVariant.MHA))
    assert not found.is_used
    assert found.change == {"techniques": {"attention": None}}
    assert numbers(found, TOKEN) == (401_408, 57_344)  # its own 4 KV heads
    other = SPEC.compare(put_into(published, AttentionVariant.MQA))
    assert other.is_used
    assert other.change == {"techniques": {"attention": "mha"}}
    assert numbers(other, TOKEN) == (401_408, 14_336)


@pytest.mark.parametrize("attention", [None, "mha", "mqa", "mla"])
def test_the_change_leads_to_the_other_side(attention: str | None) -> None:
    document = scenario_document(techniques={"attention": attention})
    found = SPEC.compare(of_product(techniques={"attention": attention}))
    assert found.is_used is (attention != "mha")
    there = changed(document, found)
    assert token_bytes(there.deployment) == numbers(found, TOKEN)[0 if found.is_used else 1]
    assert there.measures.decode.ceiling_s == numbers(found, TPOT, Level.CEILING)[0 if found.is_used else 1]


def test_context_ranks_are_given_up_where_heads_leave_no_copies() -> None:
    asked = of_product("deepseek-v3", "h200-sxm", parallelism={"tensor": 8, "decode_context": 8})
    found = SPEC.compare(asked)
    assert found.change == {"techniques": {"attention": "mha"}, "parallelism": {"decode_context": 1}}
    assert found.variants is not None
    notes = {row.label: row.note for row in found.variants.rows}
    assert "without context ranks" in notes["MHA"]
    assert "without context ranks" not in notes["MLA"]


def test_a_measured_pool_is_forgotten_on_the_other_side() -> None:
    found = SPEC.compare(by_hand(engine=engine(given=Given(kv_pool=6e10))))
    assert found.change == {"techniques": {"attention": "mha"}, "engine": {"kv_pool_bytes": None}}
    assert numbers(found, CAPACITY)[1] == 6e10 // (1500 * 131_072)


def test_heads_that_do_not_divide_are_told_in_the_row() -> None:
    published = shipped_catalog().architectures["falcon-7b"]
    found = SPEC.compare(by_hand(architecture=published))
    assert found.variants is not None
    (row,) = [row for row in found.variants.rows if row.label == "GQA"]
    assert set(row.values) == {None}
    assert "71 heads" in row.note


def test_what_is_none_of_the_four_is_refused() -> None:
    found = SPEC.compare(of_product("deepseek-v4-flash", "b200-sxm"))
    check(found, "attention")
    assert found.refused is not None
    assert "DeepSeek-V4-Flash" in found.refused


def test_tensor_ranks_that_no_variant_but_its_own_allows() -> None:
    here = deployment(split=Split(tensor=32))
    found = SPEC.compare(Asked(here, measure(here)))
    check(found, "attention")
    assert token_bytes(here) == 131_072


@repeatable
@given(deployments(workload=st.sampled_from([workload(1, 1, 1), workload(8000, 200, 1), workload(50, 50, 5000)])))
def test_fewer_heads_never_keep_more_nor_take_longer(here: Deployment) -> None:
    found = SPEC.compare(Asked(here, measure(here)))
    check(found, "attention")
    if found.refused is not None:
        return
    kept, weights, tpot = (column(found, name) for name in ("token", "weights", "tpot_ceiling"))
    for told in (kept, weights, tpot):
        if told["MHA"] is not None and told["MQA"] is not None and kept["MLA"] != kept["MHA"]:
            assert told["MQA"] <= told["MHA"] * (1 + 1e-9)


def test_it_is_told_of_any_model_and_card() -> None:
    for asked in models_and_cards():
        check(SPEC.compare(asked), "attention")


def test_the_reference_model_is_left_alone() -> None:
    assert as_variant(llama_3_1_8b(), AttentionVariant.GQA) == llama_3_1_8b()
