"""A grid of batch and context: every cell is the evaluation of that one pair."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.calc.deployment import Deployment, Engine
from app.calc.measure import measure
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.memory.capacity import memory
from app.calc.model.split import Split
from app.calc.sweep import decode_sweep
from app.calc.time.operators import decode_operators
from app.calc.time.phase import ceiling_s
from tests.calc.strategies import array, deployments, repeatable
from tests.factories import BF16, deployment, engine, llama_3_1_8b, shipped_catalog, workload

axis = st.lists(st.integers(1, 100_000).map(float), min_size=1, max_size=3)


@repeatable
@given(deployments(), axis, axis)
def test_each_cell_is_the_step_of_its_pair(asked: Deployment, batches: list[float], contexts: list[float]) -> None:
    found = decode_sweep(asked, array(batches), array(contexts))
    shape = (len(batches), len(contexts))
    assert {grid.shape for grid in (found.decode_step_s, found.decode_tokens_per_s, found.kv_bytes, found.fits)} == {
        shape
    }
    held = memory(asked)
    assert asked.replicas == asked.split.gpus == 1
    for i, j in np.ndindex(*shape):
        step = float(ceiling_s(decode_operators(asked, batches[i], contexts[j]), asked.accelerator))
        cache = batches[i] * float(kv_bytes_per_sequence(asked.architecture, contexts[j], asked.precision.kv_cache))
        fits = cache <= held.per_gpu.kv_pool_bytes and held.per_gpu.weights_bytes <= held.budget_bytes
        assert found.decode_step_s[i, j] == pytest.approx(step, rel=1e-12)
        assert found.decode_tokens_per_s[i, j] == pytest.approx(batches[i] / step, rel=1e-12)
        assert found.kv_bytes[i, j] == cache
        assert found.fits[i, j] == fits


def test_the_story_in_one_grid() -> None:
    found = decode_sweep(deployment(), array([1, 64]), array([4096]))
    assert found.decode_step_s[:, 0] == pytest.approx([4.641e-3, 14.740e-3], rel=1e-3)
    assert found.kv_bytes[:, 0] == pytest.approx([512 * 2**20, 32 * 2**30])
    assert found.fits.tolist() == [[1], [1]]


def test_more_sequences_than_the_card_holds_do_not_fit() -> None:
    most = memory(deployment()).kv_pool_tokens // 4096
    found = decode_sweep(deployment(), array([most, most + 1]), array([4096]))
    assert found.fits.tolist() == [[1], [0]]
    assert kv_bytes_per_sequence(llama_3_1_8b(), 4096, deployment().precision.kv_cache) == 2**29


@pytest.mark.parametrize("engine_id", ["vllm", "sglang", "llama.cpp", "ideal"])
@pytest.mark.parametrize("split", [Split(8), Split(4, 2), Split(2, data=4, expert=8), Split(8, decode_context=8)])
def test_each_cell_of_a_split_model_is_its_evaluation(engine_id: str, split: Split) -> None:
    catalog = shipped_catalog()
    model, card = "deepseek-v3", catalog.devices["h200-sxm"]
    asked = deployment(
        architecture=catalog.architectures[model],
        accelerator=card,
        precision=replace(BF16, weights=catalog.plans[model]),
        engine=Engine(engine_id, 0.95, catalog.engines[engine_id].make_policy(None), block_tokens=64),
        split=split,
        replicas=2,
    )
    contexts = [100, 4096, 20_001, 131_072]
    for batches in ([1, 7], [1, 30, 31, 800, 5000, 100_000]):  # asked along either axis
        found = decode_sweep(asked, array([float(n) for n in batches]), array([float(n) for n in contexts]))
        for i, batch in enumerate(batches):
            for j, context in enumerate(contexts):
                one = measure(replace(asked, workload=workload(context - 1, 1, batch)))
                assert found.fits[i, j] == (one.memory.max_concurrency >= batch)
                step = measure(replace(asked, workload=workload(context - 1, 2, batch))).decode.ceiling_s
                assert found.decode_step_s[i, j] == pytest.approx(step, rel=1e-12)


def test_nothing_fits_beside_weights_that_do_not() -> None:
    found = decode_sweep(deployment(engine=engine(0.1)), array([1]), array([1]))
    assert found.fits.tolist() == [[0]]
