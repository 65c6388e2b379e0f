"""What a reader must know beside the memory of an engine."""

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Deployment
from app.calc.engines.parts import Part
from app.calc.layers.compressed_attention import CompressedAttention
from app.calc.measure import Measures
from app.calc.notation import quantity
from app.calc.notice import Notice
from app.calc.units import GIB


def memory_notices(deployment: Deployment, measures: Measures) -> list[Notice]:
    """How sure the memory numbers are, and where a plan is closer to the edge than it looks."""
    return [
        *_rules(deployment, measures),
        *_start(deployment, measures),
        *_label(deployment, measures),
        *_outside(deployment, measures),
        *_speculation(deployment),
    ]


def _rules(deployment: Deployment, measures: Measures) -> list[Notice]:
    held, policy = measures.memory, deployment.engine.policy
    if policy.sees_all:
        message = (
            "Capacity is that of an ideal engine: inside its share of the card nothing goes to activations, graphs or "
            "fragmentation. A real start-up leaves less room."
        )
        return [Notice("ideal_engine", message)]
    found = []
    low, high = held.kv_pool_tokens_interval
    if low != high:
        prints = "there should be room for" if held.allocates_what_is_asked else "its log should print"
        message = (
            f"Memory is divided by the rules of {policy.name}; what it needs beside weights is assumed from start-up "
            f"logs, so that {prints} {low:,} to {high:,} tokens in eight cases of ten. A pasted log, or any measured "
            "figure, takes the place of what is assumed."
        )
        found.append(Notice("assumed_overheads", message))
    mixers = [group.mixer for group in deployment.architecture.layers]
    if any(isinstance(mixer, CompressedAttention) for mixer in mixers):
        message = "How engines lay out compressed attention is not published in full: expect its pool to differ."
        found.append(Notice("layout_not_reproduced", message))
    return found


def _start(deployment: Deployment, measures: Measures) -> list[Notice]:
    """An engine that refuses to start where its longest sequence finds no room, however few and short the requests."""
    held, length = measures.memory, deployment.max_model_len
    if not held.refuses_to_start or held.per_gpu.kv_pool_bytes <= 0:
        return []
    longest = held.longest_alone
    message = (
        f"{deployment.engine.policy.name} refuses to start where one sequence of its longest length, {length:,} tokens "
        f"here, finds no room: set it to {longest:,} or less."
    )
    return [Notice("will_not_start", message)]


def _label(deployment: Deployment, measures: Measures) -> list[Notice]:
    """A plan that fits the number on the box but not what the engine sees of it."""
    card, held = deployment.accelerator, measures.memory
    if deployment.memory_basis is not MemoryBasis.REPORTED or deployment.engine.given.kv_pool is not None:
        return []
    share, seen = deployment.engine.memory_utilization, held.tightest.seen_bytes
    label = card.memory_marketed_bytes / 1e9 * GIB
    missing = held.needed_bytes - held.budget_bytes
    if not 0 < missing <= share * (label - seen):
        return []
    message = (
        f"It would fit {card.memory_marketed_bytes / 1e9:,.4g} GB read as GiB, as the name of the card suggests, but "
        f"not the {seen / GIB:,.1f} GiB that an engine sees of it: {quantity(missing, 'B', 3)} are missing."
    )
    return [Notice("fits_label_not_card", message)]


def _outside(deployment: Deployment, measures: Measures) -> list[Notice]:
    """Parts that the engine does not charge must find room in what its share leaves."""
    held = measures.memory
    outside = [o for o in held.overheads if not o.is_charged and o.part is not Part.DRIVER]
    needed = sum(overhead.bytes.mid for overhead in outside)
    if needed <= 0 or held.per_gpu.free_bytes >= 0 or held.tightest.pool.mid <= 0:
        return []
    words = " and ".join(overhead.part.replace("_", "-") for overhead in outside)
    message = (
        f"{deployment.engine.policy.name} does not charge {words} to its share: {quantity(needed, 'B', 3)} must find "
        f"room outside, {quantity(-held.per_gpu.free_bytes, 'B', 3)} more than there is. It may start and fail later."
    )
    return [Notice("uncharged_memory", message)]


def _speculation(deployment: Deployment) -> list[Notice]:
    if not deployment.engine.draft_tokens or deployment.speculation is not None:
        return []
    message = (
        "Speculative decoding is counted in memory alone: without an acceptance rate or length nobody knows how many "
        "guesses are taken, and the times are those of decoding one token after the other."
    )
    return [Notice("speculation_not_timed", message)]
