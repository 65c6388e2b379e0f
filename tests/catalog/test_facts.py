"""Which accelerators hold a model: the workbench's own answer, for every model, worked out once for all cards."""

from collections.abc import Iterator
from time import process_time

import pytest

from app.calc.accelerator import Accelerator, MemoryBasis
from app.calc.deployment import Deployment, Engine, Precision, Workload
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.memory.capacity import memory
from app.calc.memory.engines.vllm import VllmPolicy
from app.calc.model.parameters import WeightPlan, convention, count_parameters, weight_bytes
from app.calc.model.split import Split
from app.calc.quantity import GIB
from app.catalog.engines import is_latent, usual_batch
from app.catalog.facts import CONTEXT_TOKENS, ENGINE, GPU_COUNTS, KV_CACHE, MEMORY_UTILIZATION, Holding, Load, loads
from app.catalog.models import ModelRecord
from app.scenario.answer import answer
from app.scenario.scenario import Scenario
from tests.factories import scenario_document, shipped_catalog

CATALOG = shipped_catalog()
MODELS = CATALOG.models
EACH = pytest.mark.parametrize("id_", MODELS)
CARDS = [CATALOG.devices[id_] for id_ in ("h100-sxm-80gb", "b200-sxm", "rtx-4090", "mi300x")]
USUAL = CATALOG.engines[ENGINE]
LOADS: dict[str, tuple[Load, ...]] = {}


def loads_of(id_: str) -> tuple[Load, ...]:
    if id_ not in LOADS:
        LOADS[id_] = loads(CATALOG.architectures[id_], CATALOG.plans[id_], USUAL)
    return LOADS[id_]


def plan_of(record: ModelRecord, load: Load) -> WeightPlan:
    first = load is loads_of(record.id)[0]
    return record.native_plan if first else convention(WeightFormat(load.weights), record.architecture)


def deployed(record: ModelRecord, load: Load, device: Accelerator, gpus: int) -> Deployment:
    """The deployment that a workbench makes of the same question."""
    step, sequences = usual_batch(USUAL, USUAL.release(None), device)
    return Deployment(
        architecture=record.architecture,
        accelerator=device,
        precision=Precision(plan_of(record, load), KV_CACHE, Dtype.BF16),
        engine=Engine(
            ENGINE,
            MEMORY_UTILIZATION,
            USUAL.make_policy(None),
            step_tokens=step,
            profiled_seqs=sequences,
            block_tokens=USUAL.latent_block_tokens if is_latent(record.architecture) else USUAL.block_tokens,
        ),
        workload=Workload(load.tokens - 1, 1, None),
        split=Split(gpus),
    )


@EACH
def test_users_are_those_of_the_memory_of_that_deployment(id_: str) -> None:
    record = MODELS[id_]
    for load in loads_of(id_):
        for share in load.shares:
            for device in CARDS:
                held = memory(deployed(record, load, device, share.gpus))
                assert share.users(device) == held.max_concurrency
                assert share.weight_bytes == held.per_gpu.weights_bytes
            part = record.architecture.split(Split(share.gpus))
            assert share.sequence_bytes == kv_bytes_per_sequence(part, load.tokens, KV_CACHE)
        assert load.weight_bytes == weight_bytes(count_parameters(record.architecture), plan_of(record, load))


@EACH
def test_the_fewest_cards_are_the_first_count_that_leaves_room_for_a_user(id_: str) -> None:
    for load in loads_of(id_):
        for device in CATALOG.devices.values():
            users = {share.gpus: share.users(device) for share in load.shares}
            enough = [Holding(gpus, n) for gpus, n in users.items() if n]
            assert load.fewest(device) == (enough[0] if enough else None)
            assert load.on_one(device) == (Holding(1, users[1]) if users[1] else None)


@EACH
def test_what_is_looked_at(id_: str) -> None:
    record, found = MODELS[id_], loads_of(id_)
    assert found[0].weights == record.native_plan.label
    assert [load.weight_bytes for load in found] == sorted((load.weight_bytes for load in found), reverse=True)
    assert all(load.tokens == min(CONTEXT_TOKENS, record.shape.max_position) for load in found)
    assert {share.gpus for share in found[0].shares} <= set(GPU_COUNTS)
    narrow = record.native_plan.narrowest.element.bits
    assert [load.weights for load in found[1:]] == [name for name, bits in (("fp8", 8), ("int4", 4)) if bits < narrow]


def asked() -> Iterator[tuple[str, str, Load, Holding]]:
    """Plans over all kinds of models and cards, as their pages link to them."""
    for model in ("llama-3.1-8b", "deepseek-v3", "gpt-oss-120b", "qwen3-next-80b-a3b", "gemma-3-27b", "falcon-7b"):
        for hardware in ("h100-sxm-80gb", "b200-sxm", "rtx-4090", "l4", "mi300x", "a100-sxm-80gb"):
            for load in loads_of(model):
                if held := load.fewest(CATALOG.devices[hardware]):
                    yield model, hardware, load, held


def test_the_workbench_says_the_same() -> None:
    plans = list(asked())
    assert {held.gpus for _, _, _, held in plans} == {1, 2, 4, 8}
    for model, hardware, load, held in plans:
        document = scenario_document(
            model,
            hardware,
            precision={"weights": load.weights},
            parallelism={"tensor": held.gpus},
            workload={"prompt_tokens": load.tokens - 1_024, "output_tokens": 1_024, "concurrency": None},
        )
        answered = answer(Scenario.model_validate(document), CATALOG)
        assert answered.evaluation.measures.memory.max_concurrency == held.users, (model, hardware, load.weights)


def test_the_worked_number() -> None:
    (shipped, *_) = loads_of("llama-3.1-8b")
    assert shipped.weight_bytes == 16_060_522_496
    assert shipped.shares[0].sequence_bytes == 8_192 * 131_072
    card, policy = CATALOG.devices["h100-sxm-80gb"], USUAL.make_policy(None)
    assert isinstance(policy, VllmPolicy)
    laws = policy.laws
    assert laws.graphs is not None
    # 1,024 sequences are sampled after a step of 8,192 tokens, as on every card of 70 GiB and more.
    peak = 1024 * 128_256 * policy.release.logit_bytes + 1.28 * 8192 * 4096 * 2
    alone = laws.alone.fixed_gib + laws.alone.per_gpu_gib
    needed = laws.activation.interval(peak).mid + (alone + laws.graphs.fixed_gib) * GIB
    pool = 0.9 * card.seen_bytes(MemoryBasis.REPORTED) - 16_060_522_496 - needed
    blocks = pool // (16 * 131_072)
    assert shipped.on_one(card) == Holding(1, int(blocks) // (8_192 // 16))


def test_a_model_whose_heads_do_not_divide_is_not_spread_so_far() -> None:
    assert [share.gpus for share in loads_of("qwen2.5-7b")[0].shares] == [1, 2, 4]  # 28 heads
    assert [share.gpus for share in loads_of("llama-3.1-8b")[0].shares] == [1, 2, 4, 8]


def test_every_card_of_a_model_is_answered_in_a_blink() -> None:
    held = loads_of("deepseek-v3")
    taken = []
    for _ in range(5):
        started = process_time()
        found = [load.fewest(device) for load in held for device in CATALOG.devices.values()]
        taken.append(process_time() - started)
        assert sum(holding is not None for holding in found) > 50
    assert min(taken) < 0.03
