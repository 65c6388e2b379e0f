"""The back-of-envelope that people learn: two FLOPs a parameter a token, every weight read once a step.

Of a mixture of experts the parameters are those that a token meets, and the weights those that a step's tokens chose.
The GPUs of a replica count as one with their bandwidth, arithmetic and memory added up. It divides by the number on the
box (the marketed memory), as people do. What it leaves out is the lesson: the ceiling beside it leaves the gathered
embedding out of the weights read, and adds attention, the head and the cache.
"""

from dataclasses import dataclass
from math import inf

from app.calc.accelerator import MemoryBasis, ridge_flops_per_byte, step_weight_bytes, time_s
from app.calc.broadcast import Quantity, floor, maximum, scalar
from app.calc.deployment import Deployment
from app.calc.memory.cache import kv_bytes_per_sequence
from app.calc.model.layers.parts import FLOPS_PER_MULTIPLY_ADD
from app.calc.model.parameters import count_parameters, side_table_params, text_weight_bytes

MOST_TOKENS = 10**15
"""What a capacity is cut at, for a model that keeps (almost) nothing of a sequence."""


@dataclass(frozen=True, slots=True)
class RuleOfThumb:
    """SI units. `kv_…` hold every sequence at its full length (prompt + output); `decode_…` read weights alone."""

    ridge_flops_per_byte: float
    prefill_flops: float
    prefill_s: float
    decode_step_s: float
    decode_tokens_per_s: float
    decode_intensity_flops_per_byte: float
    compute_idle_fraction: float
    kv_bytes_per_token: float
    kv_step_s: float
    kv_tokens_per_s: float
    kv_capacity_tokens: int
    kv_capacity_users: int
    total_latency_s: float


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """What the rule divides: parameters that a token meets, bytes of weights, and the GPUs added up."""

    n_params: float
    weights_bytes: float
    step_weights_bytes: float
    prefill_weights_bytes: float
    peak_flops_per_s: float
    bandwidth_bytes_per_s: float
    memory_bytes: float


def rule_inputs(deployment: Deployment, batch: int) -> RuleInputs:
    """The inputs for a step of `batch` sequences and a prefill of one prompt."""
    accelerator, precision, gpus = deployment.accelerator, deployment.precision, deployment.split.gpus
    architecture, plan = deployment.architecture, precision.weights
    counts = count_parameters(architecture)
    return RuleInputs(
        n_params=counts.active - side_table_params(architecture),
        weights_bytes=text_weight_bytes(counts, plan),
        step_weights_bytes=scalar(step_weight_bytes(architecture, plan, batch)),
        prefill_weights_bytes=scalar(step_weight_bytes(architecture, plan, deployment.workload.prompt_tokens)),
        peak_flops_per_s=gpus * accelerator.peak(precision.compute),
        bandwidth_bytes_per_s=gpus * accelerator.bandwidth_bytes_per_s,
        memory_bytes=gpus * accelerator.memory_bytes(MemoryBasis.MARKETED),
    )


def ridge_batch(deployment: Deployment) -> float:
    """Batch at which the arithmetic of a token each takes as long as reading the weights: W ÷ bandwidth · peak ÷ 2N.

    At such batches every expert is read. Worked number: 295 for Llama-3.1-8B on an H100 SXM in 16 bits.
    """
    inputs = rule_inputs(deployment, 1)
    everything = scalar(step_weight_bytes(deployment.architecture, deployment.precision.weights, inf))
    reading_s = everything / inputs.bandwidth_bytes_per_s
    return reading_s * inputs.peak_flops_per_s / (FLOPS_PER_MULTIPLY_ADD * inputs.n_params)


def prefill_flops(n_params: float, tokens: Quantity) -> Quantity:
    """2·N·tokens. Worked number: 2 × 8.03e9 × 1,000 = 16.06e12 FLOP. Source: Kaplan et al. 2020, section 2.1."""
    return FLOPS_PER_MULTIPLY_ADD * n_params * tokens


