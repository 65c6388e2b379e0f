"""The same model with another way of keeping keys and values: as MHA, GQA, MQA or MLA.

Hidden size, query heads, windows, chunks, selections and everything outside attention stay; the projections of keys and
values change with what is cached. Layers without attention stay as they are. A model asked for as what it is comes back
unchanged. Vectors that have no place in the other kind (biases, sinks, norms of queries and keys) are left out of MLA.
Source: GQA arXiv 2305.13245; MQA arXiv 1911.02150; MLA arXiv 2405.04434, section 2.1 and its hyper-parameters.
Limits: nobody trained these models; their sizes and speed follow, what they would answer does not.

What the cache would be with plain multi-head attention: the yardstick that every saving is measured by.

Every layer that mixes tokens keeps a key and a value for each of its query heads, at their whole width, for every
position. A recurrent layer counts as the model's widest attention layer. Nothing is shared, compressed or windowed.
Limits: nobody trained that model; the figure says what its cache would take, not how well it would answer.

Cards that a scenario could name instead of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from app.calc.accelerator import Accelerator
from app.calc.broadcast import Quantity
from app.calc.deployment import Deployment
from app.calc.dtypes import Dtype
from app.calc.model.architecture import Architecture, LayerGroup
from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.model.layers.grouped_attention import GroupedAttention, OutputGate
from app.calc.model.layers.latent_attention import LatentAttention, SpannedLatentAttention, SparseLatentAttention
from app.calc.model.layers.mamba import ParallelMamba2
from app.calc.model.layers.parts import Mixer
from app.calc.model.layers.span import Chunk, Window
from app.calc.model.layers.sparse_attention import BlockSparseAttention, SelectedAttention

USUAL_KV_HEADS = 8
"""KV heads of a grouped model: as many as GPUs of a node, so that tensor parallelism copies none."""
LATENT_PER_HEAD_DIM = 4
"""Width of the latent, in widths of a head: 512 for heads of 128 (DeepSeek-V2 and V3)."""
HEAD_DIMS_PER_ROPE = 2
"""Its rotary part is half a head wide: 64 for heads of 128."""


class AttentionVariant(StrEnum):
    """What is kept of a position: all heads, some, one, or a latent for all."""

    MHA = "mha"
    GQA = "gqa"
    MQA = "mqa"
    MLA = "mla"


class VariantError(ValueError):
    """The model cannot be told with that attention; the message says why."""


def own_variant(architecture: Architecture) -> AttentionVariant:
    """What the model is: MLA where any layer has a latent, MHA or MQA where all layers are, else GQA.

    Raises:
        VariantError: no layer attends, or one keeps what is none of the four.
    """
    kinds = set(_kinds(architecture))
    if not kinds:
        raise VariantError(f"{architecture.name} has no attention: nothing of it grows with the heads.")
    if AttentionVariant.MLA in kinds:
        return AttentionVariant.MLA
    return kinds.pop() if len(kinds) == 1 else AttentionVariant.GQA


@lru_cache(maxsize=512)
def as_variant(architecture: Architecture, variant: AttentionVariant) -> Architecture:
    """The model with that attention in every layer that attends, layers of multi-token prediction included.

    GQA has 8 KV heads, or fewer where 8 do not divide the query heads. A latent is four heads wide and its rotary part
    half a head, queries in one matrix; from a latent to heads, keys are as wide as both parts of them were.

    Raises:
        VariantError: no layer attends; a layer keeps what is none of the four; heads that fall into no groups; a latent
            where layers share a cache, or attend beside a recurrence.

    Worked numbers: of 32 heads of 128 in 32 layers a token keeps 262,144 elements as MHA, 65,536 as GQA, 8,192 as MQA
    and 32 × (512 + 64) = 18,432 as MLA. DeepSeek-V3 as MHA keeps 61 × 128 × (192 + 128) = 2,498,560.
    """
    if own_variant(architecture) is variant:
        return architecture
    name, mtp = architecture.name, architecture.mtp
    layers = tuple(_group(group, variant, name) for group in architecture.layers)
    return replace(
        architecture,
        layers=layers,
        mtp=mtp and replace(mtp, layers=tuple(_group(group, variant, name) for group in mtp.layers)),
    )


def _kinds(architecture: Architecture) -> Iterator[AttentionVariant]:
    for group in architecture.layers:
        mixer = group.mixer
        if isinstance(mixer, (LatentAttention, SpannedLatentAttention, SparseLatentAttention)):
            yield AttentionVariant.MLA
        elif isinstance(mixer, GroupedAttention):
            yield AttentionVariant(mixer.kind.lower())
        elif isinstance(mixer, (BlockSparseAttention, ParallelMamba2, SelectedAttention)):
            yield AttentionVariant(mixer.attention.kind.lower())
        elif isinstance(mixer, CompressedAttention):
            raise VariantError(
                f"{architecture.name} keeps compressed rows that serve as key and value of all heads at once: "
                "its attention is none of MHA, GQA, MQA and MLA."
            )


def _group(group: LayerGroup, variant: AttentionVariant, name: str) -> LayerGroup:
    return replace(group, mixer=_mixer(group.mixer, variant, name))


def _mixer(mixer: Mixer | None, variant: AttentionVariant, name: str) -> Mixer | None:
    """The layer's mixer as that variant; a recurrence, or nothing, as it is."""
    to_latent = variant is AttentionVariant.MLA
    if isinstance(mixer, GroupedAttention):
        return _spanned(mixer, name) if to_latent else _grouped(mixer, variant, name)
    if isinstance(mixer, LatentAttention):
        return mixer if to_latent else _grouped(_of_heads(mixer), variant, name)
    if isinstance(mixer, SparseLatentAttention):
        if to_latent:
            return mixer
        return SelectedAttention(_grouped(_of_heads(mixer.latent), variant, name), mixer.top, mixer.indexer)
    if isinstance(mixer, BlockSparseAttention):
        if to_latent:
            return SparseLatentAttention(_latent(mixer.attention, name), mixer.top_blocks * mixer.block, mixer.indexer)
        return replace(mixer, attention=_grouped(mixer.attention, variant, name))
    if isinstance(mixer, ParallelMamba2):
        if to_latent:
            raise VariantError(f"{name} attends beside a recurrence in the same layer, which no latent is known for.")
        return replace(mixer, attention=_grouped(mixer.attention, variant, name))
    return mixer


