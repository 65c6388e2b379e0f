"""What a line of a log is recognised by: patterns, the tags of ranks, and numbers as they are printed."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from app.engine_io.logs.findings import Unit

NUMBER = r"-?[0-9][0-9.,]{0,24}"
MEMORY = NUMBER + r"[ ]?(?:[KMGT]i?B|bytes|B)\b"

_PLAIN = re.compile(r"-?[0-9]{1,20}(?:\.[0-9]{1,20})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]{1,20},[0-9]{1,2}")
_THOUSANDS_PARTS = 9
_MEMORY = re.compile(f"({NUMBER})[ ]?([A-Za-z]{{1,5}})")

# Every engine divides by powers of 1,024, whatever letter it prints behind the result.
_POWERS = {"B": 0, "bytes": 0, "K": 1, "M": 2, "G": 3, "T": 4}


def read_number(text: str) -> tuple[float, str] | None:
    """The number and the text that it was read from, without the comma or stop of the sentence behind it.

    Worked numbers: "188,512" is 188512, "1039,50" (a decimal comma) is 1039.5; "1,2,3" is none.
    """
    trimmed = text.rstrip(".,")
    if _PLAIN.fullmatch(trimmed):
        return float(trimmed), trimmed
    if _DECIMAL_COMMA.fullmatch(trimmed):
        return float(trimmed.replace(",", ".")), trimmed
    whole, stop, decimals = trimmed.partition(".")
    first, *groups = whole.lstrip("-").split(",")
    grouped = groups and len(groups) < _THOUSANDS_PARTS and 1 <= len(first) <= 3 and all(len(g) == 3 for g in groups)
    if not grouped or (stop and not decimals.isdigit()):
        return None
    return float(trimmed.replace(",", "")), trimmed


def read_memory(text: str, unit_left_out: str = "GiB") -> tuple[float, str] | None:
    """Bytes of a number with or without its unit, and the text with it.

    Worked number: "8.23 GB" is 8.23 × 2^30 bytes, for engines that print GB mean GiB.
    """
    matched = _MEMORY.fullmatch(text)
    number, unit = (matched[1], matched[2]) if matched else (text, unit_left_out)
    read = read_number(number)
    power = _POWERS.get(unit, _POWERS.get(unit[0]))
    if read is None or power is None:
        return None
    return read[0] * 1024.0**power, f"{read[1]} {unit}"


_TAG = re.compile(
    # vLLM: (VllmWorker TP0 pid=1), (Worker_DP0_TP1_EP1 pid=1), (EngineCore_DP0 pid=1), (RayWorkerWrapper pid=1, ip=…)
    r"\((?P<process>VllmWorker|RayWorker|Worker|EngineCore|DPEngineCore)(?P<named>[A-Za-z0-9_= ]{0,48})"
    r"pid=(?P<pid>[0-9]{1,10})(?:, ip=(?P<host>[0-9A-Fa-f.:]{2,45}))?\)"
    # SGLang: [2025-09-11 10:24:23 DP0 TP0 EP0], and [gpu=0] before that
    r"|\[[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:,.]{8,12} (?P<stamped>[A-Z0-9_ ]{2,48})\]"
    r"|\[gpu(?:_id)?=(?P<gpu>[0-9]{1,4})\]"
    # TensorRT-LLM, and what mpirun puts before a line
    r"|\[RANK (?P<rank>[0-9]{1,5})\]|\[[0-9],(?P<mpi>[0-9]{1,5})\]<std"
)
_PART = re.compile(r"(DP|PP|TP|EP)_?([0-9]{1,4})")
_NUMBERED = re.compile(r"rank=([0-9]{1,4})")
_ENGINE_NUMBER = re.compile(r"_([0-9]{1,4}) ?$")


@dataclass(frozen=True, slots=True)
class Ranks:
    """Where each tag of a text ends, and whose it is."""

    ends: tuple[int, ...]
    names: tuple[str | None, ...]

    def at(self, line_start: int, offset: int) -> str | None:
        """Whose message stands at `offset`: the last tag before it on its line; None where there is none."""
        found = bisect_left(self.ends, offset + 1) - 1
        if found < 0 or self.ends[found] <= line_start:
            return None
        return self.names[found]

    def largest(self, part: str) -> int | None:
        """The largest number behind "EP" (or another part) in any tag."""
        numbers = [int(m[2]) for name in set(self.names) if name for m in _PART.finditer(name) if m[1] == part]
        return max(numbers, default=None)


def find_ranks(text: str) -> Ranks:
    """Every tag of `text`. Workers that say no rank are numbered in the order in which they first speak."""
    tags = list(_tags(text))
    engines = {name for _, name, is_engine in tags if is_engine}
    # One engine process alone is no rank of anything.
    named = [None if is_engine and len(engines) < 2 else name for _, name, is_engine in tags]
    return Ranks(tuple(end for end, _, _ in tags), tuple(named))


def _tags(text: str) -> Iterator[tuple[int, str | None, bool]]:
    nameless: dict[tuple[str, str | None], int] = {}
    for tag in _TAG.finditer(text):
        if tag["process"] is None:
            yield tag.end(), _plain_name(tag), False
            continue
        name = _parts(tag["named"])
        is_engine = tag["process"].endswith("EngineCore")
        if is_engine and name is None and (number := _ENGINE_NUMBER.search(tag["named"])):
            name = f"DP{int(number[1])}"
        if not is_engine and name is None:
            if number := _NUMBERED.search(tag["named"]):
                name = f"rank {int(number[1])}"
            else:
                name = f"worker {nameless.setdefault((tag['pid'], tag['host']), len(nameless) + 1)}"
        yield tag.end(), name, is_engine


def _plain_name(tag: re.Match[str]) -> str | None:
    if tag["stamped"]:
        return _parts(tag["stamped"])
    if tag["gpu"]:
        return f"GPU {int(tag['gpu'])}"
    return f"rank {int(tag['rank'] or tag['mpi'])}"


def _parts(text: str) -> str | None:
    return " ".join(f"{part}{int(number)}" for part, number in _PART.findall(text)) or None


MOST_TRIES = 8192
DEVICE = "@device"
_LARGEST = 1e15
_SHORTHANDS = {
    "<mem>": f"({MEMORY})",
    "<num>": f"({NUMBER})",
    "<gib>": f"({NUMBER})",
    "<mib>": f"({NUMBER})",
    "<sp>": "[ \t]{0,40}",
}

# llama.cpp's names of what holds a buffer. RPC devices carry an address in theirs, which is left behind.
_DEVICES = ("CUDA", "ROCm", "Vulkan", "SYCL", "MUSA", "CANN", "Metal", "MTL", "OpenCL", "HIP")
_DEVICE_NAME = re.compile(rf"({'|'.join(_DEVICES)})([0-9]{{0,3}})(?:_Mapped|_Private|_Split)?")


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a figure is called and what it counts."""

    label: str
    unit: Unit


