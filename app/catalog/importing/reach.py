"""Which layers see everything, which a window and which a chunk: `layer_types`, or the rule of the model's class."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.catalog.importing import limits, spellings
from app.catalog.importing.frame import Frame
from app.catalog.importing.keys import Keys

FULL_LAYER, WINDOW_LAYER, CHUNK_LAYER = "full_attention", "sliding_attention", "chunked_attention"
ATTENTION_TYPES = (FULL_LAYER, WINDOW_LAYER, CHUNK_LAYER)
CHUNK = ("attention_chunk_size",)


@dataclass(frozen=True, slots=True)
class Reach:
    """What a layer sees; neither a window nor a chunk is everything."""

    window: int | None = None
    chunk: int | None = None


EVERYTHING = Reach()
Rule = Callable[[Keys, Frame], Sequence[bool]]
"""For each layer whether it is confined to a window or chunk, where no list of layer types says so."""


def nowhere(keys: Keys, frame: Frame) -> Sequence[bool]:
    """The class knows no window, whatever the file says of one."""
    keys.passed_over(*spellings.WINDOW, "use_sliding_window", "max_window_layers")
    return [False] * frame.n_layers


def everywhere(keys: Keys, frame: Frame) -> Sequence[bool]:
    """Every layer, where there is a window at all."""
    keys.passed_over("use_sliding_window", "max_window_layers")
    return [keys.any_known(*spellings.WINDOW)] * frame.n_layers


def upper_layers(keys: Keys, frame: Frame) -> Sequence[bool]:
    """From `max_window_layers` on, where windows are switched on (the Qwen classes)."""
    keys.passed_over(*spellings.WINDOW, "max_window_layers")
    if not keys.flag("use_sliding_window", ("use_sliding_window",), default=False) or keys.is_null(spellings.WINDOW):
        return [False] * frame.n_layers
    first = keys.whole("max_window_layers", ("max_window_layers",), limits.COUNT, default=28, least=0)
    return [i >= first for i in range(frame.n_layers)]


def all_but_every(period: int, *names: str, first_full: bool = False) -> Rule:
    """All layers but every `period`-th, counted from the first or (usually) so that the last of each round is full."""

    def rule(keys: Keys, frame: Frame) -> Sequence[bool]:
        n = keys.whole("window_period", names, limits.COUNT, default=period) if names else period
        offset = 0 if first_full else n - 1
        return [i % n != offset for i in range(frame.n_layers)]

    return rule


def by_letters(keys: Keys, frame: Frame) -> Sequence[bool]:
    """`sliding_window_pattern` in letters, L for a window and G for everything, or as a number (EXAONE 4).

    Written in letters the last layer sees everything in any case.
    """
    key = "sliding_window_pattern"
    if not isinstance(keys.values.get(key), str):
        confined = all_but_every(4, key)(keys, frame) if keys.has(key) else [False] * frame.n_layers
        return confined if keys.any_of(spellings.WINDOW) else [False] * frame.n_layers
    letters = keys.word("window_pattern", (key,)) or "G"
    if set(letters) - set("LG"):
        raise keys.refused(key, "may have the letters L and G only.")
    return [letters[i % len(letters)] == "L" and i < frame.n_layers - 1 for i in range(frame.n_layers)]


def even_layers(keys: Keys, frame: Frame) -> Sequence[bool]:
    """Every other layer, the first among them (Gemma 2, gpt-oss)."""
    return [i % 2 == 0 for i in range(frame.n_layers)]


def read_reaches(keys: Keys, frame: Frame, rule: Rule, *, chunked: bool = False) -> list[Reach]:
    """What each layer sees.

    Raises:
        ConfigError: a window is needed and missing, or a type of layer that these classes do not have.
    """
    types = keys.words("layer_types", "layer_types", ATTENTION_TYPES, frame.n_layers)
    if types is None:
        kind = CHUNK_LAYER if chunked else WINDOW_LAYER
        no_chunks = chunked and keys.is_null(CHUNK)
        types = tuple(kind if confined and not no_chunks else FULL_LAYER for confined in rule(keys, frame))
        if len(set(types)) > 1:
            confined = types.count(kind)
            keys.ledger.derive("layer_types", f"{confined} × {kind}, {len(types) - confined} × {FULL_LAYER}", "by rule")
    keys.passed_over(*spellings.WINDOW, "use_sliding_window", "max_window_layers", "attention_chunk_size")
    reaches = {FULL_LAYER: EVERYTHING}
    if WINDOW_LAYER in types:
        reaches[WINDOW_LAYER] = _window(keys, frame)
    if CHUNK_LAYER in types:
        if keys.is_null(CHUNK):
            raise keys.refused(CHUNK[0], "is null, but layer_types names layers that see a chunk.")
        chunk = keys.whole("chunk", CHUNK, limits.POSITIONS, default=8192)
        reaches[CHUNK_LAYER] = Reach(chunk=chunk)
    return [reaches[kind] for kind in types]


def _window(keys: Keys, frame: Frame) -> Reach:
    if keys.is_null(spellings.WINDOW):
        key = next(name for name in spellings.WINDOW if name in keys.values)
        raise keys.refused(key, "is null, but layers of this family see a window, which their class cannot do without.")
    window = keys.whole("window", spellings.WINDOW, limits.POSITIONS)
    if frame.max_position is not None and window > frame.max_position:
        keys.ledger.notice(
            f"The window of {window:,} is longer than the context of {frame.max_position:,}: "
            "the layers are counted as full attention."
        )
        return EVERYTHING
    return Reach(window=window)
