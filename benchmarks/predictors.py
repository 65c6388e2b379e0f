"""Predictors of serving performance side by side: the same published measurements, one table a metric.

Tokenroof as its fits had never seen the measurement (cross-validated) and as it is (in-sample), aiconfigurator at two
sizes of a step, and two rooflines to which nothing is fitted. Errors are compared over the cells that all of them
answer. Some of them stem from aiconfigurator's own end-to-end samples, on which it may have been tuned.
"""

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from app.catalog.calibration import load_cross_validated
from app.catalog.catalog import load_catalog
from app.catalog.measurements import Measurement, Metric, load_measurements
from benchmarks import aiconfigurator_client as aiconfigurator
from benchmarks import own_predictors as own
from benchmarks.aiconfigurator_questions import ENGINES
from benchmarks.own_predictors import Answers
from benchmarks.prediction_errors import Errors, errors
from benchmarks.timing import table

STEP_TOKENS = 8_192
CROSS_VALIDATED, IN_SAMPLE = "Tokenroof, cross-validated", "Tokenroof, in-sample"
ONE_PROMPT, LONG_STEPS = "aiconfigurator, a prompt a step", f"aiconfigurator, steps of {STEP_TOKENS:,}"
CEILING, THUMB = "ceiling (roofline by operator)", "weights and cache ÷ bandwidth"
METRICS = (Metric.TPOT, Metric.TTFT, Metric.OUTPUT, Metric.TOTAL)
GROUPS: Mapping[str, Callable[[Measurement], bool]] = {
    "TPOT, several requests at a time": lambda row: row.metric is Metric.TPOT and row.concurrency != "1",
    "TPOT, one request at a time": lambda row: row.metric is Metric.TPOT and row.concurrency == "1",
    "TTFT, several requests at a time": lambda row: row.metric is Metric.TTFT and row.concurrency != "1",
    "TTFT, one request at a time": lambda row: row.metric is Metric.TTFT and row.concurrency == "1",
    "Output tokens a second": lambda row: row.metric is Metric.OUTPUT,
    "Prompt and output tokens a second": lambda row: row.metric is Metric.TOTAL,
}


def cells() -> Sequence[Measurement]:
    """The measurements that every predictor is asked about."""
    return [
        row
        for row in load_measurements()
        if row.is_scored and row.engine in ENGINES and row.metric in METRICS and row.concurrency
    ]


def run() -> None:
    """Ask everyone, and print."""
    catalog, rows = load_catalog(), cells()
    rivals: dict[str, Answers] = {}
    in_sample = own.expected(rows, catalog)
    try:
        blind = load_cross_validated()
    except FileNotFoundError:
        print("Without cross-validated predictions: `make calibrate` writes them.")
    else:
        held_out = {id_: blind[id_].held_out for id_ in in_sample.predicted if id_ in blind}
        rivals[CROSS_VALIDATED] = Answers(held_out, in_sample.call_s)
    rivals[IN_SAMPLE] = in_sample
    replies: aiconfigurator.Replies | None = None
    if aiconfigurator.is_installed():
        asked = [(row, own.deployment_of(row, catalog)) for row in rows]
        replies = aiconfigurator.ask(asked)
        rivals[ONE_PROMPT] = _answers(rows, replies)
        rivals[LONG_STEPS] = _answers(rows, aiconfigurator.ask(asked, STEP_TOKENS))
    rivals[CEILING] = own.ceilings(rows, catalog)
    rivals[THUMB] = own.thumb(rows, catalog)

    for name in [name for name, answers in rivals.items() if not answers.predicted]:
        print(f"Not compared, for it answers nothing: {name}.")
        del rivals[name]

    first = next(iter(rivals))
    for title, belongs in GROUPS.items():
        _print_group(title, [row for row in rows if belongs(row)], rivals, first)
    common = [row for row in rows if all(row.id in answers.predicted for answers in rivals.values())]
    if common:
        _print_times(common, rivals, replies, own.pieces(common, catalog))
    if replies is None:
        print(aiconfigurator.HOW_TO_MAKE_IT)
    else:
        _print_replies(rows, replies)


