"""From a Scenario to a Deployment: ids become facts, and what was left open is decided and written down."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeVar

from app.calc import deployment as calc
from app.calc.accelerator import Accelerator, UnknownPeakError
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.memory.engines.parts import Draft
from app.calc.model.architecture import Architecture
from app.calc.model.parameters import NATIVE, WeightPlan, convention
from app.calc.model.split import Split, SplitError, stage_sizes
from app.calc.quantity import GB, MIB, TERA
from app.calc.time.expected.calibration import OwnCalibration, OwnFactor
from app.calc.time.lengths import Shape
from app.calc.time.speculation import Method
from app.catalog.accelerators import seen_of_reported
from app.catalog.catalog import Catalog
from app.scenario.parts import CustomAccelerator
from app.scenario.refusal import Refusal, ScenarioError, unknown
from app.scenario.resolve_parts import (
    ResolvedModel,
    drafter_of,
    engine_records,
    method_of,
    resolve_draft,
    resolve_engine,
    resolve_model,
    resolve_pool,
    resolve_speculation,
    with_attention,
)
from app.scenario.scenario import Hardware, Scenario
from app.scenario.techniques import PoolHardware


@dataclass(frozen=True, slots=True)
class Resolved:
    """The normalised scenario, the deployment it stands for, and what was assumed of a model of one's own."""

    scenario: Scenario
    deployment: calc.Deployment
    notices: tuple[str, ...] = ()


def resolve(scenario: Scenario, catalog: Catalog) -> Resolved:
    """The deployment that `scenario` names, and the scenario with every open choice written out.

    Raises:
        ScenarioError: unknown ids, a rate that the card does not publish, or a field that is not computed yet.
    """
    refusals = list(_not_computed(scenario))
    model = _collect(refusals, lambda: resolve_model(scenario.model, catalog))
    accelerator = _collect(refusals, lambda: accelerator_of(scenario.hardware, catalog, "hardware"))
    _collect(refusals, lambda: engine_records(scenario.engine, catalog))
    draft = _collect(refusals, lambda: resolve_draft(scenario, catalog))
    method = _collect(refusals, lambda: method_of(scenario))
    plain = model
    if plain is not None:
        model = _collect(refusals, lambda: with_attention(plain, scenario))
    precision = _collect(refusals, lambda: _precision(scenario, model, accelerator, catalog)) if accelerator else None
    if model is not None and not refusals:
        # A head that does not divide is loaded whole on each GPU; a draft model that does not is another choice.
        chosen = None if method is Method.EAGLE else draft
        _collect(refusals, lambda: _divided(model.architecture, chosen, scenario))
    if refusals or model is None or accelerator is None or precision is None:
        raise ScenarioError(refusals)
    split, techniques = split_of(scenario), scenario.techniques
    draft, pool = drafter_of(method, model.architecture, draft), None
    if techniques.disaggregation is not None:
        pool = resolve_pool(
            techniques.disaggregation,
            accelerator_of(techniques.disaggregation.hardware, catalog, "techniques.disaggregation.hardware"),
            model.architecture,
            precision,
            catalog,
        )
    replicas = _replicas(scenario, split)
    engine = resolve_engine(scenario, model.architecture, accelerator, split, catalog)
    deployment = calc.Deployment(
        architecture=model.architecture,
        accelerator=accelerator,
        precision=precision,
        engine=engine.engine,
        # Tokens that are the same in every prompt are the cache's, and go in with the engine.
        workload=calc.Workload(**scenario.workload.model_dump(exclude={"shared_prefix_tokens"})),
        memory_basis=scenario.memory_basis,
        split=split,
        replicas=replicas,
        draft=draft,
        observed=calc.Observed(**scenario.observed.model_dump()),
        calibration=catalog.calibration,
        speculation=resolve_speculation(scenario, method, model.architecture, precision, draft),
        prefill_pool=pool,
        published_architecture=plain.architecture if plain is not model and plain is not None else None,
        own_calibration=_own_calibration(scenario),
    )
    written_out = {
        "precision": scenario.precision.model_copy(
            update={"weights": _label(precision.weights), "compute": precision.compute}
        ),
        "hardware": scenario.hardware.model_copy(update={"count": replicas * split.gpus}),
        "engine": engine.written,
    }
    return Resolved(scenario.model_copy(update=written_out), deployment, model.notices)


