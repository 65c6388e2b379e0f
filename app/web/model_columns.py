"""What the list of models can be asked, and what its words mean."""

from collections.abc import Callable, Collection, Mapping, Sequence

from app.calc.mixer_kinds import MixerKind
from app.calc.units import GB
from app.calc.weight_plan import NATIVE
from app.model_facts import ModelFacts
from app.web import listing
from app.web.listing import Bound, Column

Models = Sequence[Column[ModelFacts]]
BILLION, KIB = 1e9, 1024
FIRST_YEAR, LAST_YEAR = 2000, 2100
KIND_LABELS: Mapping[str, str] = {"dense": "dense", "experts": "mixture of experts"}
ATTENTION_LABELS: Mapping[MixerKind, str] = {
    MixerKind.FULL: "full everywhere",
    MixerKind.WINDOW: "sliding windows",
    MixerKind.CHUNK: "chunks",
    MixerKind.LATENT: "latent (MLA)",
    MixerKind.SPARSE: "sparse selection",
    MixerKind.COMPRESSED: "compressed",
    MixerKind.RECURRENT: "recurrent, hybrid",
}
_TEXT, _NUMBER, _CHOICE = listing.Kind.TEXT, listing.Kind.NUMBER, listing.Kind.CHOICE
_LETTERS = ("A to Z", "Z to A")
_DATES = ("oldest first", "newest first")
_BOTH, _LEAST, _MOST = (Bound.MIN, Bound.MAX), (Bound.MIN,), (Bound.MAX,)


def model_columns(models: Collection[ModelFacts] = ()) -> Models:
    """The columns of the list, in the order of its table. The families to choose from are those of `models`."""
    families = tuple((name, name) for name in dict.fromkeys(facts.record.family for facts in models))
    kinds, attention = tuple(KIND_LABELS.items()), tuple((k.value, words) for k, words in ATTENTION_LABELS.items())
    return (
        _searched("id", "Id", lambda f: f.record.id),
        _searched("hub", "Repository", lambda f: f.record.hub_id),
        _searched("aliases", "Same shape", lambda f: " ".join(f.record.same_shape)),
        Column("name", "Name", _TEXT, lambda f: f.record.name, searched=True, orders=_LETTERS),
        Column(
            "family", "Family", _CHOICE, lambda f: f.record.family, choices=families, searched=True, orders=_LETTERS
        ),
        Column("released", "Released", _TEXT, released, orders=_DATES),
        _number("year", "Year", "", year, ends=(FIRST_YEAR, LAST_YEAR), bounds=_BOTH, sortable=False),
        Column("kind", "Kind", _CHOICE, kind, choices=kinds, orders=_LETTERS),
        _number("params", "Parameters", "10⁹", lambda f: f.counts.total / BILLION, bounds=_BOTH),
        _number("active", "Active", "10⁹", lambda f: f.counts.active / BILLION),
        Column("attention", "Attention", _CHOICE, lambda f: f.kind.value, choices=attention, orders=_LETTERS),
        _number("layers", "Layers", "", lambda f: f.architecture.n_layers),
        _number("context", "Context", "tokens", lambda f: f.architecture.max_position, bounds=_LEAST),
        _number("kv", "Cache a token", "KiB", lambda f: f.usual_cache.bytes_per_token / KIB, bounds=_MOST),
        _number("weights", "As shipped", "GB", lambda f: f.shipped.loaded_bytes / GB),
        Column("format", "Format", _TEXT, shipped_format, orders=_LETTERS),
    )


def kind(facts: ModelFacts) -> str:
    """Dense, or of experts."""
    return "experts" if facts.has_experts else "dense"


def released(facts: ModelFacts) -> str | None:
    """The day, month or year it came out, as far as it is known."""
    return facts.record.released.date if facts.record.released else None


def year(facts: ModelFacts) -> int | None:
    """The year of it."""
    date = released(facts)
    return int(date[:4]) if date else None


def shipped_format(facts: ModelFacts) -> str:
    """The format of the first checkpoint: its name, or the narrowest of a mixture."""
    plan = facts.record.native_plan
    return f"mixed, {plan.narrowest.element}" if plan.label == NATIVE else str(plan.label)


def _searched(name: str, label: str, value: Callable[[ModelFacts], str]) -> Column[ModelFacts]:
    return Column(name, label, _TEXT, value, searched=True, sortable=False)


def _number(
    name: str,
    label: str,
    unit: str,
    value: Callable[[ModelFacts], float | None],
    *,
    ends: tuple[float, float] = (0, 1e9),
    bounds: tuple[Bound, ...] = (),
    sortable: bool = True,
) -> Column[ModelFacts]:
    return Column(name, label, _NUMBER, value, unit, (), bounds, ends[0], ends[1], sortable=sortable)
