"""The workbench’s form: what stands in each field, and what is wrong with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.answer import Answer
from app.calc.notation import significant
from app.catalog.catalog import Catalog
from app.pages.engine_words import settings_words
from app.refusal import ScenarioError
from app.resolve_engine import resolve_engine
from app.scenario import Scenario
from app.scenario_query import BY_NAME, Kind, name_of, query_items, written_bytes

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
