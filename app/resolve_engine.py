"""The engine of a scenario: its rules for memory, and its own defaults written where the scenario leaves them open."""

from dataclasses import dataclass

from app.calc import deployment as calc
from app.calc.accelerator import Accelerator
from app.calc.architecture import Architecture
from app.calc.engines.parts import Given
from app.calc.split import Split
from app.catalog.catalog import Catalog
from app.catalog.engine_defaults import is_latent, usual_batch, usual_utilization
from app.catalog.engines import EngineRecord, Rules
from app.refusal import Refusal, ScenarioError, unknown
from app.scenario import Engine, Scenario

UNDERNEATH = "vllm"
"""The engine that llm-d runs where a scenario names none."""
MAY_RUN_UNDERNEATH = ("vllm", "sglang")


@dataclass(frozen=True, slots=True)
class ResolvedEngine:
    """The engine for the calculators, and the scenario's with its defaults written out."""

    engine: calc.Engine
    written: Engine


def engine_records(engine: Engine, catalog: Catalog) -> tuple[EngineRecord, EngineRecord]:
    """The engine that is named, and the one whose rules divide the card.

    Raises:
        ScenarioError: it is unknown, or what it should run underneath does not go with it.
    """
    named = catalog.engines.get(engine.id)
    if named is None:
        raise ScenarioError([unknown("engine.id", "engine", engine.id, catalog.engines)])
    if named.policy is not Rules.UNDERNEATH:
        if engine.underneath is not None:
            raise ScenarioError([Refusal("engine.underneath", f"goes with llm-d; {named.name} runs by itself.")])
        return named, catalog.engines[named.treated_as] if named.treated_as else named
    underneath = engine.underneath or UNDERNEATH
    if underneath not in MAY_RUN_UNDERNEATH:
        message = f"{named.name} runs {' or '.join(MAY_RUN_UNDERNEATH)}, not {underneath!r}."
        raise ScenarioError([Refusal("engine.underneath", message)])
    return named, catalog.engines[underneath]


def resolve_engine(
    scenario: Scenario, architecture: Architecture, accelerator: Accelerator, split: Split, catalog: Catalog
) -> ResolvedEngine:
    """The engine of `scenario`, for a model on a card.

    Raises:
        ScenarioError: it is unknown.
    """
    asked = scenario.engine
    named, rules = engine_records(asked, catalog)
    release = rules.release(asked.version)
    step, profiled = usual_batch(rules, release, accelerator)
    step = asked.max_batched_tokens or step
    states = any(group.mixer is not None and group.mixer.state() for group in architecture.layers)
    caches = asked.prefix_caching
    if caches is None:
        caches = not states or release is None or release.caches_states
    block = asked.block_size or (rules.latent_block_tokens if is_latent(architecture) else rules.block_tokens)
    utilization = asked.memory_utilization or usual_utilization(named, rules, accelerator, split, step)
    written = asked.model_copy(
        update={
            "underneath": rules.id if named.policy is Rules.UNDERNEATH else None,
            "memory_utilization": utilization,
            "max_batched_tokens": step,
            "block_size": block,
            "prefix_caching": caches,
        }
    )
    speculative = scenario.techniques.speculative
    engine = calc.Engine(
        id=asked.id,
        memory_utilization=utilization,
        policy=rules.make_policy(asked.version),
        max_model_len=asked.max_model_len,
        max_num_seqs=asked.max_num_seqs,
        profiled_seqs=profiled,
        step_tokens=step,
        block_tokens=block,
        prefix_caching=caches,
        is_eager=asked.enforce_eager,
        stack="llama.cpp" if rules.id == "llama.cpp" else "server",
        pace=catalog.paces.pace(rules.id, asked.version),
        draft_tokens=speculative.draft_tokens if speculative else 0,
        chunks_prefill=scenario.techniques.chunked_prefill,
        is_static=scenario.techniques.static_batching,
        reserved_tokens=scenario.techniques.reserved_tokens,
        shared_tokens=scenario.workload.shared_prefix_tokens,
        given=Given(
            asked.total_memory_bytes,
            asked.weights_bytes,
            asked.activation_bytes,
            asked.non_framework_bytes,
            asked.graph_bytes,
            asked.kv_pool_bytes,
        ),
    )
    return ResolvedEngine(engine, written)
