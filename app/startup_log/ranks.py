"""Which worker printed a message: the tags that engines put before it, read without the process and the host."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

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