def _own_calibration(scenario: Scenario) -> OwnCalibration | None:
    """The user's own calibration, for the calculators."""
    asked = scenario.calibration
    if asked is None:
        return None
    decode, prefill = (
        None if side is None else OwnFactor(**side.model_dump()) for side in (asked.decode, asked.prefill)
    )
    return OwnCalibration(name=asked.name, decode=decode, prefill=prefill)


def _label(plan: WeightPlan) -> WeightFormat | str:
    return NATIVE if plan.label == NATIVE else WeightFormat(plan.label)


# Arithmetic narrower than 16 bits works on elements as narrow; wider arithmetic can unpack anything.
_NARROW_ARITHMETIC = MappingProxyType(
    {
        Dtype.FP8: frozenset({Dtype.FP8, Dtype.FP4, Dtype.INT4}),
        Dtype.INT8: frozenset({Dtype.INT8, Dtype.INT4}),
        Dtype.FP4: frozenset({Dtype.FP4}),
        Dtype.INT4: frozenset({Dtype.INT4}),
    }
)
# What an open choice of arithmetic tries, in order. Integer formats are mostly unpacked to 16 bits by their kernels.
_PREFERRED = MappingProxyType(
    {
        Dtype.FP32: (Dtype.FP32, Dtype.TF32),
        Dtype.FP16: (Dtype.FP16, Dtype.BF16),
        Dtype.FP8: (Dtype.FP8, Dtype.BF16, Dtype.FP16),
        Dtype.FP4: (Dtype.FP4, Dtype.BF16, Dtype.FP16),
    }
)
_SIXTEEN_BITS = (Dtype.BF16, Dtype.FP16)
_T = TypeVar("_T")


def _collect(refusals: list[Refusal], make: Callable[[], _T]) -> _T | None:
    """What `make` gives; or None, its refusals added to those of the other parts so that a user sees all at once."""
    try:
        return make()
    except ScenarioError as error:
        refusals += error.refusals
        return None


def _not_computed(scenario: Scenario) -> Iterator[Refusal]:
    """What does not go together; a value that would change nothing must not be ignored in silence."""
    speculative = scenario.techniques.speculative
    if speculative is not None and speculative.draft is not None and scenario.model.mtp:
        message = "the model's own layers guess already (model.mtp); leave one of the two out."
        yield Refusal("techniques.speculative.draft", message)
    workload, techniques = scenario.workload, scenario.techniques
    if workload.shared_prefix_tokens > workload.prompt_tokens:
        message = f"is more than the {workload.prompt_tokens:,} tokens of a prompt."
        yield Refusal("workload.shared_prefix_tokens", message)
    if workload.shared_prefix_tokens and techniques.reserved_tokens is not None:
        message = "tokens are shared in pages; room that is reserved for one sequence holds no other's."
        yield Refusal("workload.shared_prefix_tokens", message)
    if workload.longest_answer is not None and workload.answer_shape is not Shape.EXPONENTIAL:
        yield Refusal("workload.longest_answer", "cuts exponential lengths off; the others have a longest already.")
    elif workload.longest_answer is not None and workload.longest_answer < workload.output_tokens:
        message = f"is less than the {workload.output_tokens:,} tokens of an answer on average."
        yield Refusal("workload.longest_answer", message)


def split_of(scenario: Scenario) -> Split:
    """How the scenario splits one replica."""
    return Split(**scenario.parallelism.model_dump())


def _replicas(scenario: Scenario, split: Split) -> int:
    count = scenario.hardware.count
    return 1 if count is None else count // split.gpus


_MOST_GPUS = 10**6


