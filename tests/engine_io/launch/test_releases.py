"""Nothing is written that a named release does not take, and everything that it takes is recognised."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine_io.launch import tensorrt_llm
from app.engine_io.launch.arguments import Flag, Release, Takes, release_of
from app.engine_io.launch.command import read_command
from app.engine_io.launch.findings import Reason
from app.engine_io.launch.variants import launch_variants
from app.scenario.scenario import Scenario
from tests.engine_io.launch.strategies import ENGINES, scenarios
from tests.factories import shipped_catalog

LAUNCHERS = {
    "vllm": "vllm serve x/y",
    "sglang": "python -m sglang.launch_server",
    "tensorrt-llm": "trtllm-serve x/y",
    "llama.cpp": "llama-server",
}
OF_DOCKER = {"--gpus", "--ipc"}


def sample(flag: Flag) -> str:
    if flag.takes is Takes.SWITCH:
        return ""
    if flag.name in ("--speculative-config", "--spec-method"):
        return """'{"method": "ngram", "num_speculative_tokens": 1}'""" if "config" in flag.name else "ngram"
    if flag.name == "--spec-tokens":
        return "1"
    return "auto" if "dtype" in flag.name else "1"


@pytest.mark.parametrize("engine", LAUNCHERS)
def test_every_name_of_every_flag_is_recognised(engine: str) -> None:
    for name, flag in release_of(engine).flags.items():
        beside = " --spec-tokens 1" if flag.name in ("--spec-method", "--spec-model") else ""
        reading = read_command(f"{LAUNCHERS[engine]} {name} {sample(flag)}{beside}", shipped_catalog())
        assert all(unread.reason is not Reason.UNKNOWN for unread in reading.unread), name


@given(st.sampled_from(ENGINES).flatmap(scenarios))
def test_only_flags_of_the_release_are_written(asked: Scenario) -> None:
    engine = (asked.engine.underneath or "vllm") if asked.engine.id == "llm-d" else asked.engine.id
    release: Release = release_of(engine)
    for variant in launch_variants(asked, shipped_catalog()):
        text = variant.text.partition("\n")[2]
        written = set(re.findall(r"(?<![\w-])--[A-Za-z][\w-]*", text)) - OF_DOCKER
        if engine == "vllm":  # its switches are defined in both forms, on and with "no-" before the name
            written = {_positive(flag, release) for flag in written}
        assert written <= set(release.flags)
        assert variant.release.endswith(release.label)


def _positive(flag: str, release: Release) -> str:
    positive = f"--{flag.removeprefix('--no-')}"
    is_switch = positive in release.flags and release.flags[positive].takes is Takes.SWITCH
    return positive if flag.startswith("--no-") and is_switch else flag


@given(scenarios("tensorrt-llm"))
def test_only_options_of_the_release_are_written(asked: Scenario) -> None:
    told = tensorrt_llm.write(asked, shipped_catalog())
    assert set(tensorrt_llm.written_keys(told.options)) <= release_of("tensorrt-llm").options.keys()


@pytest.mark.parametrize("engine", LAUNCHERS)
def test_a_release_says_where_its_flags_were_read(engine: str) -> None:
    release = release_of(engine)
    assert release.version in release.source or release.name in release.source
    assert release.image_of(release.version).endswith(release.version)


def test_a_flag_has_one_meaning() -> None:
    for engine in LAUNCHERS:
        release = release_of(engine)
        assert len(release.sorted_names) == sum(len(flag.names) for flag in dict.fromkeys(release.flags.values()))
