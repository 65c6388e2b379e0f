"""Random deployments of every engine, split and card, with catalog models; and the rules behind each engine."""

from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Deployment, Engine
from app.calc.dtypes import Dtype
from app.calc.memory.engines.ideal import IdealPolicy
from app.calc.memory.engines.parts import Draft, Given, Policy
from app.calc.memory.rank import rank_memories
from app.calc.model.split import Split, SplitError
from tests.factories import BF16, llama_3_1_8b, shipped_catalog, workload

CATALOG = shipped_catalog()
POLICIES: dict[str, Policy] = {
    engine: CATALOG.engines[engine].make_policy(None) for engine in ("vllm", "sglang", "tensorrt-llm", "llama.cpp")
} | {"old vllm": CATALOG.engines["vllm"].make_policy("0.6.0"), "ideal": IdealPolicy()}
MODELS = (
    "llama-3.1-8b",
    "qwen3-30b-a3b",
    "deepseek-v3",
    "deepseek-v3.2",
    "gemma-3-27b",
    "gpt-oss-120b",
    "qwen3.5-35b-a3b",
    "kimi-linear-48b-a3b",
    "llama-4-scout",
    "nemotron-h-8b",
    "mistral-7b-v0.1",
)
CARDS = ("h100-sxm-80gb", "h200-sxm", "b200-sxm", "rtx-4090", "mi300x", "rtx-3090", "l4")
SPLITS = (
    Split(),
    Split(2),
    Split(8),
    Split(4, 2),
    Split(1, 3),
    Split(2, data=4),
    Split(2, data=4, expert=8),
    Split(8, decode_context=4),
    Split(4, 2, 2, 4, 2),
)
givens = st.builds(
    Given,
    total_memory=st.none() | st.floats(1e9, 3e11),
    weights=st.none() | st.floats(0, 1e11),
    activation=st.none() | st.floats(0, 1e10),
    non_framework=st.none() | st.floats(0, 1e10),
    graphs=st.none() | st.floats(0, 1e10),
    kv_pool=st.none() | st.floats(1, 3e11),
)


@st.composite
def divided(draw: st.DrawFn, *, given: st.SearchStrategy[Given] | None = None) -> Deployment:
    model = draw(st.sampled_from(MODELS))
    split = draw(st.sampled_from(SPLITS))
    name = draw(st.sampled_from(sorted(POLICIES)))
    asked = Deployment(
        architecture=CATALOG.architectures[model],
        accelerator=CATALOG.devices[draw(st.sampled_from(CARDS))],
        precision=replace(
            BF16, weights=CATALOG.plans[model], kv_cache=draw(st.sampled_from([Dtype.BF16, Dtype.FP8, Dtype.INT4]))
        ),
        engine=Engine(
            name,
            draw(st.sampled_from([0.3, 0.85, 0.9, 0.95, 1.0])),
            POLICIES[name],
            max_model_len=draw(st.sampled_from([None, 4096, 40_000])),
            max_num_seqs=draw(st.sampled_from([None, None, 7])),
            step_tokens=draw(st.sampled_from([512, 8192])),
            block_tokens=draw(st.sampled_from([1, 16, 64])),
            prefix_caching=draw(st.booleans()),
            is_eager=draw(st.booleans()),
            draft_tokens=draw(st.sampled_from([0, 0, 3])),
            given=draw(given if given is not None else st.just(Given())),
        ),
        workload=workload(
            prompt_tokens=draw(st.integers(1, 60_000)), concurrency=draw(st.none() | st.integers(1, 300))
        ),
        memory_basis=draw(st.sampled_from(MemoryBasis)),
        split=split,
        replicas=draw(st.sampled_from([1, 1, 3])),
        draft=draw(st.sampled_from([None, None, Draft(llama_3_1_8b(), BF16.weights)])),
    )
    try:
        rank_memories(asked)
    except SplitError:
        assume(False)
    return asked
