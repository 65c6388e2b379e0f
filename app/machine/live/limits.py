"""What holds a running server back now, in one sentence, from what was measured; the prediction has the second word."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.calc.evaluate import Evaluation
from app.calc.verdict import LIMITER_WORDS, Limiter
from app.machine.live.predicted import mean_percent, measured_mbu, measured_mfu
from app.machine.probes.accelerator import CardReadings
from app.machine.probes.servers.readings import ServerReadings

FULL_CACHE = 0.9
BUSY = 0.6
"""From this share on a roof is what holds a server back: the best kernels reach 75 to 95 % of the bandwidth, and 50 to
87 % of the matrix rate."""
IMPOSSIBLE = 1.05
"""No roof is used more than wholly; a little is left to the counters."""
STALLED_S = 5.0
"""Seconds without a token after which running requests are held to stand still; a long prompt takes some."""
HARMLESS = frozenset({"idle", "application clocks", "display clocks"})


@dataclass(frozen=True, slots=True)
class Hold:
    """What is in the way: a code that clients may rely on, a sentence with the numbers it rests on."""

    code: str
    sentence: str


def hold_of(
    server: ServerReadings | None,
    cards: Sequence[CardReadings],
    found: Evaluation | None,
    own: Sequence[CardReadings] | None = None,
) -> Hold:
    """What limits the machine at this moment. `own` are those of its `cards` that work for this server alone, where
    that is not for all of them.
    """
    mine = cards if own is None else own
    return (
        _nothing_runs(server, cards)
        or _stalled(server)
        or _full(server)
        or _throttled(cards)
        or _roof(server, mine, found)
    ) or Hold("unknown", "What is read here does not tell what holds the machine back.")


def _nothing_runs(server: ServerReadings | None, cards: Sequence[CardReadings]) -> Hold | None:
    if server is not None and server.running.value is not None:
        if server.running.value < 0.5 and not server.waiting.value:
            return Hold("idle", "Nothing: no request is running.")
        return None
    busy = mean_percent([card.dram_activity_percent for card in cards])
    ran = [card.gpu_utilization_percent.value for card in cards if card.gpu_utilization_percent.value is not None]
    if cards and not any(ran) and ran and not busy:
        return Hold("idle", "Nothing: no kernel ran on any card.")
    return None


def _stalled(server: ServerReadings | None) -> Hold | None:
    """Requests run and nothing comes of them, neither tokens nor prompts."""
    if server is None or not server.running.value or (server.window_s or 0.0) < STALLED_S:
        return None
    if server.output_tokens_per_s.value != 0 or server.prompt_tokens_per_s.value:
        return None
    running = f"{server.running.value:,.0f}"
    run = "request is" if running == "1" else "requests are"
    return Hold("stalled", f"Nothing moves: {running} {run} running, and no token came in {server.window_s:.0f} s.")


def _full(server: ServerReadings | None) -> Hold | None:
    if server is None or not server.waiting.value or server.kv_cache_usage.value is None:
        return None
    if server.kv_cache_usage.value < FULL_CACHE:
        return None
    waiting = f"{server.waiting.value:,.0f}"
    wait = "request waits" if waiting == "1" else "requests wait"
    return Hold(
        "capacity",
        f"Memory capacity: the KV cache is {100 * server.kv_cache_usage.value:.0f} % full and {waiting} {wait} "
        "for room.",
    )


def _throttled(cards: Sequence[CardReadings]) -> Hold | None:
    reasons = sorted({why for card in cards for why in card.throttle_reasons.value or () if why not in HARMLESS})
    if not reasons:
        return None
    return Hold("clocks", f"The clocks are held down: {', '.join(reasons)}.")


def _roof(server: ServerReadings | None, cards: Sequence[CardReadings], found: Evaluation | None) -> Hold | None:
    if server is not None:
        moved, computed = measured_mbu(server, cards, found).reading, measured_mfu(server, cards, found).reading
        mbu, mfu = moved.value, computed.value
    else:
        dram = mean_percent([card.dram_activity_percent for card in cards])
        tensor = mean_percent([card.tensor_activity_percent for card in cards])
        mbu, mfu = (None if percent is None else percent / 100 for percent in (dram, tensor))
    if mbu is None and mfu is None:
        return _by_prediction(found) if server is not None else None
    used = f"{_percent(mbu)} of the bandwidth and {_percent(mfu)} of the arithmetic are used"
    if max(mbu or 0.0, mfu or 0.0) > IMPOSSIBLE:
        return Hold("unknown", f"{used}, which no card can do: the scenario is another one than what runs.")
    if max(mbu or 0.0, mfu or 0.0) < BUSY:
        return Hold(
            "overhead", f"Neither roof: {used}. What is left are kernel launches, the host, waits and small batches."
        )
    if (mbu or 0.0) >= (mfu or 0.0):
        return Hold("memory_bandwidth", f"Memory bandwidth: {used}.")
    return Hold("compute", f"Arithmetic: {used}.")


def _by_prediction(found: Evaluation | None) -> Hold | None:
    """Where nothing measured tells: what the same scenario spends its time on."""
    if found is None:
        return None
    limiter = found.verdict.limiter
    words = LIMITER_WORDS.get(limiter, "Memory capacity stops it")
    code = "capacity" if limiter is Limiter.CAPACITY else limiter.value
    return Hold(code, f"By the prediction, for nothing measured tells: {words[0].lower()}{words[1:]}.")


def _percent(share: float | None) -> str:
    return "an unknown share" if share is None else f"{100 * share:.0f} %"
