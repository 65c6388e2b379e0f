"""What the reader takes, what it refuses, and how it finds its way in a text of several logs."""

import contextlib
import json
import time

import pytest

from app.catalog.catalog import Catalog
from app.engine_io.logs.findings import FIELDS, LogError, LogReading
from app.engine_io.logs.reader import FORMATS, read_log
from app.scenario.scenario import Scenario
from tests.engine_io.logs import logs

HARDWARE = "h100-sxm-80gb"
MODEL = "llama-3.1-8b"
MIB = 1024 * 1024
# Of a mebibyte: 0.2 s on two idle cores. A machine at work takes several times that, a search gone wrong minutes, and
# of a quarter of it still seconds.
SLOWEST_S = 3.0


def scenario_of(reading: LogReading) -> Scenario:
    document = json.loads(json.dumps(reading.document))
    document.setdefault("model", {}).setdefault("id", MODEL)
    document.setdefault("hardware", {}).setdefault("id", HARDWARE)
    return Scenario.model_validate(document)


@pytest.mark.parametrize(("engine", "log"), logs.EVERY_LOG)
def test_every_log_is_its_engines_and_makes_a_scenario(catalog: Catalog, engine: str, log: str) -> None:
    reading = read_log(log, catalog)
    assert reading.engine == engine
    assert reading.engine in catalog.engines
    assert scenario_of(reading).engine.id == engine
    assert not {t.path for t in reading.told} & {m.path for m in reading.missing}
    for told in reading.told:
        assert type(told.value) in (str, int, float, bool)


def test_bounds_are_those_of_the_scenario(catalog: Catalog) -> None:
    for path, described in FIELDS.items():
        if described.least is None or described.most is None or path.startswith("techniques."):
            continue
        part, key = path.split(".")
        for bound in (described.least, described.most):
            value = int(bound) if described.whole else float(bound)
            document = {"model": {"id": MODEL}, "hardware": {"id": HARDWARE}}
            document.setdefault(part, {})[key] = value  # type: ignore[assignment]
            Scenario.model_validate(document)


@pytest.mark.parametrize(("engine", "log"), logs.EVERY_LOG)
@pytest.mark.parametrize(
    "wrapped",
    [
        lambda line: f"2026-05-14T22:14:30.967123456Z stdout F {line}\r",
        lambda line: f"May 14 22:14:30 somewhere engine[812]: {line}",
        lambda line: f"engine-1  | \x1b[32m{line}\x1b[0m",
        lambda line: json.dumps({"log": line + "\n", "stream": "stderr", "time": "2026-05-14T22:14:30Z"}),
        lambda line: json.dumps({"level": "info", "message": f"\x1b[36m{line}"}),
        lambda line: "\0".join(line) + "\0",
    ],
    ids=["kubernetes", "journal", "compose", "docker", "json", "utf-16"],
)
def test_what_containers_put_around_a_line_changes_nothing(
    catalog: Catalog, engine: str, log: str, wrapped: object
) -> None:
    assert callable(wrapped)
    text = "\n".join(wrapped(line) for line in log.splitlines())
    assert read_log(text, catalog).document == read_log(log, catalog).document


def test_the_last_complete_of_two_runs_is_used(catalog: Catalog) -> None:
    second = logs.VLLM_V0.replace("11.12x", "9.99x").replace("Meta-Llama-3-8B", "Llama-3.1-8B")
    reading = read_log(logs.VLLM_V0 + second, catalog)
    assert reading.document == read_log(second, catalog).document
    assert reading.notes == ("The log holds 2 starts of the engine; the last complete one is used.",)


def test_a_start_that_failed_does_not_hide_the_complete_one(catalog: Catalog) -> None:
    failed = logs.VLLM_V0.replace("14.9595", "99.0").partition("INFO 01-22 10:01:33 worker.py")[0]
    whole = read_log(logs.VLLM_V0, catalog).document
    for text in (failed + logs.VLLM_V0, logs.VLLM_V0 + failed):
        reading = read_log(text, catalog)
        assert reading.document == whole
        assert any("2 starts" in note for note in reading.notes)


