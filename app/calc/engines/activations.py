"""What a forward pass holds beside weights and cache: the peak that an engine measures before it sizes its cache."""

from collections.abc import Iterable

from app.calc.architecture import Architecture
from app.calc.dtypes import Dtype

HIDDEN_ROWS = 4
"""Rows of the hidden size that are alive at a time: the residual, its norm, the block's input and its output."""
ROWS_BESIDE_LOGITS = 1.28
"""Rows of the hidden size for each token that still stand while the last logits are sampled."""
LOGIT_BYTES = 38.25
"""Bytes for each logit of a sampler that sorts: the logits in 16 and 32 bits, the sorted copies, indices, sums."""
VISION_BYTES = 1.7 * 2**30
"""Peak of a vision encoder at its largest picture."""
RECURRENT_SHARE = 0.11
"""Elements alive for each token of a recurrence that runs in chunks, for each element of its state.

Queries, keys, values, gates and their products are some twelve rows of a head's width (state ÷ 128), and each chunk of
64 tokens keeps a state of its own.
"""


def forward_bytes(part: Architecture, tokens: int) -> float:
    """Peak of one pass of `tokens` through the widest layer of a GPU's part: 2 B × tokens × (4·h + widest).

    Worked number: 32,768 tokens of Qwen2.5-7B: 2 × 32,768 × (4 × 3,584 + 3 × 18,944) = 4.66e9 B; a log has 4.35 GiB.
    """
    widest = max(_widths(part), default=0)
    return Dtype.BF16.bytes * tokens * (HIDDEN_ROWS * part.hidden_size + widest)


def _widths(part: Architecture) -> Iterable[int]:
    for group in part.loaded_layers:
        yield max((block.live_elements(part.hidden_size) for block in group.feed_forwards), default=0)
        if group.mixer is not None:
            yield round(RECURRENT_SHARE * max((state.elements for state in group.mixer.state()), default=0))


def sampling_bytes(whole: Architecture, tokens: int, sequences: int, logit_bytes: float = LOGIT_BYTES) -> float:
    """Peak while the logits of `sequences` are sampled, the hidden rows of the pass still there.

    Every GPU that samples has the whole vocabulary. Worked number: 1,024 sequences of Llama-3.1-8B after 8,192 tokens:
    1,024 × 128,256 × 38.25 + 1.28 × 8,192 × 4,096 × 2 = 5.11e9 B; a log has 4.76 GiB.
    """
    hidden = ROWS_BESIDE_LOGITS * tokens * whole.hidden_size * Dtype.BF16.bytes
    return sequences * whole.vocab_size * logit_bytes + hidden


def activation_peak(
    part: Architecture, whole: Architecture, tokens: int, sequences: int, logit_bytes: float = LOGIT_BYTES
) -> float:
    """The larger of the two, or of a vision encoder's where there is one.

    Source: start-up logs of vLLM 0.6 to 0.30 that print the peak; see docs/memory.md.
    """
    sampled = sampling_bytes(whole, tokens, min(sequences, tokens), logit_bytes) if part.holds_head else 0.0
    seen = VISION_BYTES if part.vision_params else 0.0
    return max(forward_bytes(part, tokens), sampled, seen)
