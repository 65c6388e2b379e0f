"""The names of a layer's parts, laid out so that a name or a pattern finds its parts without asking each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """What follows the first step of names: each by the letters it shares with the one before and the rest.

    `owners` are the parts that go by each. Many boxes of a layer hold the same, and are then one.
    """

    spelled: tuple[tuple[int, str], ...]
    owners: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PartIndex:
    """Parts go by their places in the layer.

    `boxes` finds them by a name or a box around it, the whole layer being the box without a name; `paths` by any steps
    of a name that follow each other. `spelled` are the first steps of all names with what follows them.
    """

    everything: tuple[int, ...]
    boxes: Mapping[str, tuple[int, ...]]
    paths: Mapping[str, tuple[int, ...]]
    spelled: tuple[tuple[str, Box], ...]


@lru_cache(maxsize=256)
def index_of(names: tuple[tuple[str, ...], ...]) -> PartIndex:
    """The index of parts with these names."""
    boxes: dict[str, dict[int, None]] = {}
    paths: dict[str, dict[int, None]] = {}
    whole: dict[str, dict[int, None]] = {}
    for part, own in enumerate(names):
        for name in own:
            whole.setdefault(name, {})[part] = None
            steps = name.split(".")
            for start in range(len(steps)):
                for end in range(start + 1, len(steps) + 1):
                    path = ".".join(steps[start:end])
                    paths.setdefault(path, {})[part] = None
                    if not start:
                        boxes.setdefault(path, {})[part] = None
    everything = tuple(range(len(names)))
    return PartIndex(
        everything,
        {path: tuple(parts) for path, parts in boxes.items()} | {"": everything},
        {path: tuple(parts) for path, parts in paths.items()},
        _boxed({name: tuple(parts) for name, parts in whole.items()}),
    )


def _boxed(owners: Mapping[str, tuple[int, ...]]) -> tuple[tuple[str, Box], ...]:
    inside: dict[str, dict[str, tuple[int, ...]]] = {}
    for name in sorted(owners):
        first, dot, rest = name.rpartition(".") if "." not in name else name.partition(".")
        inside.setdefault(first + dot, {})[rest] = owners[name]
    made: dict[tuple[tuple[str, tuple[int, ...]], ...], Box] = {}
    for own in inside.values():
        shared = [0, *(_shared(*pair) for pair in pairwise(own))]
        spelled = tuple((length, rest[length:]) for length, rest in zip(shared, own, strict=True))
        made.setdefault(tuple(own.items()), Box(spelled, tuple(own.values())))
    return tuple((first, made[tuple(own.items())]) for first, own in inside.items())


def _shared(one: str, other: str) -> int:
    """How many letters the two begin with alike."""
    differing = (place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(differing, min(len(one), len(other)))
