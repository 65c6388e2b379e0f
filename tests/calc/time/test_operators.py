"""Operators over random models and sizes: arrays as scalars, causal pairs counted, more work never faster."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.accelerator import Accelerator, Bound, attainable_flops_per_s, ridge_flops_per_byte, time_s
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.cache import cache_shape
from app.calc.model.layers.experts import Experts
from app.calc.model.layers.parts import OperatorName
from app.calc.model.parameters import count_parameters
from app.calc.time.operators import Operator, decode_operators, prefill_operators
from app.calc.time.phase import ceiling_s, overlapped_s, phase_cost
from tests.calc.strategies import array, at, deployments, repeatable
from tests.factories import deployment, interleaved, precision, shipped_catalog

sizes = st.integers(1, 200_000).map(float)
few = st.lists(sizes, min_size=1, max_size=3)
cached = st.lists(st.integers(0, 100_000).map(float), min_size=1, max_size=3)
A_ULP = 1e-12


def same_operators(table: list[Operator], one: list[Operator], shape: tuple[int, ...], index: tuple[int, ...]) -> None:
    assert [(op.name, op.dtype) for op in table] == [(op.name, op.dtype) for op in one]
    for many, single in zip(table, one, strict=True):
        assert at(many.flops, shape, index) == pytest.approx(float(single.flops), rel=A_ULP)
        assert at(many.bytes, shape, index) == pytest.approx(float(single.bytes), rel=A_ULP)


@repeatable
@given(deployments(), few, few)
def test_decode_of_arrays_is_decode_of_their_elements(
    asked: Deployment, batches: list[float], contexts: list[float]
) -> None:
    shape = (len(batches), len(contexts))
    table = decode_operators(asked, array(batches)[:, None], array(contexts))
    took, floor = ceiling_s(table, asked.accelerator), overlapped_s(table, asked.accelerator)
    for i, j in np.ndindex(*shape):
        one = decode_operators(asked, batches[i], contexts[j])
        same_operators(table, one, shape, (i, j))
        assert at(took, shape, (i, j)) == pytest.approx(float(ceiling_s(one, asked.accelerator)), rel=A_ULP)
        assert at(floor, shape, (i, j)) == pytest.approx(float(overlapped_s(one, asked.accelerator)), rel=A_ULP)


@repeatable
@given(deployments(), few, cached)
def test_prefill_of_arrays_is_prefill_of_their_elements(
    asked: Deployment, prompts: list[float], cached: list[float]
) -> None:
    shape = (len(prompts), len(cached))
    table = prefill_operators(asked, array(prompts)[:, None], array(cached))
    took, floor = ceiling_s(table, asked.accelerator), overlapped_s(table, asked.accelerator)
    for i, j in np.ndindex(*shape):
        one = prefill_operators(asked, prompts[i], cached[j])
        same_operators(table, one, shape, (i, j))
        assert at(took, shape, (i, j)) == pytest.approx(float(ceiling_s(one, asked.accelerator)), rel=A_ULP)
        assert at(floor, shape, (i, j)) == pytest.approx(float(overlapped_s(one, asked.accelerator)), rel=A_ULP)


@repeatable
@given(few, few, st.floats(1e9, 1e17), st.floats(1e9, 1e15))
def test_the_roofline_of_arrays_is_that_of_their_elements(
    flops: list[float], moved: list[float], peak: float, bandwidth: float
) -> None:
    shape = (len(flops), len(moved))
    took = time_s(array(flops)[:, None], array(moved), peak, bandwidth)
    roof = attainable_flops_per_s(array(flops), peak, bandwidth)
    ridge = ridge_flops_per_byte(array(flops)[:, None], array(moved))
    for i, j in np.ndindex(*shape):
        assert at(took, shape, (i, j)) == time_s(flops[i], moved[j], peak, bandwidth)
        assert at(roof, (len(flops),), (i,)) == attainable_flops_per_s(flops[i], peak, bandwidth)
        assert at(ridge, shape, (i, j)) == flops[i] / moved[j]


def not_less(more: list[Operator], less: list[Operator], card: Accelerator) -> None:
    """More work computes, moves and takes at least as much, in total and at every operator."""
    for one, other in zip(more, less, strict=True):
        assert float(one.flops) >= float(other.flops) * (1 - A_ULP)
        assert float(one.bytes) >= float(other.bytes) * (1 - A_ULP)
    assert float(ceiling_s(more, card)) >= float(ceiling_s(less, card)) * (1 - A_ULP)
    assert float(overlapped_s(more, card)) >= float(overlapped_s(less, card)) * (1 - A_ULP)


@repeatable
@given(deployments(), sizes, sizes, st.integers(0, 100_000))
def test_more_sequences_or_context_never_take_less_time(
    asked: Deployment, batch: float, context: float, more: int
) -> None:
    now, card = decode_operators(asked, batch, context), asked.accelerator
    not_less(decode_operators(asked, batch + more, context), now, card)
    not_less(decode_operators(asked, batch, context + more), now, card)


@repeatable
@given(deployments(), sizes, st.integers(0, 100_000), st.integers(0, 100_000))
def test_a_longer_prompt_or_prefix_never_takes_less_time(
    asked: Deployment, prompt: float, cached: int, more: int
) -> None:
    now, card = prefill_operators(asked, prompt, cached), asked.accelerator
    not_less(prefill_operators(asked, prompt + more, cached), now, card)
    not_less(prefill_operators(asked, prompt, cached + more), now, card)


@repeatable
@given(deployments(), st.integers(2, 100_000), st.data())
def test_finding_part_of_a_prompt_in_the_cache_never_takes_longer(
    asked: Deployment, prompt: int, data: st.DataObject
) -> None:
    found = data.draw(st.integers(1, prompt - 1))
    whole, rest = prefill_operators(asked, prompt), prefill_operators(asked, prompt - found, found)
    card = asked.accelerator
    # What was found of a recurrent layer is its state, which has to be read: for a few tokens more than they save.
    read_s = cache_shape(asked.architecture).state_bytes / card.bandwidth_bytes_per_s
    assert float(ceiling_s(rest, card)) <= float(ceiling_s(whole, card)) * (1 + A_ULP) + read_s


@repeatable
@given(deployments(), sizes, sizes, st.booleans())
def test_no_ceiling_is_below_either_floor_of_physics(
    asked: Deployment, size: float, context: float, decode: bool
) -> None:
    card = asked.accelerator
    operators = decode_operators(asked, size, context) if decode else prefill_operators(asked, size, context)
    took, overlapped = float(ceiling_s(operators, card)), float(overlapped_s(operators, card))
    moved, flops = (sum(float(getattr(op, what)) for op in operators) for what in ("bytes", "flops"))
    slack = 1 - A_ULP
    assert took >= overlapped * slack
    assert overlapped >= moved / card.bandwidth_bytes_per_s * slack
    assert overlapped >= flops / max(card.peak(op.dtype) for op in operators) * slack
    assert took <= (moved / card.bandwidth_bytes_per_s + sum(float(op.flops) / card.peak(op.dtype) for op in operators))


@repeatable
@given(deployments(), sizes, sizes, st.booleans())
def test_the_operators_of_a_phase_sum_to_its_totals(
    asked: Deployment, size: float, context: float, decode: bool
) -> None:
    card = asked.accelerator
    operators = decode_operators(asked, size, context) if decode else prefill_operators(asked, size, context)
    cost = phase_cost(operators, card)
    assert {op.name for op in cost.operators} == {op.name for op in operators}
    for whole, parts in (
        (cost.flops, [op.flops for op in cost.operators]),
        (cost.flops, [float(op.flops) for op in operators]),
        (cost.bytes, [op.bytes for op in cost.operators]),
        (cost.bytes, [float(op.bytes) for op in operators]),
        (cost.ceiling_s, [op.time_s for op in cost.operators]),
        (cost.ceiling_s, [float(ceiling_s(operators, card))]),
        (cost.compute_s, [op.compute_s for op in cost.operators]),
        (cost.overlapped_s, [float(overlapped_s(operators, card))]),
        (cost.intensity_flops_per_byte, [cost.flops / cost.bytes]),
    ):
        assert whole == pytest.approx(sum(parts), rel=A_ULP)


@pytest.mark.parametrize("model", shipped_catalog().architectures)
def test_a_step_reads_every_weight_once_but_gathered_tables_idle_experts_and_the_vision_tower(model: str) -> None:
    architecture = shipped_catalog().architectures[model]
    counts = count_parameters(architecture)
    operators = decode_operators(deployment(architecture=architecture), 1, 0)
    rows = 2 * architecture.hidden_size * (2 if architecture.learned_positions else 1)
    rows += sum(2 * path.gathered for path in architecture.side_paths if path.gathered)
    written, moved_state, hashed = 0.0, 0.0, 0.0
    for group in architecture.layers:
        if group.mixer is not None:
            written += group.count * sum(2 * row.width / row.compression for row in group.mixer.cache())
            moved_state += group.count * sum(state.bytes for state in group.mixer.state())  # written, none read yet
        for block in group.feed_forwards:
            if isinstance(block, Experts) and block.hash_table:
                # The table is counted whole among the parameters; a token reads as many cells as it has experts.
                hashed += group.count * 2 * (block.hash_table - 1) * block.per_token
    read = sum(float(op.bytes) for op in operators)
    assert read - rows - written - moved_state + hashed == pytest.approx(2 * counts.read_per_token, rel=1e-12)


@repeatable
@given(st.integers(1, 100_000), st.integers(0, 100_000))
def test_a_window_bounds_what_a_layer_reads_and_computes(context: int, cached: int) -> None:
    asked = deployment(architecture=interleaved(window=512, windowed_layers=6, full_layers=0))
    (attention,) = [op for op in decode_operators(asked, 1, context) if op.name is OperatorName.ATTENTION]
    per_token = 6 * 2 * 4 * 64 * 2  # layers, key and value, KV heads, width, bytes
    assert attention.bytes == per_token * min(context, 512)
    (attention,) = [op for op in prefill_operators(asked, context, cached) if op.name is OperatorName.ATTENTION]
    assert attention.bytes == per_token * (context + min(cached, 511))  # the first new token sees 511 old ones


@pytest.mark.parametrize("weights", WeightFormat)
def test_narrower_weights_never_move_more(weights: WeightFormat) -> None:
    wide, narrow = deployment(precision=precision(WeightFormat.FP32)), deployment(precision=precision(weights))
    moved = [sum(float(op.bytes) for op in decode_operators(one, 8, 1000)) for one in (wide, narrow)]
    assert moved[0] >= moved[1]


@pytest.mark.parametrize(("compute_s", "bound"), [(1.01, Bound.COMPUTE), (0.99, Bound.MEMORY_BANDWIDTH)])
def test_a_phase_is_bound_by_what_takes_more_than_half_of_its_time(compute_s: float, bound: Bound) -> None:
    card = Accelerator("x", "X", 1e9, None, 1.0, {Dtype.BF16: 1.0})
    computes = Operator(OperatorName.GATE_UP, compute_s, 0.1, Dtype.BF16)
    moves = Operator(OperatorName.ATTENTION, 0.1, 1.0, Dtype.BF16)
    cost = phase_cost([computes, moves], card)
    assert cost.bound is bound
    assert {op.name: op.bound for op in cost.operators} == {
        OperatorName.GATE_UP: Bound.COMPUTE,
        OperatorName.ATTENTION: Bound.MEMORY_BANDWIDTH,
    }
    assert cost.ceiling_s == pytest.approx(compute_s + 1)
    assert cost.overlapped_s == pytest.approx(max(compute_s, 1) + 0.1)


@pytest.mark.parametrize("cached", [1_000, 100_000])
def test_a_latent_prefix_takes_the_faster_form_where_matrices_run_in_another_type(cached: int) -> None:
    # Up projection in FP8 and scores in 16 bits: the choice between the two forms is one of time, not of FLOPs.
    model, card = shipped_catalog().models["deepseek-v3"], shipped_catalog().devices["h200-sxm"]
    fp8 = precision(WeightFormat.FP8, compute=Dtype.FP8, architecture=model.architecture)
    asked = deployment(architecture=model.architecture, accelerator=card, precision=fp8)
    times = [float(ceiling_s(prefill_operators(asked, new, cached), card)) for new in range(1, 400)]
    assert times == sorted(times)
