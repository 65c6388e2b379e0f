"""Chapters one to four: a request, its two phases, and the number between them."""

from app.calc.accelerator import time_s
from app.calc.model.layers.parts import FLOPS_PER_MULTIPLY_ADD, OperatorName
from app.calc.time.rule_of_thumb import total_latency_s
from app.features.learn.case import Case, Cases, Chapter, Desk, all_step_bytes
from app.features.learn.charts import timeline_chart
from app.features.learn.number import COUNT, MILLISECONDS, PERCENT, TIMES, LiveNumber
from app.features.learn.published import Published, promises
from app.features.workbench.charts.roofline import roofline_chart

_TWO_N = "two FLOPs a parameter a token: Kaplan et al. 2020, section 2.1"


def request(cases: Cases, published: Published) -> Chapter:
    """One request: two waits, and which of them is longer."""
    desk, one = Desk("request"), cases.one
    desk.tokens("prompt", "tokens of the prompt", one, "prompt_tokens")
    tokens = desk.tokens("tokens", "tokens of the answer", one, "output_tokens")
    prefill = desk.read("prefill", "reading the prompt", one, "rule_of_thumb.prefill_s", "s", 3)
    step = desk.read("step", "one token", one, "rule_of_thumb.decode_step_s", "s", 3)
    writing = desk.made("writing", "writing the answer", "s", step, "×", tokens, digits=3)
    total = desk.shown(
        "total",
        "the whole answer",
        one,
        "rule_of_thumb.total_latency_s",
        "s",
        prefill,
        "+",
        step,
        "×",
        tokens,
        digits=3,
    )
    desk.made("share", "share of it that is writing", PERCENT, writing, "÷", total, digits=3)
    _promise(desk, tokens, cases.asked, published)
    return Chapter(
        "request",
        "One request",
        desk.numbers,
        one,
        says={"has_targets": cases.asked.deployment.workload.slo_tpot_s is not None},
        charts={"timeline": timeline_chart(one.evaluation)},
    )


def _promise(desk: Desk, tokens: LiveNumber, asked: Case, published: Published) -> None:
    """The same sum with the two waits that a service promises."""
    first, each = promises(desk, asked, published)
    whole = float(total_latency_s(first.value, each.value, tokens.value))
    promised = desk.sum_of(
        "promised", "the whole answer, as promised", whole, "s", first, "+", each, "×", tokens, digits=3
    )
    desk.made(
        "promised_share", "share of the promise that is writing", PERCENT, each, "×", tokens, "÷", promised, digits=2
    )


def prefill(cases: Cases) -> Chapter:
    """The prompt is read at once: arithmetic against one reading of the weights."""
    desk, one = Desk("prefill"), cases.one
    inputs, rule = one.inputs, one.rule
    two = desk.given("two", "FLOP a weight", FLOPS_PER_MULTIPLY_ADD, COUNT, _TWO_N)
    params = desk.parameters("params", one)
    prompt = desk.tokens("prompt", "tokens of the prompt", one, "prompt_tokens")
    flops = desk.shown("flops", "arithmetic", one, "rule_of_thumb.prefill_flops", "FLOP", two, "×", params, "×", prompt)
    peak = desk.peak("peak", one, "rule_of_thumb.prefill_s P")
    arithmetic = desk.made("arithmetic", "time of the arithmetic", "s", flops, "÷", peak, digits=3)
    weights = desk.term(
        "weights", "weights, read once", one, inputs.prefill_weights_bytes, "rule_of_thumb.prefill_s W", "B"
    )
    bandwidth = desk.bandwidth("bandwidth", one, "rule_of_thumb.prefill_s BW")
    reading = desk.made("reading", "time of one reading", "s", weights, "÷", bandwidth, digits=3)
    desk.read("time", "the prefill", one, "rule_of_thumb.prefill_s", "s", 3)
    desk.made("intensity", "arithmetic for each byte read", "FLOP/B", flops, "÷", weights, digits=4)
    attention = _attention(desk, one)
    desk.read("ceiling", "the prefill, operator by operator", one, "prefill.ceiling_s", "s", 3)
    return Chapter(
        "prefill",
        "Prefill: reading the question",
        desk.numbers,
        one,
        says={
            "by_arithmetic": arithmetic.value >= reading.value,
            "has_experts": one.deployment.architecture.has_experts,
            "has_attention": attention.value > 0,
            "hit": one.deployment.workload.cached_prompt_tokens > 0,
            "is_single": one.deployment.workload.prompt_tokens == 1,
            "is_rule_of_thumb_above": rule.prefill_s >= one.evaluation.measures.prefill.ceiling_s,
        },
    )


def _attention(desk: Desk, one: Case) -> LiveNumber:
    """How much of the prefill's arithmetic the rule of thumb leaves out: scores and values of token pairs."""
    cost = one.evaluation.measures.prefill
    flops = sum(op.flops for op in cost.operators if op.name is OperatorName.ATTENTION)
    source = "roofline.points[prefill, scores_and_values].flops ÷ prefill.flops"
    return desk.given(
        "attention", "share of attention in the arithmetic", flops / cost.flops, PERCENT, source, 2, one.key
    )


