"""The workbench’s form: what stands in each field, and what is wrong with it.

The choices of the workbench's form: one list for each field that has them, made once for a catalog.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.quantity import GB, quantity, significant
from app.catalog.catalog import Catalog
from app.catalog.engines import EngineRecord
from app.catalog.facts import ENGINE, ModelFacts
from app.features.catalog.model_rows import size_words
from app.features.workbench.memory_view import settings_words
from app.scenario.answer import Answer
from app.scenario.query import BY_NAME, CUSTOM, Kind, name_of, query_items, written_bytes
from app.scenario.refusal import ScenarioError
from app.scenario.resolve_parts import CARD_LINK, MAY_RUN_UNDERNEATH, resolve_engine
from app.scenario.scenario import Scenario

CALIBRATION_NAME, *CALIBRATION_REST = (n for n, field in BY_NAME.items() if field.path.startswith("calibration."))
"""Fields of a calibration of one's own: its name, and the others."""


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

    def opens(self, group: str) -> bool:
        """True when what folds the group away must stand open: a field of it has an error, or another value than the
        usual one.
        """
        fields = [field for field in BY_NAME.values() if field.ui.group == group]
        return any(field.name in self.errors or self.value(field.name) not in ("", field.usual) for field in fields)

    def holds_error(self, names: Sequence[str]) -> bool:
        """True when something is wrong with any of the fields, so that what folds them away must stand open."""
        return any(name in self.errors for name in names)

    def holds_value(self, names: Sequence[str], usual: Sequence[str] = ()) -> bool:
        """True when any of the fields is filled, with more than a zero or what is usual."""
        return any(self.value(name) not in ("", "0", "0.0", *usual) for name in names)

    @property
    def carries_calibration(self) -> bool:
        """Whether a calibration of one's own came with the scenario, chosen or set aside."""
        return any(self.value(name) for name in (CALIBRATION_NAME, *CALIBRATION_REST))

    @property
    def calibration_fields(self) -> Sequence[tuple[str, str]]:
        """What it consists of beside its name, which the form sends along unseen."""
        return [(name, self.value(name)) for name in CALIBRATION_REST]

    @property
    def calibration_words(self) -> str:
        """Its name, factors and points, as they stand."""
        told = []
        for side in ("decode", "prefill"):
            factor, points = self.value(f"cal_{side}"), self.value(f"cal_{side}_n")
            if factor:
                counted = f" ({points} {'point' if points == '1' else 'points'})" if points else ""
                told.append(f"{side} × {_rounded(factor)}{counted}")
        name = self.value(CALIBRATION_NAME)
        return f"«{name}»: {', '.join(told)}" if name else ", ".join(told)

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


# Beyond these no factor of a calibration lies.
_LEAST, _MOST = 0.01, 100.0
# Fields that hold a document of their own: the key inside it is told with the message.
_FILES = ("model.config.", "model.quantization.", "model.architecture.")


def _rounded(text: str) -> str:
    """A factor as people read it; what could be none stands as it was typed."""
    try:
        factor = float(text)
    except ValueError:
        return text
    return significant(factor, 3) if _LEAST <= factor <= _MOST else text


Choice = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Group:
    """Choices under one heading; each is a value, a label, and words to search by."""

    label: str
    choices: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class FormLists:
    """Every list of choices the form offers; made once for a catalog."""

    models: tuple[Group, ...]
    drafts: tuple[Group, ...]
    pools: tuple[Group, ...]
    accelerators: tuple[Group, ...]
    engines: tuple[Choice, ...]
    underneath: tuple[Choice, ...]
    weights: tuple[Choice, ...]
    cache: tuple[Choice, ...]
    links: tuple[Choice, ...]


def form_lists(catalog: Catalog) -> FormLists:
    """The choices that `catalog` gives."""
    models = _model_groups(catalog)
    names = {e.id: _engine_label(e, catalog) for e in catalog.engines.values()}
    return FormLists(
        models=models,
        drafts=(Group("None", (("", "No draft model", "none n-gram"),)), *models),
        pools=(Group("None", (("", "None: prompts share the GPUs", "none together"),)), *_accelerators(catalog)),
        accelerators=(*_accelerators(catalog), _OWN_ACCELERATOR),
        engines=tuple(names.items()),
        underneath=tuple((id_, names[id_]) for id_ in MAY_RUN_UNDERNEATH),
        weights=tuple((fmt.value, f"{fmt.value} · {fmt.layout.bits_per_weight:.4g} bits a weight") for fmt in _WEIGHTS),
        cache=tuple((dtype.value, f"{dtype.value} · {dtype.bits} bits") for dtype in _CACHES),
        links=(
            ("", "InfiniBand NDR or RoCE, as usual"),
            (CARD_LINK, "the card’s own link"),
            *((link.id, link.name) for link in catalog.links.values()),
        ),
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


def _accelerators(catalog: Catalog) -> tuple[Group, ...]:
    """Accelerators by maker, with memory and bandwidth."""
    makers: dict[str, list[tuple[str, str, str]]] = {}
    for record in catalog.accelerators.values():
        bandwidth = quantity(record.memory.bandwidth_gb_per_s * GB, "B/s", 3)
        label = f"{record.name} · {record.memory.marketed_gb:g} GB · {bandwidth}"
        row = (record.id, label, f"{record.vendor} {record.architecture}")
        makers.setdefault(record.vendor, []).append(row)
    return tuple(Group(maker, tuple(rows)) for maker, rows in makers.items())


_OWN_ACCELERATOR = Group("Your own", ((CUSTOM, "Custom accelerator…", "custom own"),))
