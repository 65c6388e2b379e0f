"""Chapters five and six: what users share in a step, and what each keeps for himself."""

import re

from app.calc.broadcast import scalar
from app.calc.derivation import SYMBOL
from app.calc.memory.cache import cache_shape
from app.calc.model.attention_variants import multi_head_bytes_per_sequence
from app.calc.model.layers.parts import FLOPS_PER_MULTIPLY_ADD
from app.calc.model.layers.span import Full
from app.features.learn.case import EXACT, Case, Cases, Chapter, Desk, all_step_bytes
from app.features.learn.charts import pace_chart, reads_chart
from app.features.learn.number import BINARY_BYTES, COUNT, PERCENT, TIMES, LiveNumber, Part
from app.features.workbench.charts.sweeps import context_chart

_TWO_N = "two FLOPs a parameter a token: Kaplan et al. 2020, section 2.1"
_SAME = 1.001
_NEARLY = 0.95
_MOST_PIECES = 15


def batching(cases: Cases) -> Chapter:
    """One reading of the weights serves everyone in the step, until the arithmetic takes as long."""
    desk, one, crowd = Desk("batching"), cases.one, cases.crowd
    two = desk.given("two", "FLOP a weight", FLOPS_PER_MULTIPLY_ADD, COUNT, _TWO_N)
    params = desk.parameters("params", crowd)
    peak = desk.peak("peak", crowd, "rule_of_thumb.decode_step_s P")
    bandwidth = desk.bandwidth("bandwidth", crowd, "rule_of_thumb.decode_step_s BW")
    alone = desk.read("alone", "a step of one user", one, "rule_of_thumb.decode_step_s", "s", 3)
    desk.read("alone_rate", "what one user gets", one, "rule_of_thumb.decode_tokens_per_s", "tokens/s")
    step, rate = _crowd(desk, "", crowd, two, params, peak, bandwidth)
    token = desk.given("one_token", "token", 1, COUNT, "definition")
    desk.made("each", "tokens a second of each", "tokens/s", token, "÷", step)
    everything, ridge = _ridge(desk, crowd)
    past_step, past_rate = _crowd(desk, "past_", cases.past, two, params, peak, bandwidth)
    desk.made("past_each", "tokens a second of each", "tokens/s", token, "÷", past_step, digits=3)
    desk.made("gain", "times the tokens of one user", TIMES, rate, "÷", desk.numbers["alone_rate"], digits=3)
    return Chapter(
        "batching",
        "Batching: one reading for many",
        desk.numbers,
        crowd,
        says={
            "is_level": step.value <= _SAME * alone.value,
            "beyond": crowd.batch > ridge.value,
            "has_experts": crowd.deployment.architecture.has_experts,
            "past_by_arithmetic": past_step.value > _SAME * everything.value / bandwidth.value,
            "past_rate_higher": past_rate.value > rate.value,
            "is_saturated": cases.asked.scenario.workload.concurrency is None,
            "is_sample": cases.asked.batch == 1,
        },
        charts={"pace": pace_chart(crowd.evaluation)},
    )


def _ridge(desk: Desk, crowd: Case) -> tuple[LiveNumber, LiveNumber]:
    """All weights that steps read, and the users whose arithmetic lasts as long as reading them."""
    two, params, peak, bandwidth = (desk.numbers[key] for key in ("two", "params", "peak", "bandwidth"))
    source = "term rule_of_thumb.decode_step_s W, in a large batch"
    everything = desk.given(
        "everything", "all weights that steps read", all_step_bytes(crowd), "B", source, 4, crowd.key
    )
    parts = (everything, "÷", bandwidth, "×", peak, "÷", "(", two, "×", params, ")")
    return everything, desk.made("ridge_users", "users at the ridge", COUNT, *parts, digits=3)


def _crowd(
    desk: Desk, prefix: str, case: Case, two: LiveNumber, params: LiveNumber, peak: LiveNumber, bandwidth: LiveNumber
) -> tuple[LiveNumber, LiveNumber]:
    """Step and rate of a batch, with the side of the sum that binds."""
    users = desk.given(f"{prefix}users", "users", case.batch, COUNT, "decode.concurrency", EXACT, case.key)
    weights = desk.term(
        f"{prefix}weights",
        "weights a step reads",
        case,
        case.inputs.step_weights_bytes,
        "rule_of_thumb.decode_step_s W",
        "B",
    )
    reading = desk.made(f"{prefix}reading", "time of the reading", "s", weights, "÷", bandwidth, digits=3)
    arithmetic = desk.made(
        f"{prefix}arithmetic", "time of the arithmetic", "s", two, "×", params, "×", users, "÷", peak, digits=3
    )
    parts: tuple[Part, ...] = (weights, "÷", bandwidth)
    if arithmetic.value > reading.value:
        parts = (two, "×", params, "×", users, "÷", peak)
    step = desk.shown(f"{prefix}step", "one step", case, "rule_of_thumb.decode_step_s", "s", *parts, digits=3)
    rate = desk.shown(
        f"{prefix}rate",
        "tokens a second, all users",
        case,
        "rule_of_thumb.decode_tokens_per_s",
        "tokens/s",
        users,
        "÷",
        step,
        digits=3 if prefix else 4,
    )
    return step, rate


