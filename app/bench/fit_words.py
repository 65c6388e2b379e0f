"""A fit in words: the factors, how sure they are, and what they are worth on runs that were not looked at."""

import math

from app.bench.fit import FitReport, HeldOut, SideFit
from app.bench.spread import FEWEST
from app.calc.notation import significant

_SURE = 0.9
_DIGITS = 3
_LEAST_TOLD = 1.005


def sentences(report: FitReport) -> list[str]:
    """All that is to be known of a fit, the most important first."""
    if report.calibration is None:
        return ["No run has a time per output token, a time to the first token or a bare rate: nothing can be fitted."]
    found = []
    for what, side in (("Decode", report.decode), ("Prefill", report.prefill)):
        if side is not None:
            found += _side(what, side)
    found.append(held_out_words(report.held_out))
    if report.used < report.runs:
        found.append(f"Of {report.runs:,} runs {report.used:,} were fitted to, taken evenly.")
    return found


def off(error: float) -> str:
    """A log error as how far off: 0.095 is "10 %", 1.1 is "a factor of 3"."""
    factor = math.exp(error)
    if factor < _LEAST_TOLD:
        return "less than 1 %"
    return f"{100 * (factor - 1):.0f} %" if factor < 2 else f"a factor of {significant(factor, 2)}"


def held_out_words(held: HeldOut | None) -> str:
    """What the fit is worth on a half of the runs that it had not seen."""
    if held is None:
        return "With one run there is no other to try the fit on."
    better = held.fitted_error < held.default_error
    verdict = "" if better else " On these runs the fit is no better than the default: do not rely on it."
    runs = "run" if held.judged == 1 else f"{held.judged:,} runs"
    return (
        f"Tried on the {runs} that a fit to the other {held.fitted:,} had not seen: times typically off by "
        f"{off(held.fitted_error)}, without it by {off(held.default_error)}.{verdict}"
    )


def _side(what: str, side: SideFit) -> list[str]:
    factor, several = side.factor, side.at_ceiling > 1
    points = "1 point" if factor.points == 1 else f"{factor.points:,} points"
    times = significant(factor.factor, _DIGITS)
    found = [f"{what} times are {times} times those of the default ({points}). {_reach(side)}"]
    if side.left_out_error is not None:
        found.append(
            f"{what} times predicted from the other runs are typically off by {off(side.left_out_error)}, without the "
            f"fit by {off(side.default_error)}."
        )
    if side.believed < _SURE:
        weight = f"{100 * (1 - side.believed):.0f} % of the weight is the default’s"
        found.append(f"The points say little of {what.lower()} times: {weight}.")
    if side.at_ceiling:
        beat = (
            f"{side.at_ceiling:,} times beat their ceilings and are" if several else "1 time beats its ceiling and is"
        )
        found.append(
            f"{beat} counted at it: no factor goes beyond. Look whether model, precision, hardware and its number, "
            "prefix cache and speculation are those of the benchmark."
        )
    if side.is_stuck:
        found.append(f"Expected {what.lower()} times stand at what no software beats, and follow no factor any more.")
    return found


def _reach(side: SideFit) -> str:
    low, high = side.factor.low, side.factor.high
    if low is not None and high is not None:
        return f"Eight new ones of ten will lie between {_signed(low)} and {_signed(high)} of that."
    if side.factor.points < FEWEST:
        return f"An interval is told from {FEWEST} points on."
    return "The points are too far apart for an interval."


def _signed(multiple: float) -> str:
    share = 100 * (multiple - 1)
    return f"{'+' if share >= 0 else '−'}{abs(share):.0f} %"
