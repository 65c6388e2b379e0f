"""What guesses beside a model: an EAGLE-3 head, or the layers that a model brings for it."""

from dataclasses import replace
from functools import lru_cache

from app.calc.architecture import Architecture, LayerGroup, SidePath
from app.calc.deployment import Deployment
from app.calc.dtypes import WeightFormat
from app.calc.engines.parts import Draft
from app.calc.layers.dense import DenseFeedForward
from app.calc.layers.grouped_attention import GroupedAttention
from app.calc.techniques.speculation import Method
from app.calc.weight_plan import WeightPlan, convention

EAGLE_VOCABULARY = 32_000
"""Rows of the head that published EAGLE-3 heads keep: the most frequent tokens."""
FEATURES = 3
"""Hidden states (of a low, a middle and a high layer) that an EAGLE-3 head joins."""
HEAD_WIDTH = 128
USUAL_GROUP = 4
USUAL_EXPANSION = 3.5


@lru_cache(maxsize=256)
def eagle_head(architecture: Architecture) -> Draft:
    """A head of one dense layer as wide as the model, with a small vocabulary of its own; the embedding is the model's.

    Its attention reads the token's embedding beside the joined features, twice the hidden size. Where the model has
    grouped attention or a dense block the layer takes their sizes, else heads of 128 in groups of four or more, and
    3.5 × the hidden size. In 16 bits.

    Worked number: for Llama-3.1-8B 0.42e9 parameters: attention 67.1e6, block 176.2e6, features 50.3e6, head 131.1e6.
    Source: Li et al., "EAGLE-3", arXiv 2503.01840; agrees with the 0.85 GB of the published head.
    """
    hidden = architecture.hidden_size
    attention, width = _attention(architecture), _width(architecture)
    doubled = hidden * (attention.query_width + attention.key_width + attention.value_width)
    features = SidePath("features and embedding joined", FEATURES * hidden * hidden + doubled)
    head = Architecture(
        name=f"EAGLE-3 head of {architecture.name}",
        hidden_size=hidden,
        vocab_size=min(EAGLE_VOCABULARY, architecture.vocab_size),
        layers=(LayerGroup(1, attention, (DenseFeedForward(width),)),),
        side_paths=(features,),
        holds_embedding=False,
    )
    return Draft(head, convention(WeightFormat.BF16, head))


def remodelled(deployment: Deployment, architecture: Architecture) -> Deployment:
    """The deployment with another model in it; an EAGLE-3 head is then the one of that model."""
    speculation = deployment.speculation
    changed = replace(deployment, architecture=architecture)
    if speculation is None or speculation.method is not Method.EAGLE:
        return changed
    head = eagle_head(architecture)
    return replace(changed, draft=head, speculation=replace(speculation, drafter=head))


def mtp_drafter(architecture: Architecture, plan: WeightPlan) -> Draft | None:
    """The loaded multi-token-prediction layers as a drafter, with the model's head; None where none are loaded.

    One module of them guesses again and again, as engines run it for more tokens than it was trained for.
    """
    mtp = architecture.mtp
    return None if mtp is None else Draft(_mtp(architecture), plan)


@lru_cache(maxsize=256)
def _mtp(architecture: Architecture) -> Architecture:
    mtp = architecture.mtp
    assert mtp is not None  # noqa: S101  # `mtp_drafter` has looked
    joint = (SidePath("embedding and hidden state joined", mtp.joint_params),) if mtp.joint_params else ()
    return Architecture(
        name=f"MTP layers of {architecture.name}",
        hidden_size=architecture.hidden_size,
        vocab_size=architecture.vocab_size,
        layers=mtp.layers,
        tied_embeddings=architecture.tied_embeddings,
        side_paths=joint,
        norm_bias=architecture.norm_bias,
        head_bias=architecture.head_bias,
    )


def _attention(architecture: Architecture) -> GroupedAttention:
    for group in architecture.layers:
        if isinstance(group.mixer, GroupedAttention):
            mixer = group.mixer
            return GroupedAttention(mixer.n_heads, mixer.n_kv_heads, mixer.head_dim)
    heads = max(1, architecture.hidden_size // HEAD_WIDTH)
    return GroupedAttention(heads, _shared_heads(heads), HEAD_WIDTH)


def _shared_heads(heads: int) -> int:
    """The largest power of two that divides the heads in groups of four or more, as it divides among GPUs too."""
    power = 1
    while heads % (2 * power) == 0 and 2 * power * USUAL_GROUP <= heads:
        power *= 2
    return power


def _width(architecture: Architecture) -> int:
    dense = [
        b.intermediate_size for g in architecture.layers for b in g.feed_forwards if isinstance(b, DenseFeedForward)
    ]
    return max(dense, default=int(USUAL_EXPANSION * architecture.hidden_size))
