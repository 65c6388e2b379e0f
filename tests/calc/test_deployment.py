"""The parts of all stages are the whole model, whatever stands between its layers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import stage_architectures
from app.calc.dtypes import Dtype
from app.calc.memory.cache import cache_shape, kv_bytes_per_sequence
from app.calc.model.architecture import Architecture
from app.calc.model.layers.parts import WeightGroup
from app.calc.model.parameters import count_parameters
from app.calc.model.split import ONE_GPU, Split, SplitError
from tests.calc.strategies import architectures, catalog_architectures, repeatable
from tests.factories import llama_3_1_8b, shipped_catalog

CATALOG = shipped_catalog()


def stages(architecture: Architecture, pipeline: int, tensor: int = 1) -> tuple[Architecture, ...]:
    return stage_architectures(architecture, Split(tensor, pipeline))


def test_one_stage_is_the_model_itself() -> None:
    assert stages(llama_3_1_8b(), 1) == (llama_3_1_8b(),)
    assert stage_architectures(llama_3_1_8b(), ONE_GPU) == (llama_3_1_8b(),)


def test_sixty_one_layers_on_two_stages() -> None:
    first, last = stages(CATALOG.architectures["deepseek-v3"], 2)
    assert (first.n_layers, last.n_layers) == (31, 30)
    # Three dense layers stand first, then 58 with experts.
    assert [group.count for group in first.layers] == [3, 28]
    assert [group.count for group in last.layers] == [30]
    assert (first.holds_embedding, first.holds_head) == (True, False)
    assert (last.holds_embedding, last.holds_head) == (False, True)


def test_the_middle_has_neither_table() -> None:
    parts = stages(llama_3_1_8b(), 4)
    assert [(part.holds_embedding, part.holds_head) for part in parts] == [
        (True, False),
        (False, False),
        (False, False),
        (False, True),
    ]
    layer = 218_112_000  # 41,943,040 of attention, 176,160,768 of the block, 8,192 of two norms
    table, last_norm = 128_256 * 4096, 4096
    assert [count_parameters(part).text for part in parts] == [
        8 * layer + table,
        8 * layer,
        8 * layer,
        8 * layer + table + last_norm,
    ]


def test_a_tied_table_is_held_at_both_ends() -> None:
    tied = replace(llama_3_1_8b(), tied_embeddings=True)
    first, last = stages(tied, 2)
    table = 128_256 * 4096
    whole = count_parameters(tied).text
    assert count_parameters(first).text + count_parameters(last).text == whole + table
    assert count_parameters(first).groups[WeightGroup.EMBEDDING].total == table
    assert count_parameters(last).groups[WeightGroup.HEAD].total == table


def test_what_stands_at_an_end_stands_there_alone() -> None:
    record = CATALOG.models["deepseek-v3"]
    first, last = stages(record.architecture_with_mtp, 2)
    assert first.mtp is None
    assert last.mtp == record.mtp
    seeing = CATALOG.architectures["gemma-3-27b"]
    first, last = stages(seeing, 2)
    assert (first.vision_params, last.vision_params) == (seeing.vision_params, 0)
    assert seeing.vision_params > 0
    positions = CATALOG.architectures["opt-13b"]
    first, last = stages(positions, 2)
    assert (first.learned_positions, last.learned_positions) == (positions.learned_positions, 0)
    assert positions.learned_positions > 0


def test_layers_are_cut_in_the_order_they_run() -> None:
    gemma = CATALOG.architectures["gemma-3-27b"]  # five windowed layers, one full, and again; the last two windowed
    first, last = stages(gemma, 2)
    kinds = [group.mixer.cache()[0].span for group in gemma.layers if group.mixer]

    def spans(part: Architecture) -> list[object]:
        return [part.layers[place].mixer.cache()[0].span for place in part.order]  # type: ignore[union-attr]

    assert spans(first) + spans(last) == [kinds[place] for place in gemma.order]
    assert len(spans(first)) == 31


def test_too_many_stages_are_refused() -> None:
    with pytest.raises(SplitError, match="32 layers cannot be cut into 33"):
        stages(llama_3_1_8b(), 33)


def check_sums(architecture: Architecture, pipeline: int) -> None:
    parts = stages(architecture, pipeline)
    counts, whole = [count_parameters(part) for part in parts], count_parameters(architecture)
    twice = architecture.vocab_size * architecture.hidden_size if architecture.tied_embeddings and pipeline > 1 else 0
    assert sum(count.text for count in counts) == whole.text + twice
    assert sum(count.vision for count in counts) == whole.vision
    assert sum(sum(group.total for group in count.mtp.values()) for count in counts) == sum(
        group.total for group in whole.mtp.values()
    )
    for group, total in whole.groups.items():
        if group not in (WeightGroup.EMBEDDING, WeightGroup.HEAD):
            found = sum(count.groups[group].total for count in counts if group in count.groups)
            assert found == total.total, group
    for tokens in (1, 777, 100_000):
        cached = sum(float(kv_bytes_per_sequence(part, tokens, Dtype.BF16)) for part in parts)
        assert cached == pytest.approx(float(kv_bytes_per_sequence(architecture, tokens, Dtype.BF16)), rel=1e-12)
    assert sum(cache_shape(part).state_bytes for part in parts) == cache_shape(architecture).state_bytes
    assert sum(part.n_layers for part in parts) == architecture.n_layers


@repeatable
@given(architectures(), st.integers(1, 8))
def test_the_stages_of_any_model_sum_to_it(architecture: Architecture, pipeline: int) -> None:
    check_sums(architecture, min(pipeline, architecture.n_layers))


@pytest.mark.parametrize("model", CATALOG.models)
def test_the_stages_of_every_catalog_model_sum_to_it(model: str) -> None:
    check_sums(CATALOG.models[model].architecture_with_mtp, 3)


@repeatable
@given(catalog_architectures(), st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 3]))
def test_the_tensor_ranks_of_all_stages_hold_no_less_than_the_model(
    architecture: Architecture, tensor: int, pipeline: int
) -> None:
    try:
        parts = stages(architecture, pipeline, tensor)
    except SplitError:
        return
    held = tensor * sum(count_parameters(part).text for part in parts)
    assert held >= count_parameters(architecture).text
