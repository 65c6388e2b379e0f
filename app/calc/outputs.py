"""Every number that the product tells of a scenario, declared once: path, label, unit, meaning, and where it is shown.

The JSON document, its schema, the derivations, the cards and the comparison are read off this table. A path is the key
in the JSON document, the id of the derivation, the anchor on the page and the key of a saved link; paths are therefore
never renamed, while a label may be at any time: nothing is looked up by it. Within a face the order is that of the
table. Paths below `deployment` stand in no document; comparisons alone show them.
"""

from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import TYPE_CHECKING, Any

from app.calc.derivation import Explanation, Term
from app.calc.memory.engines.parts import Interval
from app.calc.output import Better, Face, Form, Output, Scope, plain
from app.calc.quantity import Unit
from app.calc.time.expected.timing import sent_bytes
from app.calc.time.serving import Estimate, scaled

if TYPE_CHECKING:
    from app.calc.evaluate import Evaluation


_GPU, _USER = Scope.GPU, Scope.USER
_LOWER, _HIGHER = Better.LOWER, Better.HIGHER
_OPTIONAL, _COUNT, _ESTIMATE = Form.OPTIONAL, Form.COUNT, Form.ESTIMATE
_CARD, _LEVELS, _COMPARE = Face.CARD, Face.LEVELS, Face.COMPARE
_B, _S, _TOKENS, _PER_S = Unit.BYTES, Unit.SECONDS, Unit.TOKENS, Unit.TOKENS_PER_S


def _at(names: str) -> "Callable[[Evaluation], Any]":
    """Reads an attribute of an attribute; None where one on the way is None."""
    way = names.split(".")

    def read(evaluation: "Evaluation") -> Any:
        found: Any = evaluation
        for name in way:
            if found is None:
                return None
            found = getattr(found, name)
        return found

    return read


def _section(path: str, source: str, **usual: Any) -> Callable[..., Output]:
    """Makes the outputs below `path`, whose keys are the names of attributes of `source` where nothing else is said."""

    def output(key: str, label: str, unit: Unit, help_: str = "", *on: Face, **own: Any) -> Output:
        fields = {"of": _at(f"{source}.{key}")} | usual | own
        return Output(f"{path}.{key}", label, unit, help=help_, on=frozenset(on), **fields)

    return output


def _phase(path: str, name: str, of_one: str) -> tuple[Output, ...]:
    output = _section(path, f"measures.{path}", scope=_GPU)
    return (
        output("flops", f"Arithmetic of {of_one}", Unit.FLOP, "FLOP of all operators."),
        output("bytes", f"Bytes moved by {of_one}", _B, "Compulsory traffic of all operators."),
        output("intensity_flops_per_byte", f"Arithmetic intensity of {path}", Unit.FLOP_PER_BYTE),
        output("ceiling_s", f"{name}, ceiling", _S, "Sum of the operators at the vendor's peak."),
        output("overlapped_s", f"{name}, overlapped", _S, "The most lenient floor: all FLOP against all bytes."),
        output(
            "expected_s",
            name,
            _S,
            "Expected of a server, with its interval.",
            _LEVELS,
            of=_at(f"measures.{path}_s"),
            form=Form.EXPECTED,
        ),
    )


def _link_per_s(evaluation: "Evaluation") -> float | None:
    """Requests a second that the links carry away; None where nothing is expected of them, or they have no end."""
    found = _at("measures.expected.pool.link_per_s")(evaluation)
    return found if found is not None and isfinite(found) else None


def tokens_per_s_per_gpu(evaluation: "Evaluation") -> Estimate:
    """Output tokens a second of all users ÷ all GPUs."""
    gpus = evaluation.deployment.gpus
    return scaled(evaluation.measures.serving.output_tokens_per_s, lambda rate: rate / gpus)


def _interval(low_high: tuple[int, int], mid: int) -> Interval:
    return Interval(low_high[0], mid, low_high[1])


_rule = _section("rule_of_thumb", "rule_of_thumb")
_per_gpu = _section("memory.per_gpu", "measures.memory.per_gpu", scope=_GPU)
_memory = _section("memory", "measures.memory")
_serving = _section("serving", "measures.serving", scope=_USER, better=_LOWER, form=_ESTIMATE)
_cause = _section("expected.tpot_causes_s", "measures.expected.causes")
_goodput = _section("goodput", "goodput")
_speculative = _section("techniques.speculative", "deployment.speculation")
_disaggregation = _section("techniques.disaggregation", "deployment.prefill_pool")
_cost = _section("cost", "measures.cost", better=_LOWER, form=_OPTIONAL)
_deployment = _section("deployment", "deployment")