def _answers(rows: Sequence[Measurement], replies: aiconfigurator.Replies) -> Answers:
    """Of a request without an answer it tells a TPOT of 0: no prediction."""
    found = [(row, replies.answers[row.id]) for row in rows if row.id in replies.answers]
    return Answers(
        {row.id: float(answer[row.metric.value]) for row, answer in found if answer[row.metric.value] > 0},
        {row.id: float(answer["call_s"]) for row, answer in found},
    )


def _print_group(title: str, rows: Sequence[Measurement], rivals: Mapping[str, Answers], first: str) -> None:
    common = [row for row in rows if all(row.id in answers.predicted for answers in rivals.values())]
    lines = []
    scores = {name: errors(common, answers.predicted) for name, answers in rivals.items()} if len(common) > 1 else {}
    for name, answers in rivals.items():
        answered = sum(row.id in answers.predicted for row in rows)
        lines.append((name, f"{answered} of {len(rows)}", *_columns(name, scores, first, _mean_s(common, rivals))))
    columns = ("answered", "median", "mean", "p90", "within 20 %", "median ×", "predicted ÷ measured")
    ratios = ("median ÷ the first's", "ms a call", "time ÷ the first's")
    table(f"{title}: errors over the {len(common)} cells that all answer", ("predictor", *columns, *ratios), lines)


def _columns(name: str, scores: Mapping[str, Errors], first: str, mean_s: Mapping[str, float]) -> Sequence[str]:
    if name not in scores:
        return ("–",) * 9
    score, base = scores[name], scores[first]
    return (
        f"{score.median:.1%}",
        f"{score.mean:.1%}",
        f"{score.p90:.1%}",
        f"{score.close:.0%}",
        f"{score.factor:.2f}",
        f"{score.bias:.2f}",
        f"{score.median / base.median:.2f}",
        f"{1e3 * mean_s[name]:.3f}",
        f"{mean_s[name] / mean_s[first]:.2f}",
    )


def _mean_s(rows: Sequence[Measurement], rivals: Mapping[str, Answers]) -> Mapping[str, float]:
    if not rows:
        return {}
    return {name: statistics.mean(answers.call_s[row.id] for row in rows) for name, answers in rivals.items()}


def _print_times(
    rows: Sequence[Measurement],
    rivals: Mapping[str, Answers],
    replies: aiconfigurator.Replies | None,
    pieces: Mapping[str, float],
) -> None:
    mean_s = _mean_s(rows, rivals)
    base = mean_s[next(iter(rivals))]
    times = [(f"{name}: question to answer", mean_s[name]) for name in rivals if name != CROSS_VALIDATED]
    times += [(f"  of Tokenroof: {name}", seconds) for name, seconds in pieces.items()]
    if replies is not None:
        times += [
            (
                "aiconfigurator: first answer about a question, mean (compiles its model, reads its tables)",
                statistics.mean(replies.first_s),
            ),
            ("aiconfigurator: importing it, once", replies.import_s),
            ("aiconfigurator: opening its data, once, all systems and engines", replies.load_s),
        ]
    table(
        f"Time, mean of the {len(rows)} cells that all answer, best of {own.REPEATS} each",
        ("what", "ms", f"÷ {next(iter(rivals))}"),
        [(name, f"{1e3 * seconds:.3f}", f"{seconds / base:.2f}") for name, seconds in times],
    )


def _print_replies(rows: Sequence[Measurement], replies: aiconfigurator.Replies) -> None:
    title = f"aiconfigurator {replies.version}: {len(replies.answers)} of {len(rows)} cells answered"
    over = f"{replies.over_cache} of them with more requests than fit its cache"
    by_data = sorted(replies.data.items(), key=lambda item: -item[1])
    table(f"{title}, {over}", ("system", "engine", "data", "mode", "cells"), [(*k, str(n)) for k, n in by_data])
    reasons = Counter(replies.refusals.values()).most_common()
    table("aiconfigurator: not answered", ("why", "cells"), [(why[:110], str(count)) for why, count in reasons])


if __name__ == "__main__":
    run()
