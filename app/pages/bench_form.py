"""The form of the benchmark page: what was brought, and the scenario that it is laid over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from starlette.datastructures import FormData, UploadFile

from app.answer import answer
from app.bench.study import NAME
from app.bench.texts import MOST_BYTES
from app.catalog.catalog import Catalog
from app.default_scenario import default_scenario
from app.pages.form import Form, form_of_answer, refused_form
from app.refusal import ScenarioError
from app.scenario import Scenario
from app.scenario_query import BY_NAME
from app.web.query import answer_from

CHOSEN = ("model", "hw", "engine", "engine_version", "tp", "w", "kv", "under", "pp", "dp", "ep", "count", "hit")
"""Fields of the scenario that stand in the form; the others go along unseen."""
_MOST_FILES = 64
Items = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Brought:
    """What a browser sent: the text of all files, the name for the fit, the fields of the scenario."""

    text: str
    name: str
    items: Items
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BenchForm:
    """The fields of the scenario with what is wrong with them, and the text and the name beside them."""

    scenario: Form
    brought: Brought
    errors: Mapping[str, str]

    def value(self, name: str) -> str:
        """What stands in a field."""
        own = {"text": self.brought.text, "name": self.brought.name}
        return own[name] if name in own else self.scenario.value(name)

    def error(self, name: str) -> str:
        """What is wrong with it; empty where nothing is."""
        return self.errors.get(name) or self.scenario.error(name)

    @property
    def is_refused(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.errors or self.scenario.errors or self.scenario.general)

    @property
    def general(self) -> Sequence[str]:
        """What is wrong with no field, or with one that does not stand here."""
        hidden = [f"{name}: {self.scenario.error(name)}" for name in BY_NAME if name not in CHOSEN]
        return [*self.scenario.general, *(text for text in hidden if not text.endswith(": "))]

    def holds_value(self, names: Sequence[str], usual: Sequence[str] = ()) -> bool:
        """Whether one of them is filled with more than what is usual."""
        return self.scenario.holds_value(names, usual)

    @property
    def unseen(self) -> Items:
        """Fields that go along: a calibration does not, for the fit is on the default."""
        others = [name for name in BY_NAME if name not in CHOSEN and not name.startswith("cal_")]
        told = [(name, self.scenario.value(name)) for name in others]
        return [(name, value) for name, value in told if value or BY_NAME[name].empty_is_null]


async def brought_by(form: FormData) -> Brought:
    """What was posted; chosen files take the place of the text, one after the other."""
    texts = {name: value for name, value in form.multi_items() if isinstance(value, str)}
    items = [(name, value) for name, value in form.multi_items() if name in BY_NAME and isinstance(value, str)]
    files = [file for file in form.getlist("file") if isinstance(file, UploadFile) and file.size]
    text, name = texts.get("text", ""), texts.get("name", "")
    if len(files) > _MOST_FILES:
        return Brought(text, name, items, f"At most {_MOST_FILES} files at a time.")
    parts, room = [], MOST_BYTES + 1
    for file in files:
        part = await file.read(room)
        room -= len(part)
        parts.append(_decoded(part))
    return Brought("\n".join(parts) if parts else text, name, items)


def _decoded(part: bytes) -> str:
    """A file as text, as far as it is one: what is none is for the reader to refuse, by what it then looks like."""
    wide = part.startswith((b"\xff\xfe", b"\xfe\xff"))
    return part.decode("utf-16" if wide else "utf-8", "replace").lstrip("\ufeff")


def opened(items: Items, catalog: Catalog) -> BenchForm:
    """The form for a scenario that an address carries; with nothing asked, for the default one."""
    asked = [item for item in items if item[0] in BY_NAME]
    form, _ = scenario_form(asked, catalog)
    return BenchForm(form, Brought("", NAME, asked), {})


def scenario_form(items: Items, catalog: Catalog) -> tuple[Form, Scenario | None]:
    """The form of the items, and the scenario where they make one."""
    try:
        answered = answer_from(items, catalog) if items else answer(default_scenario(), catalog)
    except ScenarioError as error:
        return refused_form(items, default_scenario(), error), None
    return form_of_answer(answered, catalog), answered.scenario
