"""Chapter seven: what a server is measured by, and three levels of answer beside each other."""

from typing import Any

from app.calc.accelerator import Bound
from app.calc.time.goodput import LIMIT_WORDS
from app.features.learn.case import EXACT, Case, Cases, Chapter, Desk
from app.features.learn.number import COUNT, PERCENT, TIMES, LiveNumber
from app.features.learn.published import Published, promises
from app.features.workbench.charts.times import CAUSES, gap_chart

_NEARLY = 0.95
_MOSTLY_WAITING = 2.0


def measuring(cases: Cases, published: Published) -> Chapter:
    """The scenario as asked: rule of thumb, ceiling and expected, the shares of the peaks, and the gap by cause."""
    desk, asked = Desk("measuring"), cases.asked
    measures, expected = asked.evaluation.measures, asked.evaluation.measures.expected
    desk.given(
        "users", "users at a time", measures.memory.running_sequences, COUNT, "decode.concurrency", EXACT, "asked"
    )
    _levels(desk, asked)
    served = measures.memory.served_sequences == measures.memory.running_sequences
    if expected is not None and served:
        _shares(desk, asked)
    good = _goodput(desk, cases, published)
    gap = _gap(desk, asked)
    return Chapter(
        "measuring",
        "Measuring: what a server is judged by",
        desk.numbers,
        asked,
        says={
            "is_calibrated": expected is not None,
            "has_shares": expected is not None and served,
            "refused": (expected and expected.refused) or "",
            "unclaimed": (expected and expected.unclaimed) or "",
            "has_interval": measures.serving.tpot_s.low is not None,
            "decode_by_memory": measures.decode.bound is not Bound.COMPUTE,
            "prefill_by_arithmetic": measures.prefill.bound is Bound.COMPUTE,
            **gap,
            **good,
            "rows": _rows(desk),
        },
        charts={"gap": gap_chart(asked.evaluation)},
    )


def _gap(desk: Desk, asked: Case) -> dict[str, Any]:
    """What makes a token slower than its ceiling, and whether the first one mostly waits for others."""
    expected, numbers = asked.evaluation.measures.expected, desk.numbers
    if expected is None:
        return {"has_gap": False, "cause": "", "is_queueing": False}
    largest, cause = max((getattr(expected.causes, key), name) for key, name, *_ in CAUSES[1:])
    if largest > 0:
        desk.given("largest", "the largest part of the gap", largest, "s", "expected.tpot_causes_s", 3, "asked")
        parts = (numbers["tpot_expected"], "÷", numbers["tpot_ceiling"])
        desk.made("gap", "expected over ceiling", TIMES, *parts, digits=3)
    first = numbers.get("ttft_expected")
    many = numbers["users"].value > 1
    waits = many and first is not None and first.value > _MOSTLY_WAITING * numbers["ttft_ceiling"].value
    return {"has_gap": largest > 0, "cause": cause.lower(), "is_queueing": waits}


_ROWS = (
    ("Time to first token", "prefill_rule", "ttft_ceiling", "ttft_expected"),
    ("Time for each further token", "tpot_rule", "tpot_ceiling", "tpot_expected"),
    ("The whole answer", "whole_rule", "whole_ceiling", "whole_expected"),
    ("All users, tokens a second", "rate_rule", "rate_ceiling", "rate_expected"),
)


_LEVELS = ("is-rule", "is-ceiling", "is-expected")


def _rows(desk: Desk) -> list[tuple[str, list[tuple[str, LiveNumber | None]]]]:
    """The lines of the table: the three levels of one quantity, each with its look; None where one has none."""
    return [
        (label, [(level, desk.numbers.get(key)) for level, key in zip(_LEVELS, keys, strict=True)])
        for label, *keys in _ROWS
    ]


