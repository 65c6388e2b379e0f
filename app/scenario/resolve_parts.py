"""The engine of a scenario: its rules for memory, and its own defaults written where the scenario leaves them open.

From the model a scenario names, or brings, to an architecture and the plan of its weights.

The techniques of a scenario: another attention, guesses and their acceptance, and a prefill pool.
"""

from dataclasses import dataclass, replace

from app.calc import deployment as calc
from app.calc.accelerator import Accelerator, UnknownPeakError
from app.calc.dtypes import WeightFormat
from app.calc.memory.engines.parts import Draft, Given
from app.calc.model.architecture import Architecture, MultiTokenPrediction
from app.calc.model.attention_variants import VariantError, as_variant
from app.calc.model.parameters import WeightPlan, convention
from app.calc.model.split import Split, SplitError, stage_sizes
from app.calc.quantity import GB
from app.calc.time.break_even import eagle_head, mtp_drafter
from app.calc.time.prefill_pool import PrefillPool
from app.calc.time.speculation import Method, Speculation, speculation_of
from app.catalog.architecture_document import ArchitectureError, read_architecture
from app.catalog.catalog import Catalog
from app.catalog.engines import EngineRecord, Rules, is_latent, usual_batch, usual_utilization
from app.checkpoint.quantization.reading import BESIDE
from app.checkpoint.reading import ConfigError, read_config
from app.scenario.refusal import Refusal, ScenarioError, under, unknown
from app.scenario.scenario import Engine, Model, Scenario
from app.scenario.techniques import Disaggregation

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


DEFAULT_NAME = "Custom model"
DRAFT_NAME = "Draft model"


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """The architecture, how its checkpoint stores weights, and what was assumed in reading it."""

    architecture: Architecture
    native_plan: WeightPlan
    notices: tuple[str, ...] = ()


def resolve_model(model: Model, catalog: Catalog) -> ResolvedModel:
    """The model that a scenario names or brings, with its multi-token-prediction layers where they are asked for.

    Raises:
        ScenarioError: an unknown id; a configuration or an architecture that cannot be read, at the key.
    """
    if model.config is not None:
        return _configured(model)
    if model.architecture is not None:
        return _described(model)
    record = catalog.models.get(model.id or "")
    if record is None:
        raise ScenarioError([unknown("model.id", "model", model.id or "", catalog.models)])
    architecture = catalog.architectures[record.id]
    return ResolvedModel(_with_mtp(architecture, record.mtp, model), catalog.plans[record.id])


def _configured(model: Model) -> ResolvedModel:
    name = model.name or DEFAULT_NAME
    try:
        read = read_config(model.config or {}, name, quantization=model.quantization, read_as=model.read_as)
    except ConfigError as error:
        raise ScenarioError([Refusal(f"model.{path_in_model(error)}", error.message)]) from error
    return ResolvedModel(_with_mtp(read.architecture, read.mtp, model), read.plan, read.notices)


def path_in_model(error: ConfigError) -> str:
    """Where the key that is to blame stands in a scenario's model: in its config, in the file beside it, or read_as."""
    if error.key == "read_as":
        return error.key
    if error.key.startswith(BESIDE):
        return f"quantization{error.key.removeprefix(BESIDE)}"
    return f"config.{error.key}"


def _described(model: Model) -> ResolvedModel:
    try:
        architecture = read_architecture(model.architecture or {}, model.name or DEFAULT_NAME)
    except ArchitectureError as error:
        raise ScenarioError([Refusal(f"model.architecture.{error.path}", error.message)]) from error
    plan = convention(WeightFormat.BF16, architecture)
    return ResolvedModel(_with_mtp(replace(architecture, mtp=None), architecture.mtp, model), plan)


def _with_mtp(architecture: Architecture, mtp: MultiTokenPrediction | None, model: Model) -> Architecture:
    if not model.mtp:
        return architecture
    if mtp is None:
        raise ScenarioError([Refusal("model.mtp", f"{architecture.name} has no multi-token-prediction layers.")])
    return replace(architecture, mtp=mtp)


def resolve_draft(scenario: Scenario, catalog: Catalog) -> Draft | None:
    """The draft model beside the model; None where there is none.

    Raises:
        ScenarioError: it is unknown, or its config cannot be read.
    """
    speculative = scenario.techniques.speculative
    if speculative is None or speculative.draft is None:
        return None
    with under("techniques.speculative.draft"):
        asked = speculative.draft
        if asked.config is not None:
            try:
                read = read_config(asked.config, DRAFT_NAME)
            except ConfigError as error:
                raise ScenarioError([Refusal(f"config.{error.key}", error.message)]) from error
            return Draft(read.architecture, read.plan)
        record = catalog.models.get(asked.id or "")
        if record is None:
            raise ScenarioError([unknown("id", "model", asked.id or "", catalog.models)])
        return Draft(catalog.architectures[record.id], catalog.plans[record.id])


