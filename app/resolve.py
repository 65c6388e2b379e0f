"""From a Scenario to a Deployment: ids become facts, and what was left open is decided and written down."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from app.calc import deployment as calc
from app.calc.accelerator import Accelerator, UnknownPeakError
from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.layers.parts import SplitError
from app.calc.units import GB, MIB, TERA
from app.calc.weight_plan import NATIVE, WeightPlan, convention
from app.catalog.catalog import Catalog
from app.refusal import Refusal, ScenarioError, unknown
from app.resolve_model import ResolvedModel, resolve_model
from app.scenario import CustomAccelerator, Scenario


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
    accelerator = _collect(refusals, lambda: _accelerator(scenario, catalog))
    if scenario.engine.id not in catalog.engines:
        refusals.append(unknown("engine.id", "engine", scenario.engine.id, catalog.engines))
    precision = _collect(refusals, lambda: _precision(scenario, model, accelerator, catalog)) if accelerator else None
    if model is not None and not refusals:
        _collect(refusals, lambda: _divided(model.architecture, scenario.parallelism.tensor))
    if refusals or model is None or accelerator is None or precision is None:
        raise ScenarioError(refusals)
    engine, workload = scenario.engine, scenario.workload
    deployment = calc.Deployment(
        architecture=model.architecture,
        accelerator=accelerator,
        precision=precision,
        engine=calc.Engine(
            engine.id, engine.memory_utilization, engine.max_model_len, engine.max_num_seqs, engine.kv_pool_bytes
        ),
        workload=calc.Workload(
            workload.prompt_tokens,
            workload.output_tokens,
            workload.concurrency,
            workload.prefix_hit_rate,
            workload.slo_ttft_s,
            workload.slo_tpot_s,
        ),
        memory_basis=scenario.memory_basis,
        tensor_parallel=scenario.parallelism.tensor,
    )
    written_out = {
        "precision": scenario.precision.model_copy(
            update={"weights": _label(precision.weights), "compute": precision.compute}
        ),
        "hardware": scenario.hardware.model_copy(update={"count": scenario.parallelism.tensor}),
    }
    return Resolved(scenario.model_copy(update=written_out), deployment, model.notices)


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
    """Fields of the form whose calculators do not exist; a value there must not be ignored in silence."""
    for path, value in (
        ("parallelism.pipeline", scenario.parallelism.pipeline),
        ("parallelism.expert", scenario.parallelism.expert),
        ("parallelism.data", scenario.parallelism.data),
    ):
        if value != 1:
            yield Refusal(path, "only 1 is computed; GPUs share a model by tensor parallelism.")
    count, tensor = scenario.hardware.count, scenario.parallelism.tensor
    if count is not None and count != tensor:
        message = f"one replica is computed, of {tensor:,} GPU{'s' if tensor > 1 else ''}; leave the count out."
        yield Refusal("hardware.count", message)
    if scenario.engine.block_size is not None:
        yield Refusal("engine.block_size", "is not computed: the ideal engine has pages of one token. Leave it out.")


def _divided(architecture: Architecture, ranks: int) -> None:
    try:
        architecture.split(ranks)
    except SplitError as error:
        raise ScenarioError([Refusal("parallelism.tensor", str(error))]) from error


def _accelerator(scenario: Scenario, catalog: Catalog) -> Accelerator:
    hardware = scenario.hardware
    if hardware.custom is not None:
        return custom_accelerator(hardware.custom)
    device = catalog.devices.get(hardware.id or "")
    if device is None:
        raise ScenarioError([unknown("hardware.id", "accelerator", hardware.id or "", catalog.accelerators)])
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
