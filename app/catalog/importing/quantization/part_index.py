"""The names of a layer's parts, laid out so that a name or a pattern finds its parts without asking each of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True, eq=False)
class PartIndex:
    """Parts go by their places in the layer.

    `boxes` finds them by a name or a box around it, the whole layer being the box without a name; `paths` by any steps
    of a name that follow each other. `names` are all names, and `owners` the parts that go by each.
    """

    everything: tuple[int, ...]
    boxes: Mapping[str, tuple[int, ...]]
    paths: Mapping[str, tuple[int, ...]]
    names: tuple[str, ...]
    owners: tuple[tuple[int, ...], ...]


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
        tuple(whole),
        tuple(tuple(parts) for parts in whole.values()),
    )
