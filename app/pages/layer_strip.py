"""The layers of a model as a strip of cells, one a layer from the input up, and as text for who does not see it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.calc.architecture import Architecture, LayerGroup
from app.calc.mixer_kinds import Blocks, Keeps, MixerKind, blocks, keeps, mixer_kind

MIXER_WORDS: Mapping[MixerKind, str] = {
    MixerKind.NONE: "no attention",
    MixerKind.FULL: "attention over everything",
    MixerKind.WINDOW: "attention in a window",
    MixerKind.CHUNK: "attention in a chunk",
    MixerKind.LATENT: "latent attention",
    MixerKind.SPARSE: "attention to a selection",
    MixerKind.COMPRESSED: "attention to compressed rows",
    MixerKind.RECURRENT: "recurrence",
}
KEEPS_WORDS: Mapping[Keeps, str] = {
    Keeps.EVERYTHING: "a row for every position",
    Keeps.PART: "rows for a part of the positions",
    Keeps.STATE: "a state of one size",
    Keeps.NOTHING: "nothing",
}
BLOCK_WORDS: Mapping[Blocks, str] = {
    Blocks.EXPERTS: "experts",
    Blocks.DENSE: "dense feed-forward",
    Blocks.NONE: "no feed-forward",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One layer: the letter of its group, its classes in the drawing, and its words."""

    letter: str
    classes: str
    title: str


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign of the drawing, for its legend."""

    classes: str
    words: str


@dataclass(frozen=True, slots=True)
class Strip:
    """The drawing and its words. `known_order` is False where layers are only grouped."""

    cells: Sequence[Cell]
    mixers: Sequence[Sign]
    heights: Sequence[Sign]
    marks: Sequence[Sign]
    text: str
    known_order: bool


def letter(number: int) -> str:
    """The letter of the group of that number."""
    return chr(ord("a") + number) if number < 26 else f"a{number}"


def layer_strip(architecture: Architecture, spelling: str | None) -> Strip:
    """The strip of a model. `spelling` is its order as a catalog row has it: "aab*10 b"."""
    groups = architecture.layers
    known = bool(architecture.order)
    order = architecture.order or [number for number, group in enumerate(groups) for _ in range(group.count)]
    cells = [
        Cell(letter(number), _classes(groups[number]), f"Layer {at}, {letter(number)}: {groups[number].label}")
        if known
        else Cell(letter(number), _classes(groups[number]), f"{letter(number)}: {groups[number].label}")
        for at, number in enumerate(order, start=1)
    ]
    kinds = [kind for kind in MIXER_WORDS if any(mixer_kind(group.mixer) is kind for group in groups)]
    kept = [what for what in KEEPS_WORDS if any(keeps(group.mixer) is what for group in groups)]
    marks = [what for what in BLOCK_WORDS if any(blocks(group) is what for group in groups)]
    return Strip(
        cells=cells,
        mixers=[Sign(f"mix-{kind}", MIXER_WORDS[kind]) for kind in kinds],
        heights=[Sign(f"keeps-{what}", KEEPS_WORDS[what]) for what in kept],
        marks=[Sign(f"ff-{what}", BLOCK_WORDS[what]) for what in marks],
        text=_text(architecture, spelling),
        known_order=known,
    )


def _classes(group: LayerGroup) -> str:
    return f"mix-{mixer_kind(group.mixer)} keeps-{keeps(group.mixer)} ff-{blocks(group)}"


def _text(architecture: Architecture, spelling: str | None) -> str:
    """The order in words and letters; every letter is a row of the table of layers."""
    groups = architecture.layers
    if len(groups) == 1:
        return f"All {architecture.n_layers} layers are alike: {groups[0].label}."
    order = "in an order that is not known"
    if architecture.order and spelling:
        order = f"from the input up {', '.join(map(_run, spelling.split()))}"
    meant = "; ".join(f"{letter(n)} is {group.label} ({group.count:,})" for n, group in enumerate(groups))
    return f"{architecture.n_layers} layers, {order}: {meant}."


def _run(part: str) -> str:
    """One part of the spelling: "aab*10" is "aab × 10"."""
    return part.replace("*", " × ")
