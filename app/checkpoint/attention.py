"""Attention as configurations describe it: reach, grouped and latent heads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from app.calc.model.layers.grouped_attention import GroupedAttention, OutputGate, QkNorm
from app.calc.model.layers.latent_attention import LatentAttention, SparseLatentAttention
from app.calc.model.layers.parts import Mixer
from app.calc.model.layers.sparse_attention import Indexer
from app.checkpoint import limits, spellings
from app.checkpoint.frame import Choice, Frame, Switch, chosen
from app.checkpoint.keys import Keys

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


Mixers = Callable[[Keys, Frame], Sequence[Mixer | None]]
"""Reads what lets tokens see each other, one entry a layer."""

ATTENTION_BIAS = Switch(("attention_bias", "qkv_bias"))


@dataclass(frozen=True, slots=True)
class Heads:
    """Sizes of the heads."""

    n_heads: int
    n_kv_heads: int
    head_dim: int


def read_heads(keys: Keys, hidden_size: int, *, head_dim: int | None = None, kv_heads: int | None = None) -> Heads:
    """Heads as the keys give them: every head its own keys and values, and hidden ÷ heads wide, unless they say more.

    Raises:
        ConfigError: KV heads that do not divide the heads, or a head width that is missing and does not come out whole.
    """
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    if kv_heads is None:
        kv_heads = keys.maybe_whole("n_kv_heads", spellings.KV_HEADS, limits.HEADS)
    if kv_heads is None:
        kv_heads = heads
        keys.ledger.derive("n_kv_heads", kv_heads, "no key says that heads share keys and values")
    check_divides(keys, heads, kv_heads, spellings.KV_HEADS)
    return Heads(heads, kv_heads, read_head_dim(keys, hidden_size, heads, head_dim))


def check_divides(keys: Keys, heads: int, kv_heads: int, names: Sequence[str]) -> None:
    """Raise if the KV heads cannot be shared out evenly."""
    if heads % kv_heads:
        key = next((name for name in names if keys.has(name)), names[0])
        raise keys.refused(key, f"{kv_heads:,} KV heads do not divide {heads:,} heads.")


def read_head_dim(keys: Keys, hidden_size: int, heads: int, default: int | None = None) -> int:
    """The head width: its own key, else the class's default, else hidden ÷ heads."""
    known = keys.maybe_whole("head_dim", spellings.HEAD_DIM, limits.HEAD_WIDTH, default=default)
    if known is not None:
        return known
    if hidden_size % heads:
        raise keys.refused("head_dim", f"is missing, and {hidden_size:,} does not divide among {heads:,} heads.")
    keys.ledger.derive("head_dim", hidden_size // heads, "hidden size ÷ heads")
    return hidden_size // heads


@dataclass(frozen=True, slots=True)
class Norm:
    """Which norm queries and keys get where `choice` says so."""

    kind: QkNorm
    choice: Choice = True

    def read(self, keys: Keys) -> QkNorm:
        return self.kind if chosen(keys, self.choice) else QkNorm.NONE


NO_NORM = Norm(QkNorm.NONE)
PER_HEAD = Norm(QkNorm.PER_HEAD)
FULL_WIDTH = Norm(QkNorm.FULL_WIDTH)


def grouped(
    *,
    qkv_bias: Choice = False,
    output_bias: Choice = False,
    qk_norm: Norm = NO_NORM,
    gate: OutputGate = OutputGate.NONE,
    sinks: bool = False,
    windows: Rule = nowhere,
    chunked: bool = False,
    head_dim: int | None = None,
    kv_heads: int | None = None,
) -> Mixers:
    """A reader of grouped attention in every layer."""

    def read(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
        heads = read_heads(keys, frame.hidden_size, head_dim=head_dim, kv_heads=kv_heads)
        everywhere = GroupedAttention(
            heads.n_heads,
            heads.n_kv_heads,
            heads.head_dim,
            qkv_bias=chosen(keys, qkv_bias),
            output_bias=chosen(keys, output_bias),
            qk_norm=qk_norm.read(keys),
            output_gate=gate,
            sinks=sinks,
        )
        reaches = read_reaches(keys, frame, windows, chunked=chunked)
        return reaching(everywhere, reaches)

    return read


def reaching(attention: GroupedAttention, reaches: Sequence[Reach]) -> list[Mixer | None]:
    """The attention, confined in each layer to what that layer sees."""
    kinds = {reach: replace(attention, window=reach.window, chunk=reach.chunk) for reach in set(reaches)}
    return [kinds[reach] for reach in reaches]


def read_latent(keys: Keys, *, gated: bool = False, value_dim: int | None = None) -> LatentAttention:
    """MLA as the keys give it. A `head_dim` and KV heads beside it are noise, and are passed over."""
    keys.passed_over(*spellings.HEAD_DIM, *spellings.KV_HEADS, "qk_head_dim", "use_mla", "attention_bias", "qkv_bias")
    nope = keys.whole("nope_dim", ("qk_nope_head_dim",), limits.HEAD_WIDTH)
    rope = keys.whole("rope_dim", ("qk_rope_head_dim",), limits.HEAD_WIDTH)
    if keys.values.get("attention_bias") is True:
        raise keys.refused("attention_bias", "biases of latent attention are not computed.")
    if keys.has("qk_head_dim") and keys.values["qk_head_dim"] != nope + rope:
        raise keys.refused("qk_head_dim", f"contradicts the widths {nope:,} and {rope:,} of its parts.")
    if "q_lora_rank" not in keys.values and not keys.any_known("q_lora_rank"):
        keys.ledger.assume("q_rank", None, "no key says that queries go through a low rank")
    return LatentAttention(
        n_heads=keys.whole("n_heads", spellings.HEADS, limits.HEADS),
        kv_rank=keys.whole("kv_rank", ("kv_lora_rank",), limits.WIDTH),
        nope_dim=nope,
        rope_dim=rope,
        v_dim=keys.whole("v_dim", ("v_head_dim",), limits.HEAD_WIDTH, default=value_dim),
        q_rank=keys.maybe_whole("q_rank", ("q_lora_rank",), limits.WIDTH),
        gated=gated,
    )


def latent(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MLA in every layer."""
    return [read_latent(keys)] * frame.n_layers


def latent_from_hidden(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MLA whose value width is hidden ÷ heads where no key gives it (MiniCPM 3)."""
    heads = keys.whole("n_heads", spellings.HEADS, limits.HEADS)
    width = frame.hidden_size // heads
    return [read_latent(keys, value_dim=max(1, width))] * frame.n_layers


SPARSE_WORDS = ("deepseek_sparse_attention", "indexed_attention")


def sparse_latent(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
    """MLA over the positions that an index chooses; some layers use the index of a neighbour (GLM-5.2)."""
    inner = read_latent(keys)
    top = keys.whole("index_top", ("index_topk",), limits.POSITIONS)
    indexer = Indexer(
        keys.whole("index_heads", ("index_n_heads",), limits.HEADS),
        keys.whole("index_dim", ("index_head_dim",), limits.HEAD_WIDTH),
    )
    own = SparseLatentAttention(inner, top, indexer)
    borrowed = SparseLatentAttention(inner, top, None)
    types = keys.words("indexer_types", "indexer_types", ("full", "shared"), frame.n_layers)
    keys.passed_over(
        "index_topk_freq",
        "index_topk_pattern",
        "index_skip_topk_offset",
        "index_share_for_mtp_iteration",
        "indexer_rope_interleave",
    )
    keys.words("layer_types", "layer_types", SPARSE_WORDS, frame.n_layers)
    if types is None:
        if keys.has("index_topk_freq") and keys.values["index_topk_freq"] != 1:
            raise keys.refused("index_topk_freq", "needs indexer_types beside it, one entry a layer.")
        return [own] * frame.n_layers
    if types[0] != "full":
        raise keys.refused("indexer_types", "starts with a layer that has no index before it to share.")
    return [own if kind == "full" else borrowed for kind in types]


def latent_or_grouped(otherwise: Mixers) -> Mixers:
    """MLA, or grouped attention where a small model of the family switches it off (DeepSeek-VL2 Tiny)."""

    def read(keys: Keys, frame: Frame) -> Sequence[Mixer | None]:
        if keys.any_known("kv_lora_rank") and keys.flag("use_mla", ("use_mla",), default=True):
            return latent(keys, frame)
        keys.passed_over("use_mla", "kv_lora_rank", "q_lora_rank", "v_head_dim")
        keys.passed_over("qk_nope_head_dim", "qk_rope_head_dim")
        return otherwise(keys, frame)

    return read