@dataclass(frozen=True, slots=True)
class LinePattern:
    """`ids` names the figure of each group of `behind`, which is matched right after `literal`.

    `unit` is that of memory printed without one.
    """

    literal: str
    behind: re.Pattern[str]
    ids: tuple[str, ...]
    unit: str = "GiB"


@dataclass(frozen=True, slots=True)
class Hit:
    """One figure where it stands in the text."""

    offset: int
    id: str
    value: float
    printed: str
    rank: str | None


def line(literal: str, behind: str, *ids: str) -> LinePattern:
    """A pattern; in `behind`, <mem> is memory with its unit, <num>, <gib> and <mib> a number alone, <sp> blanks."""
    unit = "MiB" if "<mib>" in behind else "GiB"
    for shorthand, expression in _SHORTHANDS.items():
        behind = behind.replace(shorthand, expression)
    return LinePattern(literal, re.compile(behind), ids, unit)


def find_hits(
    text: str, patterns: Iterable[LinePattern], quantities: Mapping[str, Quantity], ranks: Ranks
) -> tuple[Hit, ...]:
    """Every figure of `text` that is a number in bounds, in order."""
    starts = [0, *(m.end() for m in re.finditer("\n", text))]
    hits: list[Hit] = []
    for pattern in patterns:
        offset, tries = text.find(pattern.literal), 0
        while offset >= 0 and tries < MOST_TRIES:
            behind = offset + len(pattern.literal)
            tries += 1
            if matched := pattern.behind.match(text, behind):
                start = starts[bisect_right(starts, offset) - 1]
                hits += _figures(matched, pattern, quantities, offset, ranks.at(start, offset))
            offset = text.find(pattern.literal, behind)
    return tuple(sorted(hits, key=lambda hit: hit.offset))


def _figures(
    matched: re.Match[str], pattern: LinePattern, quantities: Mapping[str, Quantity], offset: int, rank: str | None
) -> Iterable[Hit]:
    groups = dict(zip(pattern.ids, matched.groups(), strict=True))
    if DEVICE in groups:
        rank = device_name(groups.pop(DEVICE) or "")
        if rank is None:
            return
    for id_, text in groups.items():
        if text is None:
            continue
        unit = quantities[id_].unit
        read = read_memory(text, pattern.unit) if unit is Unit.BYTES else read_number(text)
        if read is not None and abs(read[0]) <= _LARGEST:
            printed = read[1] if unit is Unit.BYTES else f"{read[1]} {_word(unit)}".rstrip()
            yield Hit(offset, id_, read[0], printed, rank)


def _word(unit: Unit) -> str:
    return "" if unit is Unit.SHARE else unit.value


def device_name(name: str) -> str | None:
    """The device as it is shown, such as "CUDA0"; None where the buffer lies in the host's memory."""
    matched = _DEVICE_NAME.fullmatch(name)
    if matched:
        return matched[1] + matched[2]
    return "RPC" if name.startswith("RPC") else None  # without the address in it