CARD_LINK = "card"
"""The link of a prefill pool that is the card's own."""


def with_attention(model: ResolvedModel, scenario: Scenario) -> ResolvedModel:
    """The model with the attention that the scenario asks for.

    Raises:
        ScenarioError: it has none, or one that cannot be told as another.
    """
    variant = scenario.techniques.attention
    if variant is None:
        return model
    try:
        return replace(model, architecture=as_variant(model.architecture, variant))
    except VariantError as error:
        raise ScenarioError([Refusal("techniques.attention", str(error))]) from error


def method_of(scenario: Scenario) -> Method | None:
    """Who guesses: as asked, or what follows from the rest; None where nobody does.

    Raises:
        ScenarioError: the method has nothing to guess with.
    """
    asked, path = scenario.techniques.speculative, "techniques.speculative.method"
    if asked is None:
        return None
    if asked.method is None:
        if asked.draft is not None:
            return Method.DRAFT_MODEL
        return Method.MTP if scenario.model.mtp else Method.NGRAM
    if asked.method is Method.DRAFT_MODEL and asked.draft is None:
        raise ScenarioError([Refusal("techniques.speculative.draft", "Name the draft model.")])
    if asked.method is Method.MTP and not scenario.model.mtp:
        raise ScenarioError([Refusal(path, "mtp needs the model's own layers loaded (model.mtp).")])
    if asked.method in (Method.EAGLE, Method.NGRAM) and scenario.model.mtp:
        raise ScenarioError([Refusal(path, "The model's own layers are loaded to guess (model.mtp): leave one out.")])
    return asked.method


def drafter_of(method: Method | None, architecture: Architecture, draft: Draft | None) -> Draft | None:
    """What is loaded beside the model to guess: a draft model or a head."""
    return eagle_head(architecture) if method is Method.EAGLE else draft


def resolve_speculation(
    scenario: Scenario,
    method: Method | None,
    architecture: Architecture,
    precision: calc.Precision,
    draft: Draft | None,
) -> Speculation | None:
    """Speculation with what guesses; None where nobody does, or where no acceptance is known: it is not timed then."""
    asked = scenario.techniques.speculative
    if asked is None or method is None:
        return None
    drafter = mtp_drafter(architecture, precision.weights) if method is Method.MTP else draft
    return speculation_of(method, asked.draft_tokens, asked.acceptance_rate, asked.acceptance_length, drafter)


def resolve_pool(
    asked: Disaggregation,
    accelerator: Accelerator,
    architecture: Architecture,
    precision: calc.Precision,
    catalog: Catalog,
) -> PrefillPool:
    """The prefill pool on `accelerator`.

    Raises:
        ScenarioError: it does not divide, publishes no rate for what is computed, or the link is unknown.
    """
    path = "techniques.disaggregation"
    split, refusals = Split(asked.tensor, asked.pipeline, asked.data, asked.expert), []
    if split.expert > 1 and not architecture.has_experts:
        refusals.append(Refusal(f"{path}.expert", f"{architecture.name} has no experts to share out."))
    try:
        split.check()
        stage_sizes(architecture.n_layers, split.pipeline)
        architecture.split(split)
    except SplitError as error:
        refusals.append(Refusal(f"{path}.tensor", str(error)))
    try:
        accelerator.peak(precision.compute)
    except UnknownPeakError as error:
        refusals.append(Refusal(f"{path}.hardware.id", str(error)))
    if refusals:
        raise ScenarioError(refusals)
    name, rate = _link(asked, accelerator, catalog)
    return PrefillPool(accelerator, split, asked.instances, name, rate, asked.overlap)


def _link(asked: Disaggregation, accelerator: Accelerator, catalog: Catalog) -> tuple[str, float]:
    path = "techniques.disaggregation.link"
    if asked.link == CARD_LINK:
        name, rate = f"{accelerator.name}'s own link", accelerator.link_bytes_per_s_one_way
        if rate is None and asked.link_gb_per_s is None:
            raise ScenarioError([Refusal(path, f"No link between cards is known for {accelerator.name}.")])
    else:
        link = catalog.links.get(asked.link)
        if link is None:
            known = {CARD_LINK: None, **catalog.links}
            raise ScenarioError([unknown(path, "link", asked.link, known)])
        name, rate = link.name, link.bytes_per_s
    if asked.link_gb_per_s is not None:
        rate = asked.link_gb_per_s * GB
    return name, rate or 0.0
