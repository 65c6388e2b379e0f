"""What a reader must know of the optimizations that a scenario uses."""

from app.calc.deployment import Deployment
from app.calc.measure import Measures
from app.calc.notation import quantity, significant
from app.calc.notice import Notice
from app.calc.techniques.speculation import METHOD_WORDS


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
