"""Whether vLLM charged the CUDA graphs, and whether the parts it names add up to its budget."""

import re

from app.startup_log.log_format import Heard

_GIB = 2.0**30
_TOLERANCE = 0.05 * _GIB  # five figures of two decimals
_DISAGREEMENT = 0.01  # of the budget
_FIRST_CHARGED = (0, 21)
_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_SAYS_SO = "CUDA graph memory profiling is enabled"


def graph_charge(
    heard: Heard,
    weights: float | None,
    activation: float | None,
    outside: float | None,
    pool: float,
    rank: str | None,
) -> float | None:
    """The estimate that was taken from the budget for graphs, bytes: 0 where none was, None where nothing tells.

    What the parts leave of the budget decides. Without them it is what the log or the release says: from 0.21 on the
    estimate is charged.
    """
    estimate, budget = heard.run.of_rank(rank, "graphs_estimated"), heard.run.of_rank(rank, "budget")
    parts = (weights, activation, outside)
    if budget is not None and all(part is not None for part in parts):
        left = budget - pool - sum(part for part in parts if part is not None)
        if abs(left) <= _TOLERANCE:
            return 0.0
        if estimate is not None and abs(left - estimate) <= _TOLERANCE:
            return estimate
    if estimate is not None and _SAYS_SO in heard.run.text:
        return estimate
    release = _RELEASE.match(heard.release or "")
    if release is None:
        return None
    if (int(release[1]), int(release[2])) < _FIRST_CHARGED:
        return 0.0
    return estimate


def graphs_outside(heard: Heard, rank: str | None) -> float:
    """Graphs that were captured and not charged, because the release charges none; 0 where it does, or none were."""
    release = _RELEASE.match(heard.release or "")
    if release is None or (int(release[1]), int(release[2])) >= _FIRST_CHARGED:
        return 0.0
    return heard.run.of_rank(rank, "graphs") or 0.0


def check_budget(heard: Heard, parts: tuple[float | None, ...], rank: str | None) -> None:
    """Note where weights, activations, the rest, pool and graphs are not the budget."""
    budget, known = heard.run.of_rank(rank, "budget"), [part for part in parts if part is not None]
    if budget is None or len(known) < len(parts):
        return
    if abs(sum(known) - budget) > max(_DISAGREEMENT * budget, 2 * _TOLERANCE):
        heard.findings.note(
            f"The parts that the log names add up to {sum(known) / _GIB:.2f} GiB, but its budget is "
            f"{budget / _GIB:.2f} GiB."
        )
