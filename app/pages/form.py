"""The workbench's form: what stands in each field, what is wrong with it, and the choices of each list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.answer import Answer
from app.calc.dtypes import Dtype, WeightFormat
from app.calc.notation import quantity
from app.calc.units import GB
from app.catalog.catalog import Catalog
from app.catalog.engines import EngineRecord
from app.holding import ENGINE
from app.model_facts import ModelFacts
from app.pages.engine_words import settings_words
from app.pages.model_rows import size_words
from app.refusal import ScenarioError
from app.resolve_engine import MAY_RUN_UNDERNEATH, resolve_engine
from app.scenario import Scenario
from app.scenario_query import BY_NAME, CUSTOM, Kind, name_of, query_items, written_bytes

Choice = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Choices under one heading; each is a value, a label, and words to search by."""

    label: str
    choices: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class Form:
    """Texts and messages by field name. `general` are messages that belong to no field.

    `settings` says what the engine works with where its fields are left empty.
    """

    values: Mapping[str, str]
    errors: Mapping[str, str]
    general: tuple[str, ...]
    settings: str = ""

    def value(self, name: str) -> str:
        """What stands in a field."""
        return self.values.get(name, "")

    def error(self, name: str) -> str:
        """What is wrong with it; empty when nothing is."""
        return self.errors.get(name, "")

    def holds_error(self, names: Sequence[str]) -> bool:
        """True when something is wrong with any of the fields, so that what folds them away must stand open."""
        return any(name in self.errors for name in names)

    def holds_value(self, names: Sequence[str], usual: Sequence[str] = ()) -> bool:
        """True when any of the fields is filled, with more than a zero or what is usual."""
        return any(self.value(name) not in ("", "0", "0.0", *usual) for name in names)

    @property
    def names(self) -> Sequence[str]:
        """Every field that can carry a message."""
        return tuple(BY_NAME)


def form_of(scenario: Scenario) -> Form:
    """The form that shows `scenario`, with nothing wrong."""
    return Form(_typed(scenario), {}, ())


def form_of_answer(answered: Answer, catalog: Catalog) -> Form:
    """The form behind an answer: what only follows from other choices stands empty, so that it goes on following them.

    The address has it written out all the same: a default that changes later changes no link.
    """
    values = _typed(answered.scenario) | dict.fromkeys(_following(answered, catalog), "")
    return Form(values, {}, (), settings_words(answered))


def _typed(scenario: Scenario) -> dict[str, str]:
    """The texts of the query, sizes as a person would type them."""
    values = dict(query_items(scenario))
    for name, text in values.items():
        if text and BY_NAME[name].kind is Kind.BYTES:
            values[name] = written_bytes(float(text))
    return values


_SETTINGS = {
    "max_batched": "max_batched_tokens",
    "block": "block_size",
    "prefix": "prefix_caching",
    "util": "memory_utilization",
}


def _following(answered: Answer, catalog: Catalog) -> list[str]:
    """Fields that hold just what would be taken if they were empty: the engine's defaults, and the GPUs of one replica.

    One at a time: the default of one may depend on what another is set to.
    """
    scenario, deployment = answered.scenario, answered.evaluation.deployment
    found = ["count"] if deployment.replicas == 1 else []
    for name, key in _SETTINGS.items():
        left_open = scenario.model_copy(update={"engine": scenario.engine.model_copy(update={key: None})})
        usual = resolve_engine(
            left_open, deployment.architecture, deployment.accelerator, deployment.split, catalog
        ).written
        if getattr(usual, key) == getattr(scenario.engine, key):
            found.append(name)
    return found


def refused_form(typed: Sequence[tuple[str, str]], defaults: Scenario, error: ScenarioError) -> Form:
    """The form as it was typed, with each refusal at its field; what was not sent shows its default."""
    values = _typed(defaults) | {name: value for name, value in typed if name in BY_NAME}
    errors: dict[str, str] = {}
    general = []
    for refusal in error.refusals:
        name = name_of(refusal.path)
        if name is None:
            general.append(f"{refusal.path}: {refusal.message}" if refusal.path else refusal.message)
        else:
            detail = next((refusal.path.removeprefix(file) for file in _FILES if refusal.path.startswith(file)), "")
            message = f"{detail}: {refusal.message}" if detail else refusal.message
            message = message[:1].upper() + message[1:] if not detail else message
            errors[name] = f"{errors[name]} {message}" if name in errors else message
    return Form(values, errors, tuple(general))