# fmt: off
OUTPUTS: tuple[Output, ...] = (
    _rule("ridge_flops_per_byte", "Ridge point", Unit.FLOP_PER_BYTE, "Intensity from which arithmetic is the limit."),
    _rule("prefill_flops", "Arithmetic of one prefill, rule of thumb", Unit.FLOP, "FLOP of one prompt."),
    _rule("prefill_s", "Prefill of one prompt, rule of thumb", _S, "", _LEVELS),
    _rule("decode_step_s", "Decode step, weights alone", _S, "One reading of the weights.", _LEVELS),
    _rule("decode_tokens_per_s", "Decode throughput, weights alone", _PER_S, "All users together."),
    _rule("decode_intensity_flops_per_byte", "Arithmetic intensity of decode, rule of thumb", Unit.FLOP_PER_BYTE),
    _rule(
        "compute_idle_fraction", "Idle compute", Unit.NONE, "Share of the decode step in which the arithmetic waits."
    ),
    _rule("kv_bytes_per_token", "KV cache per token, rule of thumb", _B),
    _rule(
        "kv_step_s", "Decode step, rule of thumb", _S, "Weights and every user's full-length cache read once.", _LEVELS
    ),
    _rule("kv_tokens_per_s", "Decode throughput", _PER_S, "All users together, cache read at full length.", _LEVELS),
    _rule(
        "kv_capacity_tokens", "KV cache capacity, rule of thumb", _TOKENS, "Whole tokens beside the weights.", _LEVELS,
        form=_COUNT
    ),
    _rule(
        "kv_capacity_users", "Max concurrency, rule of thumb", Unit.SEQUENCES,
        "At full length: prompt + output tokens.", _LEVELS, form=_COUNT
    ),
    _rule("total_latency_s", "End-to-end latency, rule of thumb", _S, "Prefill and a step a token.", _LEVELS),
    _memory(
        "max_concurrency", "Max concurrency", Unit.SEQUENCES, "Sequences that fit at full length, on all replicas.",
        _CARD, _LEVELS, _COMPARE, better=_HIGHER, form=_COUNT
    ),
    _memory(
        "needed_bytes", "Memory in use", _B, "What is held back, weights, and all running sequences at full length.",
        _CARD, _COMPARE, scope=_GPU
    ),
    _per_gpu("capacity_bytes", "Memory capacity", _B, "All of the memory; the parts sum to it."),
    _per_gpu("weights_bytes", "Weights", _B, ""),
    _per_gpu("kv_pool_bytes", "KV cache pool", _B, "What is left for the cache.", _COMPARE, better=_HIGHER),
    _per_gpu("activation_bytes", "Peak activations", _B, ""),
    _per_gpu("overhead_bytes", "Overhead", _B, "Driver, non-framework memory, graphs."),
    _per_gpu(
        "free_bytes", "Free memory", _B, "Outside the engine's share; negative where the weights exceed the card."
    ),
    _memory("kv_bytes_per_sequence", "KV cache per sequence", _B, "At prompt + output tokens."),
    _memory("kv_bytes_per_token", "KV cache per token", _B, "That of a sequence, divided by its tokens."),
    _memory(
        "state_bytes_per_sequence", "Recurrent state per sequence", _B,
        "Of the cache, what recurrent layers keep whatever the length."
    ),
    _memory(
        "gpu_bytes_per_sequence", "KV cache per sequence on one GPU", _B,
        "What one GPU holds of a sequence, copies included.", scope=_GPU
    ),
    _memory("shared_bytes", "Shared KV cache", _B, "On one GPU, what all sequences have in common, once.", scope=_GPU),
    _memory(
        "kv_pool_tokens", "KV cache capacity", _TOKENS, "As the engine's log counts them, of one data-parallel rank.",
        _LEVELS, form=_COUNT
    ),
    _memory(
        "max_context_tokens", "Max context length", _TOKENS,
        "Longest sequence at the scenario's concurrency, by memory alone.", form=_COUNT
    ),
    _memory("budget_bytes", "Memory budget", _B, "The engine's share of the card.", scope=_GPU),
    _memory(
        "seen_bytes", "Visible memory", _B, "The card's memory as the engine sees it.", scope=_GPU,
        of=_at("measures.memory.tightest.seen_bytes")
    ),
    _memory(
        "held_back_bytes", "Memory held back", _B, "What neither weights nor cache may use of the engine's share.",
        scope=_GPU, of=_at("measures.memory.tightest.held_back_bytes")
    ),
    _memory(
        "kv_pool_interval_bytes", "KV cache pool, interval", _B, "", scope=_GPU, form=Form.INTERVAL,
        of=_at("measures.memory.tightest.pool")
    ),
    _memory(
        "kv_pool_tokens_interval", "KV cache capacity, interval", _TOKENS, "", form=Form.INTERVAL,
        of=lambda e: _interval(e.measures.memory.kv_pool_tokens_interval, e.measures.memory.kv_pool_tokens)
    ),
    _memory(
        "max_concurrency_interval", "Max concurrency, interval", Unit.SEQUENCES, "", form=Form.INTERVAL,
        of=lambda e: _interval(e.measures.memory.max_concurrency_interval, e.measures.memory.max_concurrency)
    ),
    *_phase("prefill", "Prefill of one prompt", "one prefill"),
    *_phase("decode", "Decode step", "one decode step"),
    Output(
        "decode.concurrency", "Sequences in a decode step", Unit.SEQUENCES, _at("measures.memory.running_sequences"),
        help="Of the whole deployment.", form=_COUNT
    ),
    Output(
        "decode.context_tokens", "Context of a decode step", _TOKENS, _at("deployment.workload.mid_answer_tokens"),
        help="Half-way through the answers."
    ),
    _serving(
        "ttft_s", "Time to first token (TTFT)", _S, "From the request to the first token of its answer.", _CARD,
        _COMPARE
    ),
    _serving("tpot_s", "Time per output token (TPOT)", _S, "Time between tokens once they flow.", _CARD, _COMPARE),
    _serving(
        "tpot_inclusive_s", "TPOT, first token included", _S,
        "The whole answer divided by its tokens: the other definition."
    ),
    _serving(
        "output_tokens_per_s_per_user", "TPS per user", _PER_S,
        "Tokens a second of one stream once it flows: 1 ÷ TPOT.", _COMPARE, better=_HIGHER
    ),
    _serving(
        "total_latency_s", "End-to-end latency", _S, "From the request to the last token of its answer.", _CARD,
        _LEVELS, _COMPARE
    ),
    _serving(
        "output_tokens_per_s", "Output throughput", _PER_S, "Output tokens of all users, prefill included.", _CARD,
        _COMPARE, better=_HIGHER, scope=Scope.DEPLOYMENT
    ),
    _serving(
        "total_tokens_per_s", "Total token throughput", _PER_S, "Prompt and output tokens of all users.",
        better=_HIGHER, scope=Scope.DEPLOYMENT
    ),
    _cause("ceiling", "Share of the ceiling in the TPOT", _S, "", of=_at("measures.expected.causes.ceiling_s")),
    _cause(
        "efficiency", "Share of kernel efficiency in the TPOT", _S, "Kernels that reach a share of the peaks.",
        of=_at("measures.expected.causes.efficiency_s")
    ),
    _cause(
        "calls", "Share of kernel calls in the TPOT", _S, "Floors of kernel calls that no peak shortens.",
        of=_at("measures.expected.causes.calls_s")
    ),
    _cause(
        "collectives", "Share of collectives in the TPOT", _S,
        "Latency of collectives, and volume beyond the link's peak.", of=_at("measures.expected.causes.collectives_s")
    ),
    _cause(
        "host", "Share of the host in the TPOT", _S, "Scheduling, sampling and tokens on the host.",
        of=_at("measures.expected.causes.host_s")
    ),
    _cause(
        "interference", "Share of other prefills in the TPOT", _S, "Prefills of other requests, met between tokens.",
        of=_at("measures.expected.causes.interference_s")
    ),
    _goodput("rate_per_s", "Goodput", Unit.REQUESTS_PER_S, "Requests a second that meet the targets.", better=_HIGHER),
    _goodput("offered_per_s", "Offered rate", Unit.REQUESTS_PER_S, "The rate of requests at which most are good."),
    _goodput("attained", "SLO attainment", Unit.NONE, "Share of the offered requests that is good.", better=_HIGHER),
    _goodput("concurrency", "Concurrency at goodput", Unit.NONE, "Requests in the system at the offered rate."),
    _goodput(
        "most_per_s", "Request throughput at capacity", Unit.REQUESTS_PER_S,
        "What passes at max concurrency, targets or not."
    ),
    _speculative("tokens_per_step", "Tokens per step", _TOKENS, "What a step gives, accepted guesses included."),
    _speculative("acceptance_rate", "Acceptance rate", Unit.NONE, "Share of the guesses that is accepted."),
    _speculative(
        "positions", "Positions per step", Unit.NONE, "Positions of a sequence that a step works on.", form=_COUNT
    ),
    _disaggregation(
        "prefill_gpus", "GPUs for prefill", Unit.NONE, "", form=_COUNT, of=_at("deployment.prefill_pool.gpus")
    ),
    _disaggregation("decode_gpus", "GPUs for decode", Unit.NONE, "", form=_COUNT, of=_at("deployment.decode_gpus")),
    _disaggregation(
        "sent_bytes", "KV cache sent", _B, "Cache of a prompt that goes over the link.",
        of=lambda e: sent_bytes(e.deployment) if e.deployment.prefill_pool else None
    ),
    _disaggregation("link_bytes_per_s", "Link bandwidth", Unit.BYTES_PER_S, "From the prefill pool to the others."),
    _disaggregation(
        "link_wait_s", "Wait for the link", _S, "Cache still on its way when the prefill ends.", form=_OPTIONAL,
        of=_at("measures.expected.link_wait_s")
    ),
    _disaggregation(
        "prefill_per_s", "Requests of the prefill pool", Unit.REQUESTS_PER_S, "What the pool takes on.", form=_OPTIONAL,
        of=_at("measures.expected.pool.prefill_per_s")
    ),
    _disaggregation(
        "link_per_s", "Requests of the link", Unit.REQUESTS_PER_S, "What the links of the pool carry away.",
        form=_OPTIONAL, of=_link_per_s
    ),
    _deployment(
        "output_tokens_per_s_per_gpu", "Output throughput per GPU", _PER_S, "That of all users ÷ all GPUs.", _COMPARE,
        scope=_GPU, better=_HIGHER, form=_ESTIMATE, of=tokens_per_s_per_gpu
    ),
    _cost(
        "usd_per_million_output_tokens", "Cost per million output tokens", Unit.DOLLARS,
        "At the expected throughput, or the ceiling where nothing is calibrated.", _COMPARE
    ),
    _cost(
        "joules_per_output_token", "Energy per output token", Unit.JOULES,
        "All cards at their rated power (TDP), at the same throughput.", _COMPARE
    ),
    _cost("usd_per_hour", "Price per hour", Unit.DOLLARS, "Of all GPUs.", _COMPARE),
    _deployment("gpus", "GPUs", Unit.NONE, "", _COMPARE, form=_COUNT),
    _deployment(
        "served_sequences", "Sequences running", Unit.SEQUENCES, "Those of the requests that find room at a time.",
        _COMPARE, form=_COUNT, of=_at("measures.memory.served_sequences")
    ),
)
# fmt: on