def _shared(of: Case) -> int:
    return of.scenario.workload.shared_prefix_tokens


def cache(cases: Cases) -> Chapter:
    """What each conversation keeps, how many find room, and what it adds to every step."""
    desk, chats = Desk("cache"), cases.chats
    shape = cache_shape(chats.deployment.architecture)
    factors = _factors(desk, chats)
    desk.given("state", "state of one user", shape.state_bytes, "B", "memory.state_bytes_per_sequence", 4, chats.key)
    _kept(desk, cases, factors)
    kv_step = _step_with_cache(desk, chats, desk.numbers["chat_bytes"])
    numbers = desk.numbers
    return Chapter(
        "cache",
        "The cache: what each conversation keeps",
        numbers,
        chats,
        says={
            "grows": bool(shape.terms),
            "has_state": bool(shape.states),
            "is_windowed": any(not isinstance(term.span, Full) for term in shape.terms),
            "is_product": bool(factors),
            "is_binary": numbers["token"].value % 1024 == 0,
            "saves": "multi_head_times" in numbers and numbers["multi_head_times"].value > 1 / _NEARLY,
            "working": next(e for e in chats.evaluation.explanations if e.id == "memory.kv_bytes_per_sequence"),
            "labels": sorted({term.label for term in shape.terms}),
            "weights_fit": chats.inputs.weights_bytes < chats.inputs.memory_bytes,
            "crowd_fits": chats.rule.kv_capacity_users >= chats.batch,
            "limit_known": chats.deployment.architecture.max_position is not None,
            "is_prefix_cut": _shared(chats) < _shared(cases.asked),
            "beyond_limit": cases.chat_tokens > numbers["limit"].value,
            "by_memory": kv_step.parts[0] is numbers["step_weights"] or kv_step.parts[0] == "(",
            "is_slower": numbers["fraction"].value < 1 / _SAME,
            "cache_is_larger": numbers["over_weights"].value > 1,
        },
        charts={"reads": reads_chart(chats.evaluation), "context": context_chart(chats.evaluation)},
    )


def _kept(desk: Desk, cases: Cases, factors: tuple[Part, ...]) -> None:
    """The cache of one token, of one conversation and of the longest; then what finds room."""
    chats, longest = cases.chats, cases.longest
    path, sequence = "rule_of_thumb.kv_bytes_per_token", "memory.kv_bytes_per_sequence"
    digits = EXACT if factors else 4
    token = desk.shown("token", "cache of one token", chats, path, "B", *factors, digits=digits)
    desk.given("token_binary", "the same in KiB", token.value, BINARY_BYTES, path, 4, chats.key)
    length = desk.given("length", "tokens", cases.chat_tokens, "tokens", "the length asked for", EXACT)
    label = "cache of one conversation"
    chat = desk.shown("chat", label, chats, sequence, BINARY_BYTES, token, "×", length)
    desk.given("chat_bytes", label, chat.value, "B", sequence, 4, chats.key)
    tokens, source = longest.deployment.workload.total_tokens, "scenario.workload.prompt_tokens + output_tokens"
    desk.given("limit", "tokens at the model's limit", tokens, "tokens", source, EXACT, longest.key)
    desk.read("limit_bytes", "cache of one such context", longest, sequence, BINARY_BYTES)
    _saved(desk, chats)
    _room(desk, chats, token, length)


def _saved(desk: Desk, chats: Case) -> None:
    """How many times the cache would be, had every head a key and a value of its own."""
    deployment = chats.deployment
    tokens = deployment.workload.total_tokens
    plain = multi_head_bytes_per_sequence(deployment.architecture, tokens, deployment.precision.kv_cache)
    chat = desk.numbers["chat_bytes"]
    if plain is None or not chat.value:
        return
    label = "cache with a key and a value for every head"
    whole = desk.given("multi_head", label, scalar(plain), "B", "shapes of the heads", 4, chats.key)
    desk.made("multi_head_times", "times as much", TIMES, whole, "÷", chat, digits=3)


