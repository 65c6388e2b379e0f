"""The lesson's inputs: a strip of six, one in the text, and all other fields of the scenario carried along unseen."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.answer import Answer
from app.catalog.catalog import Catalog
from app.default_scenario import default_scenario
from app.learn.lesson import CHAT, USUAL_CHAT_TOKENS
from app.learn.query import with_usual
from app.pages.form import Form, form_of_answer, refused_form
from app.pages.form_lists import FormLists, Group
from app.refusal import ScenarioError
from app.resolve import resolve
from app.scenario import Scenario
from app.scenario_query import BY_NAME, CUSTOM
from app.web.urls import Items

SHOWN = ("model", "hw", "tp", "prompt", "out", "batch", CHAT)
OWN = "Your own"


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as the lesson reads it: items of a scenario, and the conversation's length as it was typed."""

    items: Sequence[tuple[str, str]]
    chat: str


def asked_of(items: Items) -> Asked:
    """The query with the usual model and card where it names none."""
    found = with_usual([(name, value) for name, value in items if name in BY_NAME])
    chat = next((value for name, value in reversed(items) if name == CHAT), "")
    return Asked(found, chat.strip())


def form_of_lesson(answered: Answer, chat_tokens: int, catalog: Catalog) -> Form:
    """The form behind a lesson. What follows from the model stands empty, so that another model brings its own."""
    form = form_of_answer(answered, catalog)
    following = dict.fromkeys(_following_formats(answered.scenario, catalog), "")
    return replace(form, values={**form.values, **following, CHAT: str(chat_tokens)})


def refused_lesson_form(asked: Asked, error: ScenarioError | None, chat_message: str | None) -> Form:
    """The form as it was typed, with each refusal at its field."""
    form = refused_form(asked.items, default_scenario(), error or ScenarioError([]))
    errors = dict(form.errors) | ({CHAT: chat_message} if chat_message else {})
    return replace(form, values={**form.values, CHAT: asked.chat or str(USUAL_CHAT_TOKENS)}, errors=errors)


def carried(form: Form) -> list[tuple[str, str]]:
    """The fields that the strip does not show, for the form to send all the same."""
    return [(name, form.value(name)) for name in BY_NAME if name not in SHOWN and form.value(name)]


def unseen_messages(form: Form) -> list[str]:
    """What is wrong with fields that the strip does not show, and with none in particular."""
    unseen = [f"{name}: {text}" for name, text in form.errors.items() if name not in SHOWN]
    return [*form.general, *unseen]


def lists_of(lists: FormLists, form: Form) -> Mapping[str, tuple[Group, ...]]:
    """Models and accelerators to choose from; one's own only where it is chosen already, for here is no place to say
    what it is."""

    def kept(groups: tuple[Group, ...], name: str) -> tuple[Group, ...]:
        return tuple(group for group in groups if group.label != OWN or form.value(name) == CUSTOM)

    return {"models": kept(lists.models, "model"), "accelerators": kept(lists.accelerators, "hw")}


def _following_formats(scenario: Scenario, catalog: Catalog) -> list[str]:
    """Weights and arithmetic, where they are what would be taken if nothing were said."""
    found = []
    for name, key in (("w", "weights"), ("compute", "compute")):
        left_open = scenario.precision.model_copy(update={key: None})
        try:
            usual = resolve(scenario.model_copy(update={"precision": left_open}), catalog).scenario.precision
        except ScenarioError:
            continue
        if getattr(usual, key) == getattr(scenario.precision, key):
            found.append(name)
    return found
