import dataclasses
import math
import random

import pytest

from app.calc.measure import measure
from app.catalog.catalog import load_catalog
from app.features.benchmarks.fit import FitReport, fit, off, sentences
from app.features.benchmarks.overlay import overlay
from app.features.benchmarks.points import BenchPoint, Spread, Tool
from app.scenario.parts import OwnCalibration, OwnFactor
from app.scenario.resolve import resolve
from tests.features.benchmarks.files import bare, points, served

CATALOG = load_catalog()
LEVELS = (1, 2, 4, 8, 16, 32, 64, 128)


def run(concurrency: int, *, ttft: float | None = None, tpot: float | None = None, prompt: int = 1024) -> BenchPoint:
    return BenchPoint(
        tool=Tool.VLLM,
        concurrency=concurrency,
        requests=1000,
        prompt_tokens=float(prompt),
        output_tokens=256.0,
        ttft=Spread(median_s=ttft),
        tpot=Spread(median_s=tpot),
    )


def synthetic(decode: float, prefill: float, noise: float = 0.0, levels: tuple[int, ...] = LEVELS) -> list[BenchPoint]:
    """Runs of a stack that is just so many times slower."""
    own = OwnCalibration(
        name="truth", decode=OwnFactor(factor=decode, points=1), prefill=OwnFactor(factor=prefill, points=1)
    )
    drawn, found = random.Random(5), []
    for one in overlay(served(), [run(level, tpot=1.0) for level in levels], CATALOG).laid:
        told = measure(resolve(one.scenario.model_copy(update={"calibration": own}), CATALOG).deployment).serving
        ttft, tpot = ((estimate.mid or 0) * math.exp(drawn.gauss(0, noise)) for estimate in (told.ttft_s, told.tpot_s))
        found.append(run(one.load.concurrency, ttft=ttft, tpot=tpot))
    return found


def fitted(runs: list[BenchPoint] | tuple[BenchPoint, ...]) -> FitReport:
    return fit(overlay(served(), runs, CATALOG), CATALOG, "Mine")


@pytest.mark.parametrize(("decode", "prefill"), [(2.5, 0.8), (0.9, 3.0), (1.0, 1.0)])
def test_the_factors_of_a_stack_that_is_just_slower_are_found(decode: float, prefill: float) -> None:
    report = fitted(synthetic(decode, prefill))
    assert report.decode is not None
    assert report.prefill is not None
    assert report.decode.factor.factor == pytest.approx(decode, rel=0.05)
    assert report.prefill.factor.factor == pytest.approx(prefill, rel=0.05)
    assert report.decode.fitted_error < 0.02
    assert report.decode.factor.points == len(LEVELS)


