"""The working of the rule of thumb."""

from app.calc.deployment import Deployment
from app.calc.derivation import Explanation, Term
from app.calc.measure import Measures, replica_batch
from app.calc.outputs import derivation
from app.calc.time.rule_of_thumb import RuleOfThumb, rule_inputs

_ROOFLINE = "Williams et al., CACM 52(4), 2009"
_TWO_N = "Two FLOPs a parameter a token: Kaplan et al. 2020, section 2.1"
_READ_ONCE = "Every weight read once a step: Pope et al. 2022"
_LATENCY = "Definition of TTFT and TPOT"


def explain_rule_of_thumb(deployment: Deployment, measures: Measures, rule: RuleOfThumb) -> list[Explanation]:
    """Explanations of the thirteen numbers of the back-of-envelope."""
    precision, workload = deployment.precision, deployment.workload
    users = replica_batch(deployment, measures.memory.running_sequences)
    inputs = rule_inputs(deployment, users)
    sparse, gpus = deployment.architecture.has_experts, deployment.split.gpus
    added = "" if gpus == 1 else f", {gpus:,} GPUs added up"
    peak = Term("P", f"dense {precision.compute} peak{added}", inputs.peak_flops_per_s, "FLOP/s")
    bandwidth = Term("BW", f"memory bandwidth{added}", inputs.bandwidth_bytes_per_s, "B/s")
    params = Term("N", "parameters that a token meets" if sparse else "parameters", inputs.n_params, "")
    chosen = ", with the experts that its tokens choose" if sparse else ""
    weights = Term("W", f"weights a step reads{chosen}", inputs.step_weights_bytes, "B")
    prompt_weights = Term("W", f"weights the prefill reads{chosen}", inputs.prefill_weights_bytes, "B")
    all_weights = Term("W", "weights", inputs.weights_bytes, "B")
    batch = Term("B", "users of a replica at a time", users, "")
    prompt = Term("s", "prompt tokens", workload.prompt_tokens, "tokens")
    flops = Term("F", "arithmetic of the prefill", rule.prefill_flops, "FLOP")
    step = Term("t_step", "one step, weights alone", rule.decode_step_s, "s")
    kv_step = Term("t_kv", "one step, weights and cache", rule.kv_step_s, "s")
    total = Term("n", "prompt and output tokens", workload.total_tokens, "tokens")
    sequence = Term("KV", "cache of one full-length sequence", measures.memory.kv_bytes_per_sequence, "B")
    token = Term("KV_token", "cache of one token", rule.kv_bytes_per_token, "B")
    box = Term("M", f"memory on the box{added}", inputs.memory_bytes, "B")
    capacity = Term("T_max", "tokens of cache beside the weights", rule.kv_capacity_tokens, "tokens")
    output = Term("n_out", "output tokens", workload.output_tokens, "tokens")
    prefill = Term("t_prefill", "prefill", rule.prefill_s, "s")

    def explain(key: str, formula: str, terms: tuple[Term, ...], source: str) -> Explanation:
        return derivation(f"rule_of_thumb.{key}", formula, terms, getattr(rule, key), source)

    return [
        explain("ridge_flops_per_byte", "P ÷ BW", (peak, bandwidth), _ROOFLINE),
        explain("prefill_flops", "2 × N × s", (params, prompt), _TWO_N),
        explain("prefill_s", "max(F ÷ P, W ÷ BW)", (flops, peak, prompt_weights, bandwidth), _TWO_N),
        explain(
            "decode_step_s",
            "max(W ÷ BW, 2 × N × B ÷ P)",
            (weights, bandwidth, params, batch, peak),
            _READ_ONCE,
        ),
        explain("decode_tokens_per_s", "B ÷ t_step", (batch, step), _READ_ONCE),
        explain(
            "decode_intensity_flops_per_byte",
            "2 × N × B ÷ W",
            (params, batch, weights),
            _ROOFLINE,
        ),
        explain(
            "compute_idle_fraction",
            "1 − 2 × N × B ÷ P ÷ t_step",
            (params, batch, peak, step),
            _ROOFLINE,
        ),
        explain("kv_bytes_per_token", "KV ÷ n", (sequence, total), "Shapes of keys and values"),
        explain(
            "kv_step_s",
            "max((W + B × KV) ÷ BW, 2 × N × B ÷ P)",
            (weights, batch, sequence, bandwidth, params, peak),
            _READ_ONCE,
        ),
        explain("kv_tokens_per_s", "B ÷ t_kv", (batch, kv_step), _READ_ONCE),
        explain(
            "kv_capacity_tokens",
            "max(0, ⌊(M − W) ÷ KV_token⌋)",
            (box, all_weights, token),
            "The memory on the box, all of it",
        ),
        explain("kv_capacity_users", "⌊T_max ÷ n⌋", (capacity, total), "The memory on the box"),
        explain(
            "total_latency_s",
            "t_prefill + t_step × n_out",
            (prefill, step, output),
            _LATENCY,
        ),
    ]