def _levels(desk: Desk, asked: Case) -> None:
    desk.read("prefill_rule", "prefill by rule of thumb", asked, "rule_of_thumb.prefill_s", "s", 3)
    desk.read("tpot_rule", "a step with the cache by rule of thumb", asked, "rule_of_thumb.kv_step_s", "s", 3)
    desk.read("whole_rule", "the whole answer by rule of thumb", asked, "rule_of_thumb.total_latency_s", "s", 3)
    desk.read("rate_rule", "tokens a second by rule of thumb", asked, "rule_of_thumb.kv_tokens_per_s", "tokens/s", 3)
    for key, label, path, unit in (
        ("ttft", "time to first token", "ttft_s", "s"),
        ("tpot", "time per output token", "tpot_s", "s"),
        ("whole", "the whole answer", "total_latency_s", "s"),
        ("rate", "tokens a second", "output_tokens_per_s", "tokens/s"),
    ):
        desk.read(f"{key}_ceiling", f"{label}, ceiling", asked, f"serving.{path}.ceiling", unit, 3)
        estimate = getattr(asked.evaluation.measures.serving, path)
        for level in ("low", "mid", "high"):
            if getattr(estimate, level) is not None:
                name = "expected" if level == "mid" else level
                desk.read(f"{key}_{name}", f"{label}, {name}", asked, f"serving.{path}.{level}", unit, 3)


def _goodput(desk: Desk, cases: Cases, published: Published) -> dict[str, Any]:
    """What passes with the room full, and what of it keeps both promises; what the best load for them is."""
    promises(desk, cases.asked, published)
    promised = cases.promised
    found = promised.evaluation.goodput
    if found is None:
        room = promised.evaluation.measures.memory.max_concurrency
        return {"has_goodput": False, "no_room": room < 1}
    key = promised.key
    desk.given(
        "full",
        "users with the room full",
        float(found.load.concurrency[-1]),
        COUNT,
        "memory.max_concurrency",
        EXACT,
        key,
    )
    desk.read(
        "full_rate", "requests a second that pass with the room full", promised, "goodput.most_per_s", "requests/s", 3
    )
    full = float(found.load.good_per_s[-1])
    desk.given("full_good", "of these as promised", full, "requests/s", "goodput.load.good_per_s, last", 3, key)
    good = desk.read("good", "goodput", promised, "goodput.rate_per_s", "requests/s", 3)
    desk.read(
        "offered", "requests a second that pass at the best load", promised, "goodput.offered_per_s", "requests/s", 3
    )
    desk.read("attained", "share of these as promised", promised, "goodput.attained", PERCENT, 2)
    desk.read("best_users", "users at the best load", promised, "goodput.concurrency", COUNT, 2)
    return {
        "has_goodput": True,
        "is_none_good": good.value <= 0,
        "full_is_best": full > _NEARLY * good.value,
        "limit": LIMIT_WORDS[found.limiter],
    }


def _shares(desk: Desk, asked: Case) -> None:
    """MBU of a decode step and MFU of a prefill, of one GPU."""
    accelerator = asked.deployment.accelerator
    moved = desk.read("moved", "bytes of one step, one GPU", asked, "decode.bytes", "B")
    bandwidth = desk.given(
        "gpu_bandwidth",
        "its bandwidth",
        accelerator.bandwidth_bytes_per_s,
        "B/s",
        "roofline.roofs[selected].bandwidth_bytes_per_s",
        4,
        "asked",
    )
    step = desk.read("step_expected", "the step, expected", asked, "decode.expected_s.mid", "s", 4)
    desk.made("mbu", "MBU of decode", PERCENT, moved, "÷", bandwidth, "÷", step, digits=2)
    flops = desk.read("flops", "arithmetic of one prefill, one GPU", asked, "prefill.flops", "FLOP")
    peak = desk.given(
        "gpu_peak",
        "its peak",
        accelerator.peak(asked.deployment.precision.compute),
        "FLOP/s",
        "roofline.roofs[selected].peak_flops_per_s",
        4,
        "asked",
    )
    prefill = desk.read("prefill_expected", "the prefill, expected", asked, "prefill.expected_s.mid", "s", 4)
    desk.made("mfu", "MFU of prefill", PERCENT, flops, "÷", peak, "÷", prefill, digits=2)
    step_flops = desk.read("step_flops", "arithmetic of one step, one GPU", asked, "decode.flops", "FLOP")
    desk.made("mfu_decode", "MFU of decode", PERCENT, step_flops, "÷", peak, "÷", step, digits=2)
