"""No expected time is below its ceiling, and more of anything never makes it slower: a hundred thousand scenarios."""

import random
from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from app.calc.accelerator import Accelerator
from app.calc.deployment import Deployment
from app.calc.model.split import Split, SplitError
from app.calc.sweep import decode_sweep
from app.calc.time.expected.timing import alone_s, efficiency_of, prompt_time, step_time
from app.calc.time.operators import prefill_operators
from app.calc.time.phase import ceiling_s
from app.scenario.refusal import ScenarioError
from app.scenario.resolve import resolve
from tests.factories import scenario, shipped_catalog

DEPLOYMENTS = 250
SIDE = 20
SLACK = 1 - 1e-9
ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama.cpp", "llm-d", "ideal")


def drawn(seed: int, count: int) -> Iterator[Deployment]:
    """Catalog models on catalog cards, split and stored at random, as far as they go together."""
    catalog, random_ = shipped_catalog(), random.Random(seed)
    models, cards = sorted(catalog.models), sorted(catalog.accelerators)
    found = 0
    while found < count:
        tensor, data = random_.choice((1, 1, 2, 4, 8)), random_.choice((1, 1, 1, 2, 8))
        asked = {
            "precision": {"weights": random_.choice((None, "fp8", "bf16", "int4", "nvfp4", "native"))},
            "parallelism": {"tensor": tensor, "data": data, "pipeline": random_.choice((1, 1, 1, 2, 4))},
            "engine": {"id": random_.choice(ENGINES), "version": random_.choice((None, "0.5.0", "2024"))},
            "workload": {"prompt_tokens": random_.choice((1, 100, 5000)), "prefix_hit_rate": random_.choice((0, 0.5))},
        }
        try:
            yield resolve(scenario(random_.choice(models), random_.choice(cards), **asked), catalog).deployment
        except ScenarioError:
            continue
        found += 1


BATCHES, CONTEXTS = np.geomspace(1, 8192, SIDE), np.geomspace(2, 1_000_000, SIDE)


def test_no_expected_step_is_below_its_ceiling_in_a_hundred_thousand_scenarios() -> None:
    seen = 0
    for asked in drawn(1, DEPLOYMENTS):
        found = decode_sweep(asked, np.rint(BATCHES * asked.replicas), np.rint(CONTEXTS))
        assert found.expected_step_s is not None
        assert found.expected_tpot_s is not None
        assert np.isfinite(found.expected_tpot_s).all()
        assert (found.expected_step_s >= SLACK * found.decode_step_s).all(), asked
        assert (found.expected_tpot_s >= SLACK * found.expected_step_s).all(), asked
        seen += found.expected_step_s.size
    assert seen == 100_000


def test_no_expected_prefill_is_below_its_ceiling() -> None:
    prompts = np.rint(np.geomspace(1, 2_000_000, 400))
    for asked in drawn(2, 60):
        assert asked.calibration is not None
        efficiency = efficiency_of(asked, asked.calibration)
        alone = alone_s(asked, prompt_time(asked, efficiency, prompts, 0.0, 1.0), prompts, 0.0)
        floor = ceiling_s(prefill_operators(asked, prompts), asked.accelerator)
        assert (np.asarray(alone) >= SLACK * np.asarray(floor) / asked.split.pipeline).all(), asked


def faster_memory(card: Accelerator) -> Accelerator:
    return replace(card, bandwidth_bytes_per_s=1.7 * card.bandwidth_bytes_per_s)


def faster_arithmetic(card: Accelerator) -> Accelerator:
    rates = {dtype: 1.7 * rate for dtype, rate in card.peak_flops_per_s.items()}
    return replace(card, peak_flops_per_s=MappingProxyType(rates))


def faster_link(card: Accelerator) -> Accelerator:
    link = card.link_bytes_per_s_one_way
    is_bus = card.is_bus_linked
    faster = replace(card, link_bytes_per_s_one_way=None if link is None else 1.7 * link)
    return faster if faster.is_bus_linked == is_bus else card


def step_grid(asked: Deployment) -> np.ndarray:
    assert asked.calibration is not None
    efficiency = efficiency_of(asked, asked.calibration)
    return np.asarray(step_time(asked, efficiency, BATCHES[:, None], CONTEXTS[None, :]).total_s)


@pytest.mark.parametrize("better", [faster_memory, faster_arithmetic, faster_link])
def test_a_better_card_never_makes_a_step_slower(better) -> None:  # type: ignore[no-untyped-def]
    for asked in drawn(3, 60):
        assert (step_grid(replace(asked, accelerator=better(asked.accelerator))) <= step_grid(asked) / SLACK).all()


def test_fewer_layers_never_make_a_step_slower() -> None:
    for asked in drawn(4, 60):
        groups = asked.architecture.layers
        smaller = replace(
            asked.architecture, layers=(replace(groups[0], count=max(1, groups[0].count // 2)), *groups[1:])
        )
        assert (step_grid(replace(asked, architecture=smaller)) <= step_grid(asked) / SLACK).all()


def test_twice_the_tensor_ranks_never_make_a_step_faster_than_half() -> None:
    compared = 0
    for asked in drawn(5, 150):
        split = asked.split
        doubled = replace(split, tensor=2 * split.tensor)
        try:
            asked.architecture.split(doubled)
        except SplitError:
            continue
        if split.tensor * split.data == 1 and split != Split(pipeline=split.pipeline):
            continue
        compared += 1
        assert (step_grid(replace(asked, split=doubled)) >= SLACK * step_grid(asked) / 2).all(), asked
    assert compared > 40


def test_more_requests_take_longer_together_and_give_more_in_all() -> None:
    for asked in drawn(6, 60):
        grid = step_grid(asked)
        whole = asked.split.data * asked.split.pipeline <= BATCHES  # below, ranks or stages stand idle
        assert (np.diff(grid, axis=0) >= -1e-9 * grid[1:]).all()
        assert (np.diff(BATCHES[whole, None] / grid[whole], axis=0) >= -1e-9).all()