def decode_step_s(
    weight_bytes: Quantity,
    n_params: float,
    batch: Quantity,
    peak_flops_per_s: float,
    bandwidth_bytes_per_s: float,
    kv_bytes: Quantity = 0.0,
) -> Quantity:
    """One step of `batch` sequences: max((weights + cache) ÷ bandwidth, 2·N·B ÷ peak). Broadcasts.

    Worked numbers: 16.06e9 B ÷ 3.35e12 B/s = 4.79 ms up to a batch of 295; 8.31 ms at 512; with 64 sequences of 4,096
    tokens cached (34.36e9 B) 15.05 ms.
    """
    return time_s(
        FLOPS_PER_MULTIPLY_ADD * n_params * batch, weight_bytes + kv_bytes, peak_flops_per_s, bandwidth_bytes_per_s
    )


def compute_idle_fraction(n_params: float, batch: float, step_s: float, peak_flops_per_s: float) -> float:
    """Share of a step in which the arithmetic waits: 1 − (2·N·B ÷ peak) ÷ step. Worked number: 99.66 % for one user."""
    return 1 - FLOPS_PER_MULTIPLY_ADD * n_params * batch / peak_flops_per_s / step_s


def kv_capacity_tokens(memory_bytes: float, weight_bytes: float, kv_bytes_per_token: float) -> Quantity:
    """Whole tokens of cache beside the weights. Worked number: (80e9 − 16.06e9) ÷ 131,072 = 487,800."""
    return maximum(0.0, floor((memory_bytes - weight_bytes) / kv_bytes_per_token))


def total_latency_s(ttft_s: Quantity, tpot_s: Quantity, output_tokens: Quantity) -> Quantity:
    """The whole answer: TTFT + TPOT × tokens. Worked number: 0.2 + 0.02 × 500 = 10.2 s, 98 % of it decode."""
    return ttft_s + tpot_s * output_tokens


def rule_of_thumb(deployment: Deployment, batch: int) -> RuleOfThumb:
    """The thirteen numbers of the back-of-envelope for `batch` sequences at a time."""
    workload, kv_cache = deployment.workload, deployment.precision.kv_cache
    inputs = rule_inputs(deployment, batch)
    n_params, weights = inputs.n_params, inputs.step_weights_bytes
    peak, bandwidth = inputs.peak_flops_per_s, inputs.bandwidth_bytes_per_s
    per_sequence = scalar(kv_bytes_per_sequence(deployment.architecture, workload.total_tokens, kv_cache))
    per_token = per_sequence / workload.total_tokens

    step = scalar(decode_step_s(weights, n_params, batch, peak, bandwidth))
    kv_step = scalar(decode_step_s(weights, n_params, batch, peak, bandwidth, batch * per_sequence))
    prefill = scalar(prefill_flops(n_params, workload.prompt_tokens))
    # The least a prefill can take is one reading of the weights, however short the prompt is.
    prefill_s = scalar(time_s(prefill, inputs.prefill_weights_bytes, peak, bandwidth))
    capacity = scalar(kv_capacity_tokens(inputs.memory_bytes, inputs.weights_bytes, per_token)) if per_token else inf
    return RuleOfThumb(
        ridge_flops_per_byte=scalar(ridge_flops_per_byte(peak, bandwidth)),
        prefill_flops=prefill,
        prefill_s=prefill_s,
        decode_step_s=step,
        decode_tokens_per_s=batch / step,
        decode_intensity_flops_per_byte=FLOPS_PER_MULTIPLY_ADD * n_params * batch / weights,
        compute_idle_fraction=compute_idle_fraction(n_params, batch, step, peak),
        kv_bytes_per_token=per_token,
        kv_step_s=kv_step,
        kv_tokens_per_s=batch / kv_step,
        kv_capacity_tokens=int(min(capacity, MOST_TOKENS)),
        kv_capacity_users=int(min(capacity, MOST_TOKENS) // workload.total_tokens),
        total_latency_s=scalar(total_latency_s(prefill_s, step, workload.output_tokens)),
    )