def _grouped(attention: GroupedAttention, variant: AttentionVariant, name: str) -> GroupedAttention:
    heads = attention.n_heads
    if variant is AttentionVariant.MHA:
        return replace(attention, n_kv_heads=heads)
    if variant is AttentionVariant.MQA:
        return replace(attention, n_kv_heads=1)
    if 1 < attention.n_kv_heads < heads:
        return attention
    fitting = [n for n in range(2, min(USUAL_KV_HEADS, heads - 1) + 1) if heads % n == 0]
    if not fitting:
        raise VariantError(f"{heads:,} heads of {name} fall into no groups of equal size: MQA is its only grouping.")
    return replace(attention, n_kv_heads=max(fitting))


def _of_heads(latent: LatentAttention) -> GroupedAttention:
    """A key and a value for each head, as wide as they are once the latent is expanded."""
    return GroupedAttention(
        latent.n_heads,
        latent.n_heads,
        latent.nope_dim + latent.rope_dim,
        latent.v_dim,
        output_gate=OutputGate.PER_ELEMENT if latent.gated else OutputGate.NONE,
        query_rank=latent.q_rank,
    )


def _latent(attention: GroupedAttention, name: str) -> LatentAttention:
    if attention.shares_cache:
        raise VariantError(f"Layers of {name} share the cache of others, which no latent is known to do.")
    return LatentAttention(
        attention.n_heads,
        LATENT_PER_HEAD_DIM * attention.head_dim,
        attention.head_dim,
        max(1, attention.head_dim // HEAD_DIMS_PER_ROPE),
        attention.output_width // attention.n_heads,
        gated=attention.output_gate is OutputGate.PER_ELEMENT,
    )


def _spanned(attention: GroupedAttention, name: str) -> LatentAttention | SpannedLatentAttention:
    """The latent, over the same window or chunk."""
    latent, span = _latent(attention, name), attention.span
    return SpannedLatentAttention(latent, span) if isinstance(span, (Window, Chunk)) else latent


@lru_cache(maxsize=512)
def multi_head_elements_per_token(architecture: Architecture) -> int | None:
    """Elements that one token adds over all layers; None for a model without any attention to measure by.

    Worked numbers: Llama-3.1-8B has 32 × 32 × (128 + 128) = 262,144, four times its grouped cache. DeepSeek-V3 has
    61 × 128 × (192 + 128) = 2,498,560, against 61 × 576 = 35,136 latent ones.
    """
    widths = [(group.count, _key_and_value(group.mixer)) for group in architecture.layers if group.mixer]
    widest = max((width for _, width in widths if width is not None), default=None)
    if widest is None:
        return None
    return sum(count * (widest if width is None else width) for count, width in widths)


def multi_head_bytes_per_sequence(
    architecture: Architecture, context_tokens: Quantity, kv_cache: Dtype
) -> Quantity | None:
    """Bytes of one sequence with that cache: elements a token · b · tokens."""
    elements = multi_head_elements_per_token(architecture)
    return None if elements is None else elements * kv_cache.bytes * context_tokens


def _key_and_value(mixer: Mixer | None) -> int | None:
    """Keys and values of all query heads of one layer and token; None for a recurrence."""
    if isinstance(mixer, (BlockSparseAttention, ParallelMamba2, SelectedAttention)):
        mixer = mixer.attention
    if isinstance(mixer, (SparseLatentAttention, SpannedLatentAttention)):
        mixer = mixer.latent
    if isinstance(mixer, GroupedAttention):
        return mixer.query_width + mixer.output_width
    if isinstance(mixer, LatentAttention):
        return mixer.n_heads * (mixer.nope_dim + mixer.rope_dim + mixer.v_dim)
    if isinstance(mixer, CompressedAttention):
        return 2 * mixer.n_heads * mixer.head_dim
    return None


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another card, and the sequences that the engine sizes itself for on it where nothing is set."""

    accelerator: Accelerator
    profiled_seqs: int

    def carrying(self, deployment: Deployment) -> Deployment:
        """The deployment on this card; what was measured on the old one must be forgotten before."""
        engine = replace(deployment.engine, profiled_seqs=self.profiled_seqs)
        return replace(deployment, accelerator=self.accelerator, engine=engine)