def _divided(architecture: Architecture, draft: Draft | None, scenario: Scenario) -> None:
    """Every size must divide what it divides, the draft model's heads too, and the count must be whole replicas."""
    split, refusals = split_of(scenario), []
    if split.gpus > _MOST_GPUS:
        raise ScenarioError([Refusal("parallelism", f"{split.gpus:,} GPUs in a replica are more than are computed.")])
    parts = [("parallelism.decode_context", Split(split.tensor, decode_context=split.decode_context))]
    if split.expert > 1 and not architecture.has_experts:
        refusals.append(Refusal("parallelism.expert", f"{architecture.name} has no experts to share out."))
    else:
        parts.append(("parallelism.expert", Split(split.tensor, data=split.data, expert=split.expert)))
    for path, part in parts:
        try:
            part.check()
        except SplitError as error:
            refusals.append(Refusal(path, str(error)))
    try:
        stage_sizes(architecture.n_layers, split.pipeline)
    except SplitError as error:
        refusals.append(Refusal("parallelism.pipeline", str(error)))
    if not refusals:
        for path, part in (
            ("parallelism.tensor", replace(split, decode_context=1)),
            ("parallelism.decode_context", split),
        ):
            try:
                architecture.split(part)
            except SplitError as error:
                refusals.append(Refusal(path, str(error)))
                break
    if draft is not None:
        try:
            draft.architecture.split(Split(split.tensor))
        except SplitError as error:
            refusals.append(Refusal("techniques.speculative.draft", f"{draft.architecture.name}: {error}"))
    count = scenario.hardware.count
    if count is not None and count % split.gpus:
        whole = f"{split.tensor:,} tensor × {split.pipeline:,} pipeline × {split.data:,} data"
        message = f"{count:,} GPUs are no whole number of replicas of {split.gpus:,} ({whole})."
        refusals.append(Refusal("hardware.count", message))
    if refusals:
        raise ScenarioError(refusals)


def accelerator_of(hardware: Hardware | PoolHardware, catalog: Catalog, path: str) -> Accelerator:
    """The accelerator that is named, or described.

    Raises:
        ScenarioError: it is unknown.
    """
    if hardware.custom is not None:
        return custom_accelerator(hardware.custom)
    device = catalog.devices.get(hardware.id or "")
    if device is None:
        raise ScenarioError([unknown(f"{path}.id", "accelerator", hardware.id or "", catalog.accelerators)])
    return device


def custom_accelerator(custom: CustomAccelerator) -> Accelerator:
    """The accelerator that a scenario describes, for the calculators."""
    mib, link = custom.memory_reported_mib, custom.link_one_way_gb_per_s
    return Accelerator(
        id="custom",
        name=custom.name,
        memory_marketed_bytes=custom.memory_gb * GB,
        memory_reported_bytes=None if mib is None else mib * MIB,
        bandwidth_bytes_per_s=custom.bandwidth_gb_per_s * GB,
        peak_flops_per_s=MappingProxyType({dtype: rate * TERA for dtype, rate in custom.dense_tflops.items()}),
        tdp_w=custom.tdp_w,
        price_usd_per_hour=custom.usd_per_hour,
        link_bytes_per_s_one_way=None if link is None else link * GB,
        # The maker of a card of one's own is unknown; the driver's part is taken to be that of the usual one.
        memory_seen_bytes=None if mib is None else seen_of_reported(mib * MIB),
    )


def _plan(asked: str | None, model: ResolvedModel | None, catalog: Catalog) -> WeightPlan:
    if asked is None or asked == NATIVE:
        return model.native_plan if model else next(iter(catalog.plans.values()))
    # Beside an unknown model any other stands in: only the format is judged then.
    architecture = model.architecture if model else next(iter(catalog.architectures.values()))
    return convention(WeightFormat(asked), architecture)


def _precision(
    scenario: Scenario, model: ResolvedModel | None, accelerator: Accelerator, catalog: Catalog
) -> calc.Precision:
    asked = scenario.precision
    plan = _plan(asked.weights, model, catalog)
    compute = asked.compute or _open_choice(plan, accelerator)
    try:
        accelerator.peak(compute)
    except UnknownPeakError as error:
        raise ScenarioError([Refusal("precision.compute", str(error))]) from error
    element = plan.narrowest.element
    if element not in _NARROW_ARITHMETIC.get(compute, {element}) or compute.bits < element.bits < Dtype.FP32.bits:
        message = f"{compute} arithmetic cannot work on weights stored in {element}; choose a 16-bit type."
        raise ScenarioError([Refusal("precision.compute", message)])
    return calc.Precision(plan, asked.kv_cache, compute)


def _open_choice(plan: WeightPlan, accelerator: Accelerator) -> Dtype:
    for dtype in _PREFERRED.get(plan.narrowest.element, _SIXTEEN_BITS):
        if dtype in accelerator.peak_flops_per_s:
            return dtype
    known = ", ".join(accelerator.peak_flops_per_s) or "none"
    message = f"{accelerator.name} has no published rate for {plan.narrowest.element} weights; known rates: {known}."
    raise ScenarioError([Refusal("precision.compute", message)])
