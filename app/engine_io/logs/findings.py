"""What a start-up log says: figures, settings as they are printed, and fields of a scenario."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any, Self


class LogError(Exception):
    """The text is no log that is read here; the message is a sentence for the person who pasted it."""


class Unit(StrEnum):
    """What a figure counts."""

    BYTES = "bytes"
    TOKENS = "tokens"
    BLOCKS = "blocks"
    SEQUENCES = "sequences"
    REQUESTS = "requests"
    SHARE = "share"
    ORDINAL = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the log. `value` is in `unit`; `printed` is the number as it stands there, with its unit.

    `rank` says which worker or device printed it, such as "TP0" or "CUDA1"; None where the line does not say.
    """

    id: str
    label: str
    value: float
    unit: Unit
    rank: str | None
    printed: str


@dataclass(frozen=True, slots=True)
class Told:
    """One field of the scenario that the log fills."""

    path: str
    label: str
    value: str | float | bool


@dataclass(frozen=True, slots=True)
class Missing:
    """One field of the scenario that the log says nothing of."""

    path: str
    label: str


@dataclass(frozen=True, slots=True)
class LogReading:
    """All that one start-up log tells.

    `document` is a partial scenario (bytes as floats); `accelerator_candidates` are the catalog's cards with about the
    memory that the engine saw, where no line names the card. `notes` say what in the log contradicts itself, and which
    of several values was taken.
    """

    engine: str
    engine_name: str
    release: str | None
    figures: tuple[Figure, ...]
    document: dict[str, Any] = field(default_factory=dict)
    told: tuple[Told, ...] = ()
    missing: tuple[Missing, ...] = ()
    accelerator_candidates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


MOST_LISTS = 64
_LONGEST_LIST = 65_536
_MOST_TRIES = 16
_VALUE = re.compile(
    r"""['"]?[ ]?[:=][ ]?(?:'([^'\n]{0,300})'|"([^"\n]{0,300})"|<[A-Za-z_.]{1,60}: ['"]?([^'">\n]{1,60})['"]?>"""
    r"""|([^\s,'"(){}\[\]<>]{1,100}))"""
)
_INSIDE_A_WORD = re.compile(r"[A-Za-z0-9_\-]")
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_REAL = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,20})?")
_FLAGS = {"True": True, "true": True, "False": False, "false": False}


@dataclass(frozen=True, slots=True)
class Settings:
    """Lists of arguments, those that say what is in force before those that say what was asked for.

    What `text` answers is text of the log: it is compared and looked up, and never kept.
    """

    lists: tuple[str, ...]

    @classmethod
    def find(cls, text: str, heads: tuple[str, ...]) -> Self:
        """The lists that begin with one of `heads`, in the order of heads; of equal heads the last goes first."""
        found = [part for head in heads for part in reversed(list(islice(_lists(text, head), MOST_LISTS)))]
        return cls(tuple(found[:MOST_LISTS]))

    def text(self, *names: str) -> str | None:
        """The value of the first of `names` that a list has, as it is written there; "None" is a value."""
        for part in self.lists:
            for name in names:
                if (value := _value(part, name)) is not None:
                    return value
        return None

    def whole(self, *names: str) -> int | None:
        """The same as a whole number."""
        value = self.text(*names)
        return int(value) if value is not None and _WHOLE.fullmatch(value) else None

    def real(self, *names: str) -> float | None:
        value = self.text(*names)
        return float(value) if value is not None and _REAL.fullmatch(value) else None

    def flag(self, *names: str) -> bool | None:
        return _FLAGS.get(self.text(*names) or "")

    def inside(self, name: str) -> Self | None:
        """The arguments of the object that `name` is; None where there is none, or it is None."""
        for part in self.lists:
            for offset in _places(part, name):
                opened = re.compile(r"""['"]?[ ]?[:=][ ]?['"]?(?:[A-Za-z]{1,60}\(|\{)""").match(part, offset)
                if opened:
                    closed = re.compile(r"[)}]").search(part, opened.end())
                    return type(self)((part[opened.end() : closed.start() if closed else None],))
        return None


def _lists(text: str, head: str) -> Iterator[str]:
    offset = text.find(head)
    while offset >= 0:
        end = text.find("\n", offset)
        behind = offset + len(head)
        yield text[behind : min(len(text) if end < 0 else end, offset + _LONGEST_LIST)]
        offset = text.find(head, behind)


def _places(part: str, name: str) -> Iterator[int]:
    """Where something may follow `name`, which is no part of a longer name there."""
    offset = part.find(name)
    for _ in range(_MOST_TRIES):
        if offset < 0:
            return
        behind = offset + len(name)
        if offset == 0 or not _INSIDE_A_WORD.match(part[offset - 1]):
            yield behind
        offset = part.find(name, behind)


