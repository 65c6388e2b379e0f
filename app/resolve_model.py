"""From the model a scenario names, or brings, to an architecture and the plan of its weights."""

from dataclasses import dataclass, replace

from app.calc.architecture import Architecture, MultiTokenPrediction
from app.calc.dtypes import WeightFormat
from app.calc.engines.parts import Draft
from app.calc.weight_plan import WeightPlan, convention
from app.catalog.architecture_document import ArchitectureError, read_architecture
from app.catalog.catalog import Catalog
from app.catalog.importing.quantization.reading import BESIDE
from app.catalog.importing.reading import ConfigError, read_config
from app.refusal import Refusal, ScenarioError, under, unknown
from app.scenario import Model, Scenario

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
