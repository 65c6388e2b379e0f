"""A thing that a reader must know beside the numbers.

What a reader must know beside the memory of an engine.

What a reader must know of the optimizations that a scenario uses.

What a reader must know beside the numbers.
"""

from dataclasses import dataclass

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Deployment
from app.calc.measure import Measures
from app.calc.memory.engines.parts import Part
from app.calc.model.layers.compressed_attention import CompressedAttention
from app.calc.quantity import GIB, quantity, significant
from app.calc.time.speculation import METHOD_WORDS


@dataclass(frozen=True, slots=True)
class Notice:
    """`code` is for programs and never changes its meaning; `message` is for people."""

    code: str
    message: str


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


def technique_notices(deployment: Deployment, measures: Measures) -> list[Notice]:
    """Notices of guesses, of a prefill pool, of static batches and of room that is reserved."""
    return [
        *_guesses(deployment),
        *_pool(deployment, measures),
        *_static(deployment),
        *_reserved(deployment),
    ]


def _guesses(deployment: Deployment) -> list[Notice]:
    speculation = deployment.speculation
    if speculation is None:
        return []
    message = (
        f"{speculation.draft_tokens} tokens are guessed by {METHOD_WORDS[speculation.method]}, and a step is taken to "
        f"give {significant(speculation.tokens_per_step, 3)}: that is an input, not a prediction."
    )
    return [Notice("acceptance_given", message)]


def _pool(deployment: Deployment, measures: Measures) -> list[Notice]:
    pool, held, expected = deployment.prefill_pool, measures.prefill_memory, measures.expected
    if pool is None or held is None:
        return []
    found = []
    if not held.max_concurrency:
        short = held.needed_bytes - held.budget_bytes
        message = (
            f"The prefill pool does not fit: an instance on {pool.split.gpus:,} × {pool.accelerator.name} has no room "
            f"for one prompt beside the weights; {quantity(short, 'B', 3)} are missing on a GPU."
        )
        found.append(Notice("prefill_pool_does_not_fit", message))
    if expected is not None and expected.pool is not None:
        rates, running = expected.pool, measures.memory.served_sequences
        needs = running / measures.serving.residency_s
        if needs >= rates.per_s * (1 - 1e-9):
            what = "links give" if rates.link_per_s < rates.prefill_per_s else "prefill pool gives"
            message = (
                f"The {what} {significant(rates.per_s, 3)} requests a second and no more: requests wait there, "
                "and the GPUs that decode have less to do than they could."
            )
            found.append(Notice("prefill_pool_limits", message))
    return found


def _static(deployment: Deployment) -> list[Notice]:
    if not deployment.engine.is_static:
        return []
    message = (
        "Static batches: a batch starts together and its places are taken until its longest answer is complete. A "
        "request that comes in between waits for its end, which no time here includes."
    )
    return [Notice("static_batches", message)]


def _reserved(deployment: Deployment) -> list[Notice]:
    reserved = deployment.engine.reserved_tokens
    if reserved is None:
        return []
    total = deployment.workload.total_tokens
    if reserved < total:
        message = (
            f"{reserved:,} tokens are reserved for each sequence, but one comes to {total:,}: so much is reserved."
        )
        return [Notice("reserved_too_little", message)]
    message = f"{reserved:,} tokens are reserved for each sequence; one comes to {total:,} when its answer is complete."
    return [Notice("reserved", message)]


def notices(deployment: Deployment, measures: Measures) -> tuple[Notice, ...]:
    """Everything about `deployment` that makes a number less than it seems."""
    found = [
        *_context(deployment),
        *_capacity(deployment, measures),
        *_split(deployment),
        *_targets(deployment, measures),
        *_expected(deployment, measures),
    ]
    return (*found, *technique_notices(deployment, measures), *memory_notices(deployment, measures))


def _context(deployment: Deployment) -> list[Notice]:
    found = []
    total, limit = deployment.workload.total_tokens, deployment.architecture.max_position
    if limit is not None and total > limit:
        found.append(
            Notice(
                "context_beyond_model",
                f"Prompt and answer are {total:,} tokens; {deployment.architecture.name} was made for {limit:,}.",
            )
        )
    served = deployment.engine.max_model_len
    if served is not None and total > served:
        found.append(
            Notice(
                "context_beyond_max_model_len",
                f"Prompt and answer are {total:,} tokens; the engine is set to refuse more than {served:,}.",
            )
        )
    return found