def _value(part: str, name: str) -> str | None:
    for behind in _places(part, name):
        if matched := _VALUE.match(part, behind):
            return next(group for group in matched.groups() if group is not None)
    return None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the scenario: what it is called, and its bounds where it is a number."""

    label: str
    least: float | None = None
    most: float | None = None
    whole: bool = True
    asked_for: bool = True


def _bytes(label: str, least: float = 0) -> Field:
    return Field(label, least, 1e15, whole=False)


# The bounds are those of app.scenario.scenario; a test holds the two together.
FIELDS: Mapping[str, Field] = {
    "model.id": Field("Model"),
    "model.mtp": Field("Multi-token prediction", asked_for=False),
    "hardware.id": Field("Accelerator"),
    "hardware.count": Field("Accelerators", 1, 10**6),
    "precision.weights": Field("Weight format"),
    "precision.kv_cache": Field("Element type of the cache"),
    "parallelism.tensor": Field("Tensor parallelism", 1, 1024),
    "parallelism.pipeline": Field("Pipeline stages", 1, 1024),
    "parallelism.expert": Field("Expert parallelism", 1, 4096, asked_for=False),
    "parallelism.data": Field("Data-parallel attention", 1, 4096, asked_for=False),
    "parallelism.decode_context": Field("Decode context parallelism", 1, 1024, asked_for=False),
    "engine.id": Field("Engine"),
    "engine.version": Field("Release"),
    "engine.memory_utilization": Field("Memory setting", 0.01, 1, whole=False),
    "engine.max_model_len": Field("Longest sequence", 1, 10**8),
    "engine.max_num_seqs": Field("Sequences at a time", 1, 10**6),
    "engine.max_batched_tokens": Field("Tokens of a prefill step", 1, 10**8),
    "engine.block_size": Field("Tokens of a block", 1, 65536),
    "engine.prefix_caching": Field("Prefix caching"),
    "engine.enforce_eager": Field("No CUDA graphs", asked_for=False),
    "engine.total_memory_bytes": _bytes("Memory of the card as the engine sees it", 1),
    "engine.weights_bytes": _bytes("Loaded weights"),
    "engine.activation_bytes": _bytes("Peak of the activations"),
    "engine.non_framework_bytes": _bytes("Memory that is neither weights nor activations"),
    "engine.graph_bytes": _bytes("CUDA graphs, as far as they are charged"),
    "engine.kv_pool_bytes": _bytes("Cache pool", 1),
    "techniques.speculative.draft_tokens": Field("Guessed tokens", 1, 64, asked_for=False),
    "techniques.speculative.draft.id": Field("Draft model", asked_for=False),
    "observed.kv_tokens": Field("Tokens of the cache", 0, 10**12),
    "observed.gpu_blocks": Field("Blocks of the cache", 0, 10**12),
    "observed.max_concurrency": Field("Longest requests at a time", 0, 1e9, whole=False),
}


@dataclass(slots=True)
class Findings:
    """What has been found so far."""

    values: dict[str, str | float | bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def tell(self, path: str, value: str | float | bool | None) -> None:
        """Fill a field, unless nothing is known or the number is none that a scenario can hold."""
        if value is None:
            return
        described = FIELDS[path]
        if described.least is None or described.most is None:
            self.values[path] = str(value) if isinstance(value, str) else value  # an enum's member as its word
            return
        number = float(value)
        if not described.least <= number <= described.most or (described.whole and number != int(number)):
            self.note(f"{described.label}: {number:,.6g} is left out, for a scenario cannot hold it.")
            return
        self.values[path] = int(number) if described.whole else number

    def note(self, sentence: str) -> None:
        if sentence not in self.notes:
            self.notes.append(sentence)

    def document(self) -> dict[str, Any]:
        """The fields as a nested document, in the order of the table."""
        document: dict[str, Any] = {}
        for path in FIELDS:
            if path in self.values:
                inner = document
                *parents, last = path.split(".")
                for key in parents:
                    inner = inner.setdefault(key, {})
                inner[last] = self.values[path]
        return document

    def told(self) -> tuple[Told, ...]:
        return tuple(Told(path, f.label, self.values[path]) for path, f in FIELDS.items() if path in self.values)

    def missing(self, does_not_apply: tuple[str, ...]) -> tuple[Missing, ...]:
        return tuple(
            Missing(path, f.label)
            for path, f in FIELDS.items()
            if f.asked_for and path not in self.values and path not in does_not_apply
        )
