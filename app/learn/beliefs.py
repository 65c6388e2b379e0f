"""Chapter eleven: five beliefs, each beside the number that decides it for the reader's own case."""

from app.calc.broadcast import scalar
from app.calc.rule_of_thumb import decode_step_s
from app.learn.cases import Cases
from app.learn.chapter import Chapter
from app.learn.desk import EXACT, Desk
from app.learn.number import COUNT, PERCENT, TIMES, LiveNumber

_SAME = 1.01
_FORMULA = "the formula of rule_of_thumb.decode_step_s"


def beliefs(cases: Cases, of_decode: LiveNumber, of_prefill: LiveNumber, ridge: LiveNumber) -> Chapter:
    """What is doubled, lengthened or shared, and what it does to a user."""
    desk = Desk("beliefs")
    chip = _faster_chip(desk, cases)
    prompts = _long_prompts(desk, cases)
    waiting = _waiting(desk, cases)
    return Chapter(
        "beliefs",
        "Five wrong beliefs",
        desk.numbers,
        cases.wordy,
        says={
            **chip,
            **prompts,
            **waiting,
            "same_side": (of_decode.value < ridge.value) == (of_prefill.value < ridge.value),
            "both_below": of_prefill.value < ridge.value,
        },
    )


def _faster_chip(desk: Desk, cases: Cases) -> dict[str, bool]:
    """One user's step with the arithmetic doubled, and with the bandwidth doubled."""
    one, inputs = cases.one, cases.one.inputs

    def step(arithmetic: float, bandwidth: float) -> float:
        return scalar(
            decode_step_s(
                inputs.step_weights_bytes,
                inputs.n_params,
                one.batch,
                arithmetic * inputs.peak_flops_per_s,
                bandwidth * inputs.bandwidth_bytes_per_s,
            )
        )

    now = desk.read("now", "a step of one user", one, "rule_of_thumb.decode_step_s", "s", 3)
    arithmetic = desk.given(
        "twice_arithmetic", "the same with twice the arithmetic", step(2, 1), "s", _FORMULA, 3, "one"
    )
    bandwidth = desk.given("twice_bandwidth", "the same with twice the bandwidth", step(1, 2), "s", _FORMULA, 3, "one")
    return {
        "arithmetic_idle": now.value < _SAME * arithmetic.value,
        "bandwidth_helps": now.value > _SAME * bandwidth.value,
    }


def _long_prompts(desk: Desk, cases: Cases) -> dict[str, bool]:
    """The crowd's step and room with prompts several times as long."""
    crowd, wordy = cases.crowd, cases.wordy
    desk.tokens("prompt", "tokens of a prompt", crowd, "prompt_tokens")
    desk.tokens("long_prompt", "tokens of a long prompt", wordy, "prompt_tokens")
    desk.given("users", "users", crowd.batch, COUNT, "decode.concurrency", EXACT, crowd.key)
    before = desk.read("step", "a step with the cache", crowd, "rule_of_thumb.kv_step_s", "s", 3)
    after = desk.read("long_step", "the same with long prompts", wordy, "rule_of_thumb.kv_step_s", "s", 3)
    room = desk.read("room", "users that find room", crowd, "rule_of_thumb.kv_capacity_users", COUNT, EXACT)
    long_room = desk.read(
        "long_room", "the same with long prompts", wordy, "rule_of_thumb.kv_capacity_users", COUNT, EXACT
    )
    desk.made("longer", "times as long a step", TIMES, after, "÷", before, digits=3)
    return {
        "steps_lengthen": after.value > _SAME * before.value,
        "room_shrinks": long_room.value < room.value,
        "nobody_fits": room.value == 0,
    }


def _waiting(desk: Desk, cases: Cases) -> dict[str, bool]:
    """One user alone against one of the crowd, weights alone and with the cache."""
    one, crowd = cases.one, cases.crowd
    alone = desk.read("alone", "a step of one user", one, "rule_of_thumb.decode_step_s", "s", 3)
    shared = desk.read("shared", "a step of the crowd, weights alone", crowd, "rule_of_thumb.decode_step_s", "s", 3)
    cached = desk.read("cached", "a step of the crowd with its caches", crowd, "rule_of_thumb.kv_step_s", "s", 3)
    desk.made("wait", "what sharing costs a user", TIMES, shared, "÷", alone, digits=3)
    desk.made("served", "times the tokens for all", TIMES, desk.numbers["users"], "×", alone, "÷", shared, digits=3)
    part = desk.made("of_cache", "part of the step that is cache", "s", cached, "−", shared, digits=3)
    desk.made("of_cache_share", "share of the step that is cache", PERCENT, part, "÷", cached, digits=2)
    return {
        "no_wait": shared.value < _SAME * alone.value,
        "cache_counts": cached.value > _SAME * shared.value,
        "has_experts": crowd.deployment.architecture.has_experts,
        "by_arithmetic": crowd.inputs.step_weights_bytes / crowd.inputs.bandwidth_bytes_per_s < shared.value / _SAME,
    }