def _capacity(deployment: Deployment, measures: Measures) -> list[Notice]:
    found = []
    accelerator, held = deployment.accelerator, measures.memory
    if deployment.memory_basis is MemoryBasis.REPORTED and accelerator.memory_reported_bytes is None:
        found.append(
            Notice(
                "memory_not_reported",
                f"No driver figure is known for the memory of {accelerator.name}; the marketed "
                f"{quantity(accelerator.memory_marketed_bytes, 'B', 3)} stand in, which is the safe side.",
            )
        )
    given = deployment.engine.given.kv_pool
    if given is not None and given > held.per_gpu.kv_pool_bytes:
        found.append(
            Notice(
                "pool_exceeds_card",
                f"The cache pool that was given, {quantity(given, 'B', 3)}, is more than the card has beside the "
                f"weights; {quantity(held.per_gpu.kv_pool_bytes, 'B', 3)} are counted.",
            )
        )
    rank = held.tightest
    if given is not None and deployment.engine.given.weights is None and rank.weights.mid < rank.rank.weights_bytes:
        counted = quantity(rank.rank.weights_bytes, "B", 3)
        found.append(
            Notice(
                "weights_yield_to_pool",
                f"The weights are counted as {counted} a GPU, which leaves no room for the pool that was given; the "
                "pool was measured, so the checkpoint must be stored in less than the scenario says.",
            )
        )
    wanted, cap = deployment.workload.concurrency, deployment.engine.max_num_seqs
    if wanted is not None and cap is not None and wanted > cap:
        found.append(
            Notice("requests_wait", f"{wanted:,} requests at a time, but the engine runs {cap:,}; the others wait.")
        )
    return found


def _split(deployment: Deployment) -> list[Notice]:
    card, n = deployment.accelerator, deployment.split.tensor
    found = _left_out(deployment)
    if n == 1:
        return found
    if card.link_bytes_per_s_one_way is not None:
        message = (
            f"The all-reduces of {n:,} GPUs are those of a ring and stand in line with the rest. A switch that adds in "
            "flight needs about half, and kernels may hide them behind other work: the overlapped floor hides all."
        )
        return [Notice("ring_all_reduce", message), *found]
    message = (
        f"No link between cards is known for {card.name}: the ceilings leave the all-reduces of {n:,} GPUs out, and "
        "real ones stay further below."
    )
    return [Notice("link_unknown", message), *found]


def _left_out(deployment: Deployment) -> list[Notice]:
    """Traffic between GPUs that no ceiling counts yet; the ceilings stay floors of the time without it."""
    split, left = deployment.split, []
    if split.pipeline > 1:
        left.append("the hops between pipeline stages")
    if split.expert > 1 or split.data > 1:
        left.append("the exchange of tokens among the GPUs that share out the experts")
    if split.decode_context > 1:
        left.append("the exchange of partial scores among context ranks")
    if not left:
        return []
    return [Notice("exchange_left_out", f"The ceilings leave out {' and '.join(left)}: a server is slower by that.")]


def _targets(deployment: Deployment, measures: Measures) -> list[Notice]:
    """Targets that the ceiling rules out, and those that are expected to be missed."""
    found = []
    workload, served = deployment.workload, measures.serving
    for code, name, target, estimate in (
        ("ttft", "TTFT", workload.slo_ttft_s, served.ttft_s),
        ("tpot", "TPOT", workload.slo_tpot_s, served.tpot_s),
    ):
        if target is None:
            continue
        written = f"The {name} target of {quantity(target, 's', 3)}"
        if estimate.ceiling > target:
            least = quantity(estimate.ceiling, "s", 3)
            message = f"{written} is out of reach: even at the vendor's peak it takes {least}."
            found.append(Notice(f"{code}_out_of_reach", message))
        elif estimate.mid is not None and estimate.mid > target:
            message = (
                f"{written} is likely to be missed: a server is expected to take {quantity(estimate.mid, 's', 3)}."
            )
            found.append(Notice(f"{code}_missed", message))
    return found


def _expected(deployment: Deployment, measures: Measures) -> list[Notice]:
    """How far the expected values can be trusted here."""
    expected = measures.expected
    if expected is None:
        return []
    found, own = [], deployment.own_calibration
    if own is not None:
        found.append(Notice("own_calibration", own.notice))
    if not expected.is_seen:
        beside = "and the intervals are those of accelerators left out of the fit"
        if own is not None and own.is_whole:
            beside = "with your calibration on them"
        message = (
            f"{deployment.accelerator.name} under this engine was not measured for the expected values: "
            f"efficiencies of its kind stand in, {beside}."
        )
        found.append(Notice("not_measured", message))
    if expected.unclaimed is not None:
        found.append(Notice("no_interval", f"No interval is claimed for the expected values: {expected.unclaimed}."))
    if expected.refused is not None:
        found.append(Notice("ttft_refused", f"No time to the first token is told: {expected.refused}"))
    return found