# Fields that hold a document of their own: the key inside it is told with the message.
_FILES = ("model.config.", "model.quantization.", "model.architecture.")


@dataclass(frozen=True, slots=True)
class FormLists:
    """Every list of choices the form offers; made once for a catalog."""

    models: tuple[Group, ...]
    drafts: tuple[Group, ...]
    accelerators: tuple[Group, ...]
    engines: tuple[Choice, ...]
    underneath: tuple[Choice, ...]
    weights: tuple[Choice, ...]
    cache: tuple[Choice, ...]
    compute: tuple[Choice, ...]


def form_lists(catalog: Catalog) -> FormLists:
    """The choices that `catalog` gives."""
    models = _model_groups(catalog)
    names = {e.id: _engine_label(e, catalog) for e in catalog.engines.values()}
    return FormLists(
        models=models,
        drafts=(Group("None", (("", "No draft model", "none n-gram"),)), *models),
        accelerators=_accelerator_groups(catalog),
        engines=tuple(names.items()),
        underneath=tuple((id_, names[id_]) for id_ in MAY_RUN_UNDERNEATH),
        weights=tuple((fmt.value, f"{fmt.value} · {fmt.layout.bits_per_weight:.4g} bits a weight") for fmt in _WEIGHTS),
        cache=tuple((dtype.value, f"{dtype.value} · {dtype.bits} bits") for dtype in _CACHES),
        compute=(("", "as weights and card allow"), *((dtype.value, dtype.value) for dtype in Dtype)),
    )


def _engine_label(engine: EngineRecord, catalog: Catalog) -> str:
    return engine.name if engine.treated_as is None else f"{engine.name} · as {catalog.engines[engine.treated_as].name}"


# The usual choices first.
_WEIGHTS = (
    WeightFormat.BF16,
    WeightFormat.FP16,
    WeightFormat.FP8,
    WeightFormat.INT8,
    WeightFormat.INT4,
    WeightFormat.MXFP4,
    WeightFormat.NVFP4,
    WeightFormat.FP32,
)
_CACHES = (Dtype.BF16, Dtype.FP16, Dtype.FP8, Dtype.INT8, Dtype.FP4, Dtype.INT4, Dtype.FP32)


def _model_groups(catalog: Catalog) -> tuple[Group, ...]:
    """Models by family, with their size and what of it is active; the custom one last."""
    families: dict[str, list[tuple[str, str, str]]] = {}
    for record in catalog.models.values():
        words = " ".join((record.hub_id, record.family, *record.same_shape))
        row = (record.id, f"{record.name} · {size_words(ModelFacts(record, catalog.engines[ENGINE]))}", words)
        families.setdefault(record.family, []).append(row)
    groups = [Group(family, tuple(rows)) for family, rows in families.items()]
    return (*groups, Group("Your own", ((CUSTOM, "Custom model…", "custom own config.json"),)))


def _accelerator_groups(catalog: Catalog) -> tuple[Group, ...]:
    """Accelerators by maker, with memory and bandwidth; the custom one last."""
    makers: dict[str, list[tuple[str, str, str]]] = {}
    for record in catalog.accelerators.values():
        bandwidth = quantity(record.memory.bandwidth_gb_per_s * GB, "B/s", 3)
        label = f"{record.name} · {record.memory.marketed_gb:g} GB · {bandwidth}"
        row = (record.id, label, f"{record.vendor} {record.architecture}")
        makers.setdefault(record.vendor, []).append(row)
    groups = [Group(maker, tuple(rows)) for maker, rows in makers.items()]
    return (*groups, Group("Your own", ((CUSTOM, "Custom accelerator…", "custom own"),)))
