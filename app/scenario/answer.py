"""A scenario in, an answer out: the one call behind every page, endpoint, chart and export."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.accelerator import MemoryBasis
from app.calc.evaluate import FORMULA_VERSION, Evaluation, evaluate
from app.calc.model.attention_variants import Alternative
from app.calc.model.parameters import count_parameters, weight_bytes
from app.calc.notices import Notice
from app.calc.quantity import quantity
from app.calc.time.lengths import Shape
from app.catalog.accelerators import AcceleratorRecord, Confidence, Status
from app.catalog.catalog import Catalog
from app.catalog.engines import EngineRecord, usual_batch
from app.catalog.models import ModelRecord
from app.scenario.resolve import Resolved, resolve
from app.scenario.resolve_parts import engine_records
from app.scenario.scenario import Scenario

WITHOUT_EFFECT = "setting_without_effect"


@dataclass(frozen=True, slots=True)
class Answer:
    """The normalised scenario, its evaluation, the catalog rows behind it, and the versions that made it.

    `engine` is the one that is named, `rules` the one whose rules divide the memory: another one where it is treated
    as that, or runs it.
    """

    scenario: Scenario
    evaluation: Evaluation
    model: ModelRecord | None
    accelerator: AcceleratorRecord | None
    engine: EngineRecord
    rules: EngineRecord
    notices: tuple[Notice, ...]
    catalog_version: str
    formula_version: str = FORMULA_VERSION


def answer(scenario: Scenario, catalog: Catalog) -> Answer:
    """The answer to `scenario`.

    Raises:
        ScenarioError: the scenario names something unknown, or something that is not computed.
    """
    resolved = resolve(scenario, catalog)
    model = catalog.models.get(scenario.model.id or "")
    record = catalog.accelerators.get(scenario.hardware.id or "")
    engine, rules = engine_records(resolved.scenario.engine, catalog)
    evaluation = evaluate(resolved.deployment, _alternatives(resolved, rules, record, catalog))
    return Answer(
        scenario=resolved.scenario,
        evaluation=evaluation,
        model=model,
        accelerator=record,
        engine=engine,
        rules=rules,
        notices=(
            *evaluation.notices,
            *_wider_than_shipped(resolved, model),
            *_beyond_node(resolved, record),
            *_read(resolved),
            *_untrained(resolved),
            *_without_effect(resolved),
            *_caveats(model, record),
        ),
        catalog_version=catalog.version,
    )


def _wider_than_shipped(resolved: Resolved, model: ModelRecord | None) -> list[Notice]:
    """A model that is published in fewer bytes than the scenario stores it in: nobody serves that unless on purpose."""
    if model is None:
        return []
    deployment = resolved.deployment
    counts = count_parameters(deployment.architecture)
    asked = weight_bytes(counts, deployment.precision.weights)
    shipped = weight_bytes(counts, model.native_plan)
    if asked <= shipped:
        return []
    message = (
        f"{model.name} is published with weights of {quantity(shipped, 'B', 3)} ({model.checkpoints[0].label}); stored "
        f"in {deployment.precision.weights.label}, as here, they take {quantity(asked, 'B', 3)}."
    )
    return [Notice("wider_than_shipped", message)]


def _beyond_node(resolved: Resolved, record: AcceleratorRecord | None) -> list[Notice]:
    """More GPUs than one node links: the network between nodes is slower, and no ceiling knows it."""
    ranks = resolved.deployment.split.gpus
    if record is None or record.link.max_in_node is None or ranks <= record.link.max_in_node:
        return []
    message = (
        f"{record.name} is linked in nodes of {record.link.max_in_node:,}; {ranks:,} of them also speak over a slower "
        "network, which the ceilings take to be as fast as the link."
    )
    return [Notice("beyond_node", message)]


def _read(resolved: Resolved) -> list[Notice]:
    """What was assumed in reading a model of one's own."""
    return [Notice("model_as_read", message) for message in resolved.notices]


def _untrained(resolved: Resolved) -> list[Notice]:
    variant = resolved.scenario.techniques.attention
    if variant is None:
        return []
    name = resolved.deployment.architecture.name
    message = f"{name} is told with other attention ({variant.upper()}): sizes and speed follow, but nobody trained it."
    return [Notice("attention_variant", message)]


def _without_effect(resolved: Resolved) -> list[Notice]:
    """Settings that change none of the figures, given the rest of the scenario."""
    scenario, found = resolved.scenario, []
    if scenario.workload.answer_shape is not Shape.FIXED and not scenario.techniques.static_batching:
        found.append(
            "How the lengths of answers are spread changes no figure here: only static batches wait for the longest."
        )
    custom = scenario.hardware.custom
    if scenario.memory_basis is MemoryBasis.MARKETED and custom is not None and custom.memory_reported_mib is None:
        found.append(
            f"Memory as on the box changes nothing: what a driver reports of {custom.name} is not given, so that the "
            "marketed size is taken either way."
        )
    return [Notice(WITHOUT_EFFECT, message) for message in found]


def _alternatives(
    resolved: Resolved, rules: EngineRecord, record: AcceleratorRecord | None, catalog: Catalog
) -> Sequence[Alternative]:
    """Cards a lever may propose: on sale, of the same maker, well attested, no slower a generation."""
    if record is None:
        return ()
    release = rules.release(resolved.scenario.engine.version)
    return [
        Alternative(device := catalog.devices[other.id], usual_batch(rules, release, device)[1])
        for other in catalog.accelerators.values()
        if other.vendor == record.vendor
        and other.status is Status.RELEASED
        and other.confidence is not Confidence.C
        and other.year >= record.year
    ]


def _caveats(model: ModelRecord | None, record: AcceleratorRecord | None) -> list[Notice]:
    found = []
    if record is not None:
        if record.confidence is Confidence.C or record.uncertain:
            what = ", ".join(record.uncertain) or "its figures"
            found.append(Notice("uncertain_hardware", f"{record.name}: {what} rest on thin or indirect sources."))
        if record.status is Status.ANNOUNCED:
            found.append(
                Notice("announced_hardware", f"{record.name} was announced, not shipped, when it was recorded.")
            )
        found += [Notice("hardware_caveat", f"{record.name}: {caveat}") for caveat in record.caveats]
    if model is not None:
        found += [Notice("model_caveat", f"{model.name}: {caveat}") for caveat in model.caveats]
    return found