_LEVEL_WORDS = {"ceiling": "ceiling", "mid": "expected"}


def output_at(path: str) -> Output:
    """The output at a path, or the one that a path of one of its levels (`serving.ttft_s.mid`) belongs to.

    Raises:
        KeyError: there is none.
    """
    known = _by_path()
    return known[path] if path in known else known[path.rpartition(".")[0]]


def label_at(path: str) -> str:
    """The label of the number at `path`, its level named where the path names one."""
    found, level = output_at(path), path.rpartition(".")[2]
    return found.label if found.path == path else f"{found.label}, {_LEVEL_WORDS[level]}"


def shown_on(face: Face) -> tuple[Output, ...]:
    """The outputs of a face, in the order of the table."""
    return tuple(output for output in OUTPUTS if face in output.on)


@lru_cache
def outputs_below(path: str) -> tuple[tuple[tuple[str, ...], Output], ...]:
    """The outputs below `path`, each with the keys that lead to it from there."""
    return tuple(
        (tuple(output.path[len(path) + 1 :].split(".")), output)
        for output in OUTPUTS
        if output.path.startswith(f"{path}.")
    )


def numbers_below(path: str, evaluation: "Evaluation") -> dict[str, Any]:
    """The part of the JSON document at `path`, as far as it is numbers: plain, unrounded, null where there is none."""
    part: dict[str, Any] = {}
    for (*groups, key), output in outputs_below(path):
        place = part
        for group in groups:
            place = place.setdefault(group, {})
        place[key] = plain(output.of(evaluation))
        if output.form is Form.EXPECTED:  # its ceiling has a path of its own
            del place[key]["ceiling"]
    return part


def derivation(path: str, formula: str, terms: tuple[Term, ...], value: float, source: str) -> Explanation:
    """The working of the output at `path`, named and in the unit as the table of outputs has it.

    Raises:
        KeyError: there is no such output.
    """
    return Explanation(path, label_at(path), formula, terms, value, output_at(path).unit.value, source)


@lru_cache
def _by_path() -> dict[str, Output]:
    return {output.path: output for output in OUTPUTS}
