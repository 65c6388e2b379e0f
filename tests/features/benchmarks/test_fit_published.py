"""The fit on published measurements: half of a stack's runs predicted by the other half."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from statistics import mean, median

from app.catalog.catalog import load_catalog
from app.catalog.measurements import Measurement, Metric
from app.features.benchmarks.fit import HeldOut, tried
from app.features.benchmarks.overlay import overlay
from app.features.benchmarks.points import NOT_TOLD, BenchPoint, Spread, Tool
from app.features.benchmarks.regression import TimedRuns
from app.features.validation.compared import scenario_of
from app.scenario.scenario import Scenario

CATALOG = load_catalog()
FEWEST, GROUPS = 6, 9


def stacks() -> list[tuple[Scenario, list[BenchPoint]]]:
    """Stacks that somebody measured under six loads or more: the nine of most, each with its runs."""
    found: dict[tuple[str, ...], dict[tuple[str, ...], list[BenchPoint]]] = {}
    first: dict[tuple[str, ...], Scenario] = {}
    for row in CATALOG.measurements:
        if row.is_scored and row.metric in (Metric.TTFT, Metric.TPOT) and row.concurrency and not row.cached_tokens:
            stack = _stack(row)
            first.setdefault(stack, scenario_of(row))
            load = (row.concurrency, row.prompt_tokens, row.output_tokens)
            _put(found.setdefault(stack, {}).setdefault(load, []), row)
    groups = [(first[stack], list(_runs(loads))) for stack, loads in found.items()]
    large = [(scenario, runs) for scenario, runs in groups if len(runs) >= FEWEST]
    return sorted(large, key=lambda group: -len(group[1]))[:GROUPS]


def _stack(row: Measurement) -> tuple[str, ...]:
    split = (row.gpus, row.tensor, row.pipeline, row.expert, row.data)
    return (row.source, row.model, row.accelerator, row.engine, row.version, row.weights, row.kv_cache, *split)


def _put(runs: list[BenchPoint], row: Measurement) -> None:
    """A row beside the other figure of its run, or a run of its own."""
    name = "ttft" if row.metric is Metric.TTFT else "tpot"
    for i, run in enumerate(runs):
        if getattr(run, name) == NOT_TOLD:
            runs[i] = replace(run, **{name: Spread(row.value)})  # type: ignore[arg-type]
            return
    lengths = {"prompt_tokens": float(row.prompt_tokens), "output_tokens": float(row.output_tokens)}
    told = {name: Spread(row.value)}
    runs.append(BenchPoint(Tool.VLLM, concurrency=int(row.concurrency), **lengths, **told))  # type: ignore[arg-type]


def _runs(loads: Mapping[tuple[str, ...], list[BenchPoint]]) -> Iterable[BenchPoint]:
    for _, runs in sorted(loads.items(), key=lambda item: [int(part) for part in item[0]]):
        yield from runs


@cache
def trials() -> list[HeldOut]:
    """What each fit is worth on the half that it had not seen."""
    laid_over = (overlay(scenario, runs, CATALOG) for scenario, runs in stacks())
    found = (tried(TimedRuns(one.laid, CATALOG)) for one in laid_over)
    return [trial for trial in found if trial is not None]


def test_there_are_stacks_to_try_the_fit_on() -> None:
    assert len(trials()) == GROUPS
    assert all(trial.fitted >= FEWEST // 2 for trial in trials())


def test_the_held_out_error_falls_though_the_default_has_seen_these_very_rows() -> None:
    assert median(trial.fitted_error for trial in trials()) < 0.8 * median(trial.default_error for trial in trials())
    assert mean(trial.fitted_error for trial in trials()) < 0.9 * mean(trial.default_error for trial in trials())


def test_most_stacks_are_predicted_better_and_none_much_worse() -> None:
    better = [trial for trial in trials() if trial.fitted_error < trial.default_error]
    assert len(better) >= 0.7 * len(trials())
    assert all(trial.fitted_error < trial.default_error + 0.12 for trial in trials())