def _factors(desk: Desk, chats: Case) -> tuple[Part, ...]:
    """The working of one token's cache as a product of a few numbers; empty where it is no such product."""
    working = next(e for e in chats.evaluation.explanations if e.id == "memory.kv_bytes_per_sequence")
    symbols = {term.symbol: term for term in working.terms}
    pieces = [piece.strip() for piece in re.split(rf"({SYMBOL.pattern}|[×+()])", working.formula) if piece.strip()]
    factors = pieces[:-2]
    if pieces[-2:] != ["×", "c"] or "c" in factors or len(factors) > _MOST_PIECES or _adds_outside(factors):
        return ()
    parts = list[Part]()
    for piece in factors:
        if piece in ("×", "+", "(", ")"):
            parts.append(piece)
        elif piece in symbols:
            term = symbols[piece]
            at = f"{working.id} {piece}"
            parts.append(desk.term(f"factor_{piece}", term.label, chats, term.value, at, term.unit, EXACT))
        elif piece.isdigit():
            parts.append(desk.given("pair", "key and value", float(piece), COUNT, "a key and a value"))
        else:
            return ()
    return tuple(parts)


def _adds_outside(pieces: list[str]) -> bool:
    """Whether a sum stands outside brackets, so that the whole is no product."""
    depth = 0
    for piece in pieces:
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "+" and depth == 0:
            return True
    return False


def _room(desk: Desk, chats: Case, token: LiveNumber, length: LiveNumber) -> None:
    """Tokens and users that find room beside the weights, by the number on the box."""
    box = desk.term(
        "box", "memory on the box", chats, chats.inputs.memory_bytes, "rule_of_thumb.kv_capacity_tokens M", "B", 4
    )
    weights = desk.term(
        "weights", "all weights", chats, chats.inputs.weights_bytes, "rule_of_thumb.kv_capacity_tokens W", "B", 4
    )
    path = "rule_of_thumb.kv_capacity_tokens"
    parts: tuple[Part, ...] = ()
    if token.value > 0 and chats.rule.kv_capacity_tokens > 0:
        parts = ("(", box, "−", weights, ")", "÷", token)
    room = desk.shown("room", "tokens of cache that find room", chats, path, "tokens", *parts, digits=4)
    users_parts: tuple[Part, ...] = (room, "÷", length) if parts else ()
    desk.shown(
        "room_users",
        "users at that length",
        chats,
        "rule_of_thumb.kv_capacity_users",
        COUNT,
        *users_parts,
        digits=EXACT,
    )
    if weights.value > box.value:
        desk.made("missing", "missing for the weights alone", "B", weights, "−", box)


def _step_with_cache(desk: Desk, chats: Case, chat: LiveNumber) -> LiveNumber:
    """One step of the crowd with every conversation's cache read, and what is left of the naive rate."""
    users = desk.given("users", "users", chats.batch, COUNT, "decode.concurrency", EXACT, chats.key)
    weights = desk.term(
        "step_weights", "weights", chats, chats.inputs.step_weights_bytes, "rule_of_thumb.kv_step_s W", "B"
    )
    all_cache = desk.made("all_cache", "cache of all", "B", users, "×", chat)
    bandwidth = desk.bandwidth("bandwidth", chats, "rule_of_thumb.kv_step_s BW")
    parts: tuple[Part, ...] = ("(", weights, "+", all_cache, ")", "÷", bandwidth)
    arithmetic_s = FLOPS_PER_MULTIPLY_ADD * chats.inputs.n_params * chats.batch / chats.inputs.peak_flops_per_s
    if arithmetic_s > (weights.value + all_cache.value) / bandwidth.value:
        two = desk.given("two", "FLOP a weight", FLOPS_PER_MULTIPLY_ADD, COUNT, _TWO_N)
        peak = desk.peak("peak", chats, "rule_of_thumb.kv_step_s P")
        parts = (two, "×", desk.parameters("params", chats), "×", users, "÷", peak)
    step = desk.shown("kv_step", "one step with the cache", chats, "rule_of_thumb.kv_step_s", "s", *parts)
    rate = desk.shown(
        "kv_rate",
        "tokens a second with the cache",
        chats,
        "rule_of_thumb.kv_tokens_per_s",
        "tokens/s",
        users,
        "÷",
        step,
    )
    naive = desk.read("naive", "the same, weights alone", chats, "rule_of_thumb.decode_tokens_per_s", "tokens/s")
    desk.made("fraction", "what is left of the naive rate", PERCENT, rate, "÷", naive, digits=2)
    desk.made("over_weights", "cache over weights", TIMES, all_cache, "÷", weights, digits=2)
    desk.made("share_of_weights", "cache over weights", PERCENT, all_cache, "÷", weights, digits=2)
    token = desk.given("one_token", "token", 1, COUNT, "definition")
    desk.made("each", "tokens a second of each", "tokens/s", token, "÷", step, digits=3)
    desk.read("step_alone", "one step, weights alone", chats, "rule_of_thumb.decode_step_s", "s", 3)
    return step
