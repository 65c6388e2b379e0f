"""One change taken back without any memory of it: the address of a changed view carries what the change replaced.

People and what each asks first: scenarios to start from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from app.features.validation.production import production_scenario
from app.scenario.query import BY_NAME, Kind, QueryField
from app.scenario.scenario import Scenario
from app.web import urls

UNDO = "undo"
MOST_CHARACTERS = 400
MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Undo:
    """A link back, and what it brings back in words."""

    href: str
    words: str


def replaced(before: urls.Items, after: urls.Items) -> str:
    """What `after` replaced, as a query string of its own; what it added is brought back as empty."""
    was, now = dict(before), dict(after)
    changed = [(name, value) for name, value in before if now.get(name) != value]
    return urls.query_string([*changed, *((name, "") for name, _ in after if name not in was)])


def undo_of(text: str | None, items: urls.Items) -> Undo | None:
    """The way back from `items`; None where the text names nothing that could be brought back."""
    if not text or len(text) > MOST_CHARACTERS:
        return None
    try:
        read = parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        return None
    back = {name: value for name, value in read if name in BY_NAME}
    if not back or len(back) != len(read):
        return None
    kept = [(name, back.get(name, value)) for name, value in items]
    added = [(name, value) for name, value in back.items() if name not in dict(items)]
    return Undo(urls.workbench([*kept, *added]), _words(list(back.items())))


def _words(back: Sequence[tuple[str, str]]) -> str:
    """What comes back; of a split the total of GPUs goes without saying, and so does what a part left out has lost."""
    told = [(BY_NAME[name], value) for name, value in back if value or BY_NAME[name].ui.empty]
    told = [pair for pair in told if pair[0].ui.group != "measured"]
    if len(told) > 1:
        told = [pair for pair in told if pair[0].name != "count"]
    return ", ".join(f"{field.label}: {_value(field, value)}" for field, value in told) or "what was measured"


def _value(field: QueryField, value: str) -> str:
    if not value:
        return field.ui.empty
    if field.kind is Kind.JSON:
        return "as given"
    if field.kind is Kind.FLAG:
        value = "1" if value in ("1", "true") else "0"
    words = dict(field.ui.choices).get(value)
    if words is None and field.kind is Kind.FLAG:
        return "on" if value == "1" else "off"
    return words or (value if field.kind is Kind.BYTES else field.with_unit(value))


@dataclass(frozen=True, slots=True)
class Preset:
    """A scenario with the person and the question it is for."""

    person: str
    question: str
    scenario: Scenario


def presets() -> tuple[Preset, ...]:
    """One for each of five, in the order of the page; and a deployment whose operator told what comes out."""
    return (
        _preset(
            "Platform engineer",
            "Do 32k-token documents fit, and how many at once?",
            ("llama-3.1-8b", "h100-sxm-80gb"),
            {"prompt_tokens": 32_000, "output_tokens": 768, "concurrency": 16},
        ),
        _preset(
            "Capacity planner",
            "What does a million tokens cost on a full card?",
            ("llama-3.1-70b", "h200-sxm"),
            {"prompt_tokens": 2_000, "output_tokens": 500, "concurrency": None, "slo_tpot_s": 0.05},
            {"weights": "fp8"},
        ),
        _preset(
            "Performance engineer",
            "Is my measured step near the roof?",
            ("llama-3.1-8b", "h100-sxm-80gb"),
            {"prompt_tokens": 3_840, "output_tokens": 512, "concurrency": 64},
        ),
        _preset(
            "Student",
            "Why does one user get some 200 tokens/s and no more?",
            ("llama-3.1-8b", "h100-sxm-80gb"),
            {"prompt_tokens": 1_000, "output_tokens": 500, "concurrency": 1},
        ),
        _preset(
            "Home user",
            "What can my one card run?",
            ("qwen3-14b", "rtx-4090"),
            {"prompt_tokens": 2_000, "output_tokens": 500, "concurrency": 1},
            {"weights": "int4"},
        ),
        Preset("Operator", "How does DeepSeek serve V3 and R1 on H800?", production_scenario()),
    )


def _preset(
    person: str,
    question: str,
    on: tuple[str, str],
    workload: dict[str, object],
    precision: dict[str, object] | None = None,
) -> Preset:
    model, hardware = on
    document = {
        "model": {"id": model},
        "hardware": {"id": hardware},
        "workload": workload,
        "precision": precision or {},
    }
    return Preset(person, question, Scenario.model_validate(document))
