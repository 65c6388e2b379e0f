"""The real worker over libraries that are none: its arithmetic, its limits, and what it says when it cannot."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from typing import Any

import pytest

from app.calc.dtypes import Dtype
from app.machine.peaks.outcome import Fault, Line, MeasureError, Outcome, Progress, Skipped, SkipReason, Stream
from app.machine.peaks.plan import Plan
from app.machine.peaks.runner import WORKER, run_worker
from app.settings import ROOT
from tests.machine.peaks.workers import NAME, TOTAL_BYTES, environment, no_report

BANDWIDTH = 3.0e12
RATES = {"bf16": 8.0e14, "fp16": 7.0e14, "fp8": 1.4e15, "int8": 1.2e15, "tf32": 4e14, "fp32": 5e13}


def measured(plan: Plan | None = None, steps: list[Progress] | None = None, **card: Any) -> Outcome:
    """What the worker finds on a card like this."""
    report = no_report if steps is None else steps.append
    return asyncio.run(run_worker(plan or Plan(libraries=("torch",)), environment(**card), report))


def refusal(plan: Plan | None = None, **card: Any) -> MeasureError:
    with pytest.raises(MeasureError) as caught:
        measured(plan, **card)
    return caught.value


def by_format(outcome: Outcome) -> dict[Dtype, set[int]]:
    sizes: dict[Dtype, set[int]] = {}
    for rate in outcome.products:
        sizes.setdefault(rate.dtype, set()).add(rate.size)
    return sizes


@pytest.mark.parametrize(
    ("library", "formats", "version"),
    [("torch", set(RATES), "2.9.1+fake"), ("cupy", {"fp16", "tf32", "fp32"}, "14.1.0+fake")],
)
def test_the_rates_are_those_of_the_card(library: str, formats: set[str], version: str) -> None:
    steps: list[Progress] = []
    outcome = measured(Plan(libraries=(library,)), steps)
    assert (outcome.library, outcome.card_name, outcome.memory_total_bytes) == (library, NAME, TOTAL_BYTES)
    assert outcome.versions[library] == version
    assert {rate.stream: rate.array_bytes for rate in outcome.streams} == {Stream.COPY: 2**30, Stream.TRIAD: 2**30}
    # The card's best pass reaches its rate, its median takes a tenth longer; 2N, 3N and 2MNK give it back.
    for rate in outcome.streams:
        assert rate.timing.iterations == 100
        assert rate.best_bytes_per_s == pytest.approx(BANDWIDTH, rel=1e-9)
        assert rate.median_bytes_per_s == pytest.approx(BANDWIDTH / 1.1, rel=1e-9)
    assert by_format(outcome) == {Dtype(name): {4096, 8192, 16384} for name in formats}
    for product in outcome.products:
        assert product.timing.iterations == 100
        assert product.best_flops_per_s == pytest.approx(RATES[product.dtype], rel=1e-9)
        assert product.median_flops_per_s == pytest.approx(RATES[product.dtype] / 1.1, rel=1e-9)
    missing = {Skipped(Dtype(name), None, SkipReason.NOT_OFFERED) for name in RATES.keys() - formats}
    assert set(outcome.skipped) == missing
    assert steps[0] == Progress("copy", 0, 20)
    assert steps[-1].of == 20


def test_the_second_library_stands_in_where_the_first_has_no_card() -> None:
    both = Plan(libraries=("torch", "cupy"))
    assert measured(both, behaviour="broken").library == "cupy"
    assert measured(both).library == "torch"


def test_older_and_other_cards_offer_less() -> None:
    turing: dict[str, Any] = {
        "capability": (7, 5),
        "flops_per_s": {"fp16": 6e13, "fp32": 8e12, "int8": 1.2e14, "bf16": 1e12},
    }
    assert set(by_format(measured(**turing))) == {Dtype.FP16, Dtype.FP32, Dtype.INT8}
    instinct = measured(
        hip=True, name="AMD Instinct MI300X", flops_per_s={"bf16": 7e14, "fp8 fnuz": 1.2e15, "fp32": 1e14}
    )
    assert set(by_format(instinct)) == {Dtype.BF16, Dtype.FP8, Dtype.FP32}
    assert instinct.versions == {"torch": "2.9.1+fake", "rocm": "7.2"}


def test_a_small_card_is_measured_as_far_as_it_has_room() -> None:
    outcome = measured(total_bytes=6 * 2**30, cache_bytes=24 * 2**20)
    room = (6 * 2**30 - 500_000_000) // 4
    assert all(3 * rate.array_bytes <= room for rate in outcome.streams)
    assert {16384} == {skipped.size for skipped in outcome.skipped}
    assert {skipped.reason for skipped in outcome.skipped} == {SkipReason.NO_ROOM}


@pytest.mark.parametrize(
    ("card", "fault", "words"),
    [
        ({"behaviour": "no card"}, Fault.NO_ACCELERATOR, "no accelerator that torch can use"),
        ({"behaviour": "broken"}, Fault.NOT_LOADABLE, "installed as torch cannot be loaded"),
        ({"count": 0}, Fault.NO_SUCH_CARD, "can be seen: 0"),
        ({"held_by_others_bytes": 20_000_000_000}, Fault.CARD_IN_USE, "23 % of its memory"),
        ({"total_bytes": 10**8, "flops_per_s": {}, "held_by_others_bytes": 0}, Fault.NOTHING_MEASURED, "too small"),
        ({"behaviour": "die"}, Fault.DIED, "signal SIGKILL"),
        ({"behaviour": "raise"}, Fault.UNFORESEEN, "server's log"),
    ],
    ids=lambda value: value.value if isinstance(value, Fault) else "",
)
def test_what_the_worker_says_when_it_cannot(
    card: dict[str, Any], fault: Fault, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tokenroof.microbench")
    error = refusal(**card)
    assert error.fault is fault
    assert words in error.message
    assert "secret" not in error.message
    assert ("/a/folder/of/mine" in caplog.text) == (fault is Fault.UNFORESEEN)


def test_what_libraries_print_is_no_answer() -> None:
    assert measured(behaviour="print").products


def test_the_machines_memory_is_limited() -> None:
    error = refusal(Plan(libraries=("torch",), host_bytes=2**30), behaviour="hog")
    assert error.fault is Fault.OUT_OF_HOST_MEMORY


def test_the_server_goes_first_and_no_setting_and_no_secret_reaches_the_library(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "tokenroof.microbench")
    measured(behaviour="tell")
    assert "CUDA_DEVICE_ORDER" in caplog.text
    assert f'"nice": {min(19, os.nice(0) + 10)},' in caplog.text
    for name in ("TOKENROOF", "HF_TOKEN", "NVIDIA_API_KEY"):
        assert name not in caplog.text


def test_a_worker_without_a_parent_ends() -> None:
    done = subprocess.run(
        WORKER,
        input=Plan().line(),
        env=environment(behaviour="hang"),
        cwd=ROOT,
        capture_output=True,
        timeout=10,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, b"")


def test_a_worker_without_a_plan_says_so() -> None:
    done = subprocess.run(
        WORKER, input=b"{}\n", env=environment(), cwd=ROOT, capture_output=True, timeout=10, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")


def test_the_worker_loads_no_library_before_it_is_asked() -> None:
    code = "import app.machine.peaks.worker, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=10, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"torch", "cupy", "numpy", "pydantic", "fastapi", "app.settings"}
    assert Line.__module__ in loaded