def test_engines_of_data_parallelism_are_one_run(catalog: Catalog) -> None:
    log = """\
(EngineCore_DP0 pid=1) INFO Initializing a V1 LLM engine (v0.11.0) with config: model='x', tensor_parallel_size=1
(EngineCore_DP0 pid=1) INFO Available KV cache memory: 10.00 GiB
(EngineCore_DP1 pid=2) INFO Initializing a V1 LLM engine (v0.11.0) with config: model='x', tensor_parallel_size=1
(EngineCore_DP1 pid=2) INFO Available KV cache memory: 9.00 GiB
"""
    reading = read_log(log, catalog)
    assert [f.rank for f in reading.figures if f.id == "pool"] == ["DP0", "DP1"]
    assert not any("starts" in note for note in reading.notes)


def test_two_engines_are_refused(catalog: Catalog) -> None:
    with pytest.raises(LogError, match="vLLM and SGLang are mixed"):
        read_log(logs.VLLM_V1 + logs.SGLANG, catalog)


@pytest.mark.parametrize("text", ["", " \n\t\r\n", "\0\0\0", "\x1b[0m"])
def test_nothing_is_refused(catalog: Catalog, text: str) -> None:
    with pytest.raises(LogError, match="nothing in this log"):
        read_log(text, catalog)


def test_a_command_is_told_from_a_log(catalog: Catalog) -> None:
    with pytest.raises(LogError, match="a command, not its log"):
        read_log("vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2", catalog)
    with pytest.raises(LogError, match="no start-up log that is read here"):
        read_log("INFO:     Uvicorn running on http://127.0.0.1:8000", catalog)


def test_too_much_is_refused(catalog: Catalog) -> None:
    with pytest.raises(LogError, match="longer than 1 MiB"):
        read_log("a" * (MIB + 1), catalog)
    with pytest.raises(LogError, match="longer than 1 MiB"):
        read_log("é" * (MIB // 2 + 1), catalog)
    with pytest.raises(LogError, match="more than 20,000 lines"):
        read_log("\n" * 20_001, catalog)


@pytest.mark.parametrize("number", ["1e999", "nan", "inf", "-", "9" * 40, "1,2,3", "1.2.3", "٣"])
def test_what_is_no_number_is_not_read(catalog: Catalog, number: str) -> None:
    log = f"Model loading took 14.2488 GiB\nAvailable KV cache memory: {number} GiB\n"
    reading = read_log(log, catalog)
    assert [figure.id for figure in reading.figures] == ["weights"]


def test_figures_out_of_bounds_are_left_out_and_said(catalog: Catalog) -> None:
    log = "Available KV cache memory: 5.01 GiB\nGPU KV cache size: 999,999,999,999,999 tokens\n"
    reading = read_log(log, catalog)
    assert "observed" not in reading.document
    assert any("cannot hold it" in note for note in reading.notes)


LITERALS = sorted({pattern.literal for described in FORMATS.values() for pattern in described.patterns})


def _hostile() -> list[str]:
    lists = {head for described in FORMATS.values() for head in described.lists}
    units = [
        "1",
        "(",
        "[",
        "\x1b[",
        " ",
        "{",
        "\r",
        "(Worker" + " " * 40,
        "[2025-01-01 00:00:00 ",
        "[1;2;3;",
        "device_name=",
    ]
    units += [" ".join(LITERALS), "1 GiB ".join(LITERALS)]
    units += [head + "model=tensor_parallel_size=" for head in sorted(lists)]
    return units


@pytest.mark.parametrize("unit", _hostile())
def test_a_hostile_mebibyte_takes_no_time(catalog: Catalog, unit: str) -> None:
    assert seconds_for(catalog, unit, MIB) < SLOWEST_S


@pytest.mark.parametrize("literal", LITERALS)
def test_a_literal_over_and_over_takes_no_time(catalog: Catalog, literal: str) -> None:
    assert seconds_for(catalog, literal, MIB // 4) < SLOWEST_S / 4


def seconds_for(catalog: Catalog, unit: str, size: int) -> float:
    """The processor's time for a log of one figure, then of nothing but the unit."""
    start = "Available KV cache memory: 5.01 GiB\n"
    text = start + (unit * (size // len(unit) + 1))[: size - len(start)]
    began = time.process_time()
    with contextlib.suppress(LogError):
        read_log(text, catalog)
    return time.process_time() - began