def decode(cases: Cases) -> Chapter:
    """The answer comes token by token: every token waits for one reading of the weights."""
    desk, one = Desk("decode"), cases.one
    inputs = one.inputs
    weights = desk.term(
        "weights", "weights that one token needs", one, inputs.step_weights_bytes, "rule_of_thumb.decode_step_s W", "B"
    )
    bandwidth = desk.bandwidth("bandwidth", one, "rule_of_thumb.decode_step_s BW")
    two = desk.given("two", "FLOP a weight", FLOPS_PER_MULTIPLY_ADD, COUNT, _TWO_N)
    params = desk.parameters("params", one)
    peak = desk.peak("peak", one, "rule_of_thumb.decode_step_s P")
    reading = desk.made("reading", "time of the reading", "s", weights, "÷", bandwidth, digits=3)
    arithmetic = desk.made("arithmetic", "time of the arithmetic", MILLISECONDS, two, "×", params, "÷", peak, digits=3)
    by_memory = reading.value >= arithmetic.value
    sum_ = (weights, "÷", bandwidth) if by_memory else (two, "×", params, "÷", peak)
    step = desk.shown("step", "one token", one, "rule_of_thumb.decode_step_s", "s", *sum_, digits=3)
    token = desk.given("token", "token", 1, COUNT, "definition")
    rate = desk.shown(
        "rate", "tokens a second", one, "rule_of_thumb.decode_tokens_per_s", "tokens/s", token, "÷", step, digits=4
    )
    _idle(desk, one, arithmetic, step)
    allowed = desk.made(
        "allowed", "what arithmetic alone would allow", "tokens/s", peak, "÷", "(", two, "×", params, ")", digits=3
    )
    desk.made("times", "times as much as one user gets", TIMES, allowed, "÷", rate, digits=3)
    desk.given(
        "all_weights", "all weights", inputs.weights_bytes, "B", "term rule_of_thumb.kv_capacity_tokens W", 4, one.key
    )
    return Chapter(
        "decode",
        "Decode: writing the answer",
        desk.numbers,
        one,
        says={
            "by_memory": by_memory,
            "has_experts": one.deployment.architecture.has_experts and weights.value < 0.99 * inputs.weights_bytes,
        },
    )


def _idle(desk: Desk, one: Case, arithmetic: LiveNumber, step: LiveNumber) -> None:
    """The share of a step in which the arithmetic waits."""
    whole = desk.given("whole", "all", 1, COUNT, "definition")
    label, path = "share of the step in which the arithmetic waits", "rule_of_thumb.compute_idle_fraction"
    desk.shown("idle", label, one, path, PERCENT, whole, "−", arithmetic, "÷", step)


def ridge(cases: Cases) -> Chapter:
    """Peak over bandwidth, and where the two phases stand beside it."""
    desk, one = Desk("ridge"), cases.one
    peak = desk.peak("peak", one, "rule_of_thumb.ridge_flops_per_byte P")
    bandwidth = desk.bandwidth("bandwidth", one, "rule_of_thumb.ridge_flops_per_byte BW")
    at = desk.shown(
        "ridge", "the ridge point", one, "rule_of_thumb.ridge_flops_per_byte", "FLOP/B", peak, "÷", bandwidth
    )
    of_decode, of_prefill = _intensities(desk, one)
    desk.made("short", "times too few FLOP for a byte", TIMES, at, "÷", of_decode, digits=3)
    desk.made("over", "times as many as the ridge", TIMES, of_prefill, "÷", at, digits=3)
    two, params, weights = (desk.numbers[key] for key in ("two", "params", "weights"))
    bytes_each = desk.made("bytes_each", "bytes of a parameter", "B", weights, "÷", params, digits=3)
    return Chapter(
        "ridge",
        "The wall in one number",
        desk.numbers,
        cases.crowd,
        says={
            "decode_below": of_decode.value < at.value,
            "prefill_above": of_prefill.value >= at.value,
            "compute": one.deployment.precision.compute.value,
            "is_plain": abs(bytes_each.value - 2) < 0.01 and all_step_bytes(one) == one.inputs.step_weights_bytes,
            "doubled_step_same": time_s(two.value * params.value, weights.value, 2 * peak.value, bandwidth.value)
            == one.rule.decode_step_s,
        },
        charts={"roofline": roofline_chart(cases.crowd.evaluation)},
    )


def _intensities(desk: Desk, one: Case) -> tuple[LiveNumber, LiveNumber]:
    """FLOP that each phase brings for a byte: decode of one user, and the prefill of one prompt."""
    two = desk.given("two", "FLOP a weight", FLOPS_PER_MULTIPLY_ADD, COUNT, _TWO_N)
    params = desk.parameters("params", one)
    step_bytes, prefill_bytes = one.inputs.step_weights_bytes, one.inputs.prefill_weights_bytes
    label = "bytes read for it"
    weights = desk.term("weights", label, one, step_bytes, "rule_of_thumb.decode_step_s W", "B")
    path = "rule_of_thumb.decode_intensity_flops_per_byte"
    parts = (two, "×", params, "÷", weights)
    of_decode = desk.shown("of_decode", "FLOP for a byte in decode", one, path, "FLOP/B", *parts, digits=3)
    flops = desk.read("prefill_flops", "arithmetic of the prefill", one, "rule_of_thumb.prefill_flops", "FLOP")
    read = desk.term("prefill_weights", label, one, prefill_bytes, "rule_of_thumb.prefill_s W", "B")
    return of_decode, desk.made("of_prefill", "FLOP for a byte in prefill", "FLOP/B", flops, "÷", read, digits=4)
