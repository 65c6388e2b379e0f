"""From a Scenario to a Deployment: ids become facts, and what was left open is decided and written down."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import TypeVar

from app.calc import deployment as calc
from app.calc.accelerator import Accelerator, UnknownPeakError
from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.units import GB, MIB, TERA
from app.catalog.catalog import Catalog
from app.catalog.config_reader import ConfigError, read_config
from app.scenario import CustomAccelerator, Scenario


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing wrong with a scenario: where (a dotted path), and what to do about it."""

    path: str
    message: str


class ScenarioError(ValueError):
    """The scenario names something unknown or not computed. All refusals together, each at its path."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("; ".join(f"{r.path}: {r.message}" for r in self.refusals))


@contextmanager
def under(path: str) -> Iterator[None]:
    """Refusals raised inside stand below `path`, where the scenario is a part of what was sent."""
    try:
        yield
    except ScenarioError as error:
        raise ScenarioError(Refusal(f"{path}.{r.path}", r.message) for r in error.refusals) from error


@dataclass(frozen=True, slots=True)
class Resolved:
    """The normalised scenario, and the deployment it stands for."""

    scenario: Scenario
    deployment: calc.Deployment


def resolve(scenario: Scenario, catalog: Catalog) -> Resolved:
    """The deployment that `scenario` names, and the scenario with every open choice written out.

    Raises:
        ScenarioError: unknown ids, a rate that the card does not publish, or a field that is not computed yet.
    """
    refusals = list(_not_computed(scenario))
    architecture = _collect(refusals, lambda: _architecture(scenario, catalog))
    accelerator = _collect(refusals, lambda: _accelerator(scenario, catalog))
    if scenario.engine.id not in catalog.engines:
        refusals.append(_unknown("engine.id", "engine", scenario.engine.id, catalog.engines))
    precision = _collect(refusals, lambda: _precision(scenario, accelerator)) if accelerator else None
    if refusals or architecture is None or accelerator is None or precision is None:
        raise ScenarioError(refusals)
    engine, workload = scenario.engine, scenario.workload
    deployment = calc.Deployment(
        architecture=architecture,
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
    )
    written_out = scenario.precision.model_copy(update={"compute": precision.compute})
    return Resolved(scenario.model_copy(update={"precision": written_out}), deployment)


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
        WeightFormat.FP32: (Dtype.FP32, Dtype.TF32),
        WeightFormat.FP16: (Dtype.FP16, Dtype.BF16),
        WeightFormat.FP8: (Dtype.FP8, Dtype.BF16, Dtype.FP16),
        WeightFormat.MXFP4: (Dtype.FP4, Dtype.BF16, Dtype.FP16),
        WeightFormat.NVFP4: (Dtype.FP4, Dtype.BF16, Dtype.FP16),
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
    message = "only 1 is computed: one accelerator holds the whole model."
    for path, value in (
        ("hardware.count", scenario.hardware.count),
        ("parallelism.tensor", scenario.parallelism.tensor),
        ("parallelism.pipeline", scenario.parallelism.pipeline),
        ("parallelism.expert", scenario.parallelism.expert),
        ("parallelism.data", scenario.parallelism.data),
    ):
        if value != 1:
            yield Refusal(path, message)
    if scenario.engine.block_size is not None:
        yield Refusal("engine.block_size", "is not computed: the ideal engine has pages of one token. Leave it out.")


def _architecture(scenario: Scenario, catalog: Catalog) -> Architecture:
    model = scenario.model
    if model.config is not None:
        try:
            return read_config(model.config, model.name or "Custom model")
        except ConfigError as error:
            raise ScenarioError([Refusal(f"model.config.{error.key}", error.message)]) from error
    architecture = catalog.architectures.get(model.id or "")
    if architecture is None:
        raise ScenarioError([_unknown("model.id", "model", model.id or "", catalog.models)])
    return architecture


def _accelerator(scenario: Scenario, catalog: Catalog) -> Accelerator:
    hardware = scenario.hardware
    if hardware.custom is not None:
        return _custom_accelerator(hardware.custom)
    device = catalog.devices.get(hardware.id or "")
    if device is None:
        raise ScenarioError([_unknown("hardware.id", "accelerator", hardware.id or "", catalog.accelerators)])
    return device


def _custom_accelerator(custom: CustomAccelerator) -> Accelerator:
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


def _precision(scenario: Scenario, accelerator: Accelerator) -> calc.Precision:
    asked = scenario.precision
    compute = asked.compute or _open_choice(asked.weights, accelerator)
    try:
        accelerator.peak(compute)
    except UnknownPeakError as error:
        raise ScenarioError([Refusal("precision.compute", str(error))]) from error
    element = asked.weights.layout.element
    if element not in _NARROW_ARITHMETIC.get(compute, {element}) or compute.bits < element.bits < Dtype.FP32.bits:
        message = f"{compute} arithmetic cannot work on weights stored in {asked.weights}; choose a 16-bit type."
        raise ScenarioError([Refusal("precision.compute", message)])
    return calc.Precision(asked.weights, asked.kv_cache, compute)


def _open_choice(weights: WeightFormat, accelerator: Accelerator) -> Dtype:
    for dtype in _PREFERRED.get(weights, _SIXTEEN_BITS):
        if dtype in accelerator.peak_flops_per_s:
            return dtype
    known = ", ".join(accelerator.peak_flops_per_s) or "none"
    message = f"{accelerator.name} has no published rate for {weights} weights; known rates: {known}."
    raise ScenarioError([Refusal("precision.compute", message)])


def _unknown(path: str, noun: str, given: str, known: Mapping[str, object]) -> Refusal:
    holding = [name for name in known if given in name]
    near = holding[:3] or get_close_matches(given, known, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return Refusal(path, f"There is no {noun} {given!r} in the catalog.{hint}")
