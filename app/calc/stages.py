"""The part of a model that one GPU of each pipeline stage holds."""

from collections import Counter
from dataclasses import replace
from functools import lru_cache

from app.calc.architecture import Architecture
from app.calc.split import Split, stage_sizes


@lru_cache(maxsize=512)
def stage_architectures(architecture: Architecture, split: Split) -> tuple[Architecture, ...]:
    """What one GPU of each stage holds, first stage to last; the GPUs of a stage are alike.

    The embedding, its side tables and a vision tower stand on the first stage, the head, the last norm and the layers
    that guess further tokens on the last. A tied table is held at both ends.

    Raises:
        SplitError: something does not divide.
    """
    part = architecture.split(split)
    if split.pipeline == 1:
        return (part,)
    order = part.order or _in_groups(part)
    found, start = [], 0
    for place, size in enumerate(stage_sizes(len(order), split.pipeline)):
        first, last = place == 0, place == split.pipeline - 1
        found.append(_cut(part, order[start : start + size], first=first, last=last))
        start += size
    return tuple(found)


def _in_groups(architecture: Architecture) -> tuple[int, ...]:
    """The order of a model that tells none: group after group."""
    return tuple(place for place, group in enumerate(architecture.layers) for _ in range(group.count))


def _cut(part: Architecture, order: tuple[int, ...], *, first: bool, last: bool) -> Architecture:
    counts = Counter(order)
    kept = [place for place in range(len(part.layers)) if counts[place]]
    return replace(
        part,
        layers=tuple(replace(part.layers[place], count=counts[place]) for place in kept),
        order=tuple(kept.index(place) for place in order),
        holds_embedding=first,
        holds_head=last,
        learned_positions=part.learned_positions if first else 0,
        vision_params=part.vision_params if first else 0,
        side_paths=part.side_paths if first else (),
        mtp=part.mtp if last else None,
    )
