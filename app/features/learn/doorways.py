"""Chapter eight: each optimization as a door in the wall, with what it does to the reader's own scenario."""

from dataclasses import dataclass

from app.calc.optimize.optimization import Figure, Level, Optimization
from app.calc.optimize.speculative import usual_speculation
from app.features.learn.case import EXACT, Case, Cases, Chapter, Desk, ridge_users
from app.features.learn.number import COUNT, PERCENT, LiveNumber
from app.web import urls

_SHARE, _DIGITS = "%", 3


@dataclass(frozen=True, slots=True)
class Change:
    """One figure of a door: closed and open."""

    label: str
    before: LiveNumber
    after: LiveNumber


@dataclass(frozen=True, slots=True)
class Doorway:
    """A door as the chapter tells it. `here` is the very door on its own page; `sentence` is computed with it."""

    id: str
    title: str
    is_open: bool
    refused: str | None
    sentence: str
    changes: tuple[Change, ...]
    here: str


def doorways(cases: Cases) -> Chapter:
    """Every door, and when guessing stops paying."""
    desk, asked = Desk("doors"), cases.asked
    found = {door.id: _doorway(desk, door, asked) for door in asked.evaluation.optimizations}
    stops = _guessing(desk, cases)
    return Chapter(
        "doors",
        "The doors",
        desk.numbers,
        asked,
        says={
            "doors": {str(id_): doorway for id_, doorway in found.items()},
            "below_stop": asked.batch < stops.value,
            "has_experts": asked.deployment.architecture.has_experts,
            "users": asked.batch,
        },
    )


def _doorway(desk: Desk, door: Optimization, asked: Case) -> Doorway:
    changes = []
    for at, key in enumerate(door.spec.shown):
        figure = _best(door, key)
        if figure is not None and figure.before is not None and figure.after is not None:
            changes.append(_change(desk, door, at, figure, asked))
    return Doorway(
        id=str(door.id),
        title=door.spec.title,
        is_open=door.is_used,
        refused=door.refused,
        sentence=door.sentence,
        changes=tuple(changes),
        here=urls.optimizations(urls.scenario_items(asked.scenario), str(door.id)),
    )


def _best(door: Optimization, key: str) -> Figure | None:
    """The figure of that key, as expected where something is; else at its ceiling, or exact."""
    named = [figure for figure in door.figures if figure.of.key == key]
    expected = [figure for figure in named if figure.level is Level.EXPECTED and figure.before is not None]
    return next(iter([*expected, *named]), None)


def _change(desk: Desk, door: Optimization, at: int, figure: Figure, asked: Case) -> Change:
    sides = []
    for side, value in (("before", figure.before), ("after", figure.after)):
        assert value is not None  # noqa: S101  # the caller has looked
        unit = PERCENT if figure.of.unit == _SHARE else figure.of.unit or COUNT
        size = value / 100 if unit == PERCENT else value
        digits = EXACT if unit in (COUNT, "tokens") and size == int(size) else _DIGITS
        label = f"{door.spec.title}, {figure.of.label[:1].lower()}{figure.of.label[1:]}, {side}"
        where = f"doors.{door.id}, {figure.of.label}, {figure.level}, {side}"
        sides.append(desk.given(f"{door.id}_{at}_{side}", label, size, unit, where, digits, asked.key))
    return Change(figure.of.label, sides[0], sides[1])


def _guessing(desk: Desk, cases: Cases) -> LiveNumber:
    """Users up to which guesses pay by the weights alone: those of the ridge, times tokens a step, over positions."""
    asked = cases.asked
    guessing = asked.deployment if asked.deployment.speculation is not None else usual_speculation(asked.deployment)
    ridge = desk.given(
        "ridge_users", "users at the ridge", ridge_users(cases.crowd), COUNT, "batching.ridge_users", 3, cases.crowd.key
    )
    yields = desk.given(
        "tokens_a_step",
        "tokens a step yields",
        guessing.tokens_per_step,
        COUNT,
        "techniques.speculative.tokens_per_step",
        3,
        asked.key,
    )
    guess = desk.given(
        "positions",
        "tokens a step works on",
        guessing.positions,
        COUNT,
        "techniques.speculative.positions",
        3,
        asked.key,
    )
    return desk.made("guessing_stops", "users up to whom it pays", COUNT, ridge, "×", yields, "÷", guess, digits=3)
