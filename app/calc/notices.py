"""What a reader must know beside the numbers."""

from app.calc.accelerator import MemoryBasis
from app.calc.deployment import Deployment
from app.calc.measure import Measures
from app.calc.memory_notices import memory_notices
from app.calc.notation import quantity
from app.calc.notice import Notice
from app.calc.technique_notices import technique_notices


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