def test_the_fitted_calibration_is_what_the_workbench_then_expects() -> None:
    runs = synthetic(1.5, 1.2, noise=0.03, levels=(1, 4, 16, 64))
    report = fitted(runs)
    calibrated = served().model_copy(update={"calibration": report.calibration})
    after = overlay(calibrated, runs, CATALOG)
    errors = [abs(math.log(beside.ratio or 1)) for one in after.laid for beside in one.figures]
    assert max(errors) < 0.15
    assert sorted(errors)[len(errors) // 2] < 0.04


def test_a_calibration_that_is_carried_already_is_left_aside() -> None:
    runs = synthetic(1.5, 1.2, levels=(1, 16))
    report = fitted(runs)
    carried = served().model_copy(update={"calibration": report.calibration})
    assert fit(overlay(carried, runs, CATALOG), CATALOG, "Mine") == report


def test_the_interval_holds_what_scattered() -> None:
    report = fitted(synthetic(1.4, 1.1, noise=0.1))
    assert report.decode is not None
    low, high = report.decode.factor.low, report.decode.factor.high
    assert low is not None
    assert high is not None
    assert 0.75 < low < 0.95
    assert 1.05 < high < 1.35


def test_one_bad_run_of_eight_moves_little() -> None:
    runs = synthetic(1.3, 1.1)
    runs[3] = dataclasses.replace(runs[3], tpot=Spread(median_s=10.0))
    report = fitted(runs)
    assert report.decode is not None
    assert report.decode.factor.factor == pytest.approx(1.3, rel=0.12)


def test_a_single_run_gives_a_factor_but_no_interval_and_no_trial() -> None:
    report = fitted(synthetic(1.5, 1.2, levels=(8,)))
    assert report.decode is not None
    assert 1.2 < report.decode.factor.factor < 1.5
    assert report.decode.factor.low is None
    assert report.held_out is None
    assert report.decode.left_out_error is None
    words = " ".join(sentences(report))
    assert "(1 point)" in words
    assert "from 3 points on" in words
    assert "of the weight is the default’s" in words


def test_only_what_was_measured_gets_a_factor() -> None:
    report = fitted([run(level, tpot=0.02) for level in (1, 4, 16)])
    assert report.calibration is not None
    assert report.calibration.prefill is None
    assert report.prefill is None
    assert report.decode is not None


def test_nothing_to_fit_is_said_and_no_calibration_is_made() -> None:
    report = fitted([dataclasses.replace(run(4), output_tokens_per_s=100.0)])
    assert report.calibration is None
    assert "nothing can be fitted" in sentences(report)[0]


def test_times_below_their_ceilings_are_counted_at_them_and_told() -> None:
    runs = [run(level, ttft=1e-6, tpot=1e-6) for level in (1, 4, 16, 64)]
    report = fitted(runs)
    assert report.decode is not None
    assert report.decode.at_ceiling == 4
    assert 0.05 <= report.decode.factor.factor < 1
    words = " ".join(sentences(report))
    assert "4 decode times beat their ceilings and are counted at them" in words
    after = overlay(served().model_copy(update={"calibration": report.calibration}), runs, CATALOG)
    assert all((beside.predicted.mid or 0) >= beside.predicted.ceiling for one in after.laid for beside in one.figures)


@pytest.mark.parametrize("seconds", [1e-9, 1e9])
def test_absurd_times_give_a_factor_that_a_scenario_can_have(seconds: float) -> None:
    report = fitted([run(level, ttft=seconds, tpot=seconds) for level in (1, 8, 64)])
    assert report.calibration is not None
    assert OwnCalibration.model_validate(report.calibration.model_dump()) == report.calibration


def test_of_very_many_runs_some_are_taken_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.features.benchmarks.fit.MOST_FITTED", 5)
    report = fitted([run(level, tpot=0.02) for level in LEVELS])
    assert (report.runs, report.used) == (8, 5)
    assert report.decode is not None
    assert report.decode.factor.points == 5
    assert "Of 8 runs 5 were fitted to, taken evenly." in sentences(report)


@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("vllm_serve_appended.jsonl", served()),
        ("sglang.jsonl", served(engine={"id": "sglang"})),
        ("guidellm_0.2.json", served()),
        ("guidellm_0.5.csv", served()),
        ("llama_bench.json", bare()),
        ("llama_bench.md", bare()),
    ],
    ids=["vllm", "sglang", "guidellm json", "guidellm csv", "llama json", "llama md"],
)
def test_a_fit_to_half_of_a_file_predicts_the_other_half_better_than_the_default(name: str, scenario: object) -> None:
    report = fit(overlay(scenario, points(name), CATALOG), CATALOG, name)  # type: ignore[arg-type]
    assert report.held_out is not None
    assert report.held_out.fitted_error < report.held_out.default_error / 2
    assert report.held_out.judged >= 1
    assert "had not seen" in " ".join(sentences(report))


@pytest.mark.parametrize(
    ("error", "words"), [(0.0, "less than 1 %"), (0.02, "2 %"), (math.log(1.5), "50 %"), (math.log(3), "a factor of 3")]
)
def test_a_log_error_is_told_as_how_far_off(error: float, words: str) -> None:
    assert off(error) == words


def test_a_factor_that_does_not_follow_the_load_is_told() -> None:
    runs = synthetic(1.3, 1.2, levels=(1, 4, 16, 64))
    leaning = [replaced(one, (one.concurrency or 1) ** 0.25) for one in runs]
    report = fitted(leaning)
    assert report.decode is not None
    assert report.prefill is not None
    assert report.decode.drift is not None
    assert (report.decode.drift.lowest, report.decode.drift.highest) == (1, 64)
    assert report.decode.drift.at_lowest < 0.8
    assert report.decode.drift.at_highest > 1.25
    words = " ".join(sentences(report))
    assert "Decode times over the fit go from × 0." in words
    assert "Prefill times over the fit" not in words
    assert "over the fit go" not in " ".join(sentences(fitted(runs)))


def replaced(point: BenchPoint, factor: float) -> BenchPoint:
    return dataclasses.replace(point, tpot=Spread(median_s=(point.tpot.median_s or 0) * factor))


def test_a_side_that_is_no_better_than_the_default_is_told_though_the_other_is() -> None:
    runs = synthetic(1.0, 2.0, levels=(1, 4, 16, 64))
    report = fitted([replaced(one, factor) for one, factor in zip(runs, (1.5, 0.7, 0.7, 1.5), strict=True)])
    assert report.held_out is not None
    words = " ".join(sentences(report))
    assert words.count("This factor is no better than the default") == 1
    assert "Decode times predicted from the other runs" in words.partition("This factor")[0]
    assert "Prefill times predicted" not in words.partition("This factor")[0]


def test_times_in_the_wrong_unit_are_not_passed_over() -> None:
    words = " ".join(sentences(fitted([run(level, tpot=20.0) for level in (1, 8, 64)])))
    assert "is as far as a calibration goes" in words
    assert "Even with the fit decode times are typically off by a factor of" in words
