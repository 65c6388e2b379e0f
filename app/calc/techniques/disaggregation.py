"""What goes from a prefill pool to the GPUs that decode, and what of it a request waits for."""

from app.calc.broadcast import scalar
from app.calc.deployment import Deployment
from app.calc.kv_cache import kv_bytes_per_sequence
from app.calc.techniques.pools import transfer_s, wait_for_link_s


def sent_bytes(deployment: Deployment) -> float:
    """Bytes of a prompt's cache, each head's once, with its states: what an instance sends for one request.

    Tokens found in the prefix cache of the pool are sent too: the other side has never seen them.
    """
    prompt = deployment.workload.prompt_tokens
    return scalar(kv_bytes_per_sequence(deployment.architecture, float(prompt), deployment.precision.kv_cache))


def link_wait_s(deployment: Deployment, prefill_s: float) -> float:
    """Seconds between a prefill of `prefill_s` and the first decode step; none without a prefill pool."""
    pool = deployment.prefill_pool
    if pool is None:
        return 0.0
    took = scalar(transfer_s(sent_bytes(deployment), pool.link_bytes_per_s, pool.senders))
    return wait_for_link_s(took, prefill_s, deployment.architecture.n_layers, overlaps=pool.overlaps)
