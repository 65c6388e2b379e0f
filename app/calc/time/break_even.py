"""What guesses beside a model: an EAGLE-3 head, or the layers that a model brings for it.

At which batch speculation stops paying: the pace with and without guesses over a growing batch.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.calc.deployment import Deployment
from app.calc.dtypes import WeightFormat
from app.calc.memory.engines.parts import Draft
from app.calc.model.architecture import Architecture, LayerGroup, SidePath
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.calc.model.parameters import WeightPlan, convention
from app.calc.time.expected.timing import efficiency_of, step_time
from app.calc.time.operators import decode_operators
from app.calc.time.phase import ceiling_s
from app.calc.time.speculation import Method

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


Values = NDArray[np.float64]
MOST_BATCH = 65_536
POINTS = 41


@dataclass(frozen=True, slots=True, eq=False)
class Paying:
    """Seconds of a token over the `batch` of a replica, without guesses and with them; at the ceiling and as expected.

    `expected_…` are None where nothing is calibrated.
    """

    batch: Values
    plain_s: Values
    guessed_s: Values
    expected_plain_s: Values | None
    expected_guessed_s: Values | None
    tokens_per_step: float = 1.0

    def at(self, tokens_per_step: float) -> "Paying":
        """The same steps, where they give another number of tokens."""
        ratio = self.tokens_per_step / tokens_per_step
        expected = None if self.expected_guessed_s is None else self.expected_guessed_s * ratio
        return replace(
            self, guessed_s=self.guessed_s * ratio, expected_guessed_s=expected, tokens_per_step=tokens_per_step
        )

    @property
    def gain(self) -> Values:
        """How many times sooner a token comes, as expected; at the ceiling where nothing is."""
        if self.expected_plain_s is None or self.expected_guessed_s is None:
            return self.plain_s / self.guessed_s
        return self.expected_plain_s / self.expected_guessed_s

    @property
    def stops_at(self) -> float | None:
        """The batch from which on guessing costs more than it gives; 1 where it never pays, None where it always does.

        Between two points of the grid the gain is taken to be linear in the logarithm of the batch.
        """
        gain = self.gain
        below = np.nonzero(gain <= 1.0)[0]
        if not len(below):
            return None
        last_paying = np.nonzero(gain > 1.0)[0]
        if not len(last_paying):
            return 1.0
        at = int(last_paying[-1])
        if at + 1 >= len(gain):
            return None
        share = (gain[at] - 1.0) / (gain[at] - gain[at + 1])
        low, high = np.log(self.batch[at]), np.log(self.batch[at + 1])
        return float(np.exp(low + share * (high - low)))


def paying(guessing: Deployment, batch: Values | None = None) -> Paying:
    """The pace of a deployment that speculates, and of the same without.

    Args:
        guessing: with speculation; its workload's concurrency is not read.
        batch: sequences of a replica, shape (n,); None spaces them evenly on a log scale.
    """
    plain = replace(guessing, speculation=None)
    found = np.unique(np.rint(np.geomspace(1, MOST_BATCH, POINTS))).astype(float) if batch is None else batch
    return Paying(
        batch=found,
        plain_s=_ceiling(plain, found),
        guessed_s=_ceiling(guessing, found),
        expected_plain_s=_expected(plain, found),
        expected_guessed_s=_expected(guessing, found),
        tokens_per_step=guessing.tokens_per_step,
    )


def _ceiling(deployment: Deployment, batch: Values) -> Values:
    operators = decode_operators(deployment, batch, deployment.workload.mid_answer_tokens)
    step = np.asarray(ceiling_s(operators, deployment.accelerator), dtype=float)
    return step / deployment.tokens_per_step


def _expected(deployment: Deployment, batch: Values) -> Values | None:
    if deployment.calibration is None:
        return None
    efficiency = efficiency_of(deployment, deployment.calibration)
    step = step_time(deployment, efficiency, batch, deployment.workload.mid_answer_tokens).total_s
    return np.maximum(np.asarray(step, dtype=float) / deployment.tokens_per_step, _ceiling(deployment, batch))
