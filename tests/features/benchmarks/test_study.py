"""What is said of runs before a number is looked at."""

import pytest

from app.catalog.catalog import load_catalog
from app.features.benchmarks.points import BenchPoint, Tool
from app.features.benchmarks.study import doubts_about
from app.scenario.scenario import Scenario
from tests.features.benchmarks.files import served

CATALOG = load_catalog()


def told(*names: str | None, scenario: Scenario | None = None) -> str:
    runs = [BenchPoint(Tool.VLLM, model=name) for name in names]
    return " ".join(doubts_about(runs, scenario or served(), CATALOG))


@pytest.mark.parametrize(
    "names", [(), (None,), ("meta-llama/Llama-3.1-8B-Instruct",), ("Llama-3.1-8B", None), ("a-model-of-mine",)], ids=str
)
def test_what_may_be_the_chosen_model_is_not_doubted(names: tuple[str | None, ...]) -> None:
    assert told(*names) == ""


def test_another_model_is_told_by_both_names() -> None:
    assert (
        told("Qwen/Qwen3-32B") == "The runs name Qwen/Qwen3-32B, and Llama-3.1-8B is chosen: is that what was measured?"
    )
    custom = served(model={"config": {"model_type": "llama"}, "name": "Mine"})
    assert told("Qwen/Qwen3-32B", scenario=custom) == ""


def test_several_models_or_formats_are_told() -> None:
    assert "of 2 models or formats (Llama-3.1-8B, mine)" in told("Llama-3.1-8B", "mine", "Llama-3.1-8B")
    assert "of 2 models or formats" in told("Llama-3.1-8B-Q8_0.gguf", "Llama-3.1-8B-Q4_K_M.gguf")
    assert "(a, b, c and 2 more)" in told(*"abcde")


def test_requests_that_failed_are_counted() -> None:
    runs = [BenchPoint(Tool.VLLM, requests=28, failed=100), BenchPoint(Tool.VLLM, requests=64)]
    assert doubts_about(runs, served(), CATALOG)[0].startswith("100 of 128 requests of run 1 failed.")


def test_speculation_that_is_not_chosen_is_told() -> None:
    drafted = BenchPoint(Tool.SGLANG, step_tokens=2.4)
    assert doubts_about([drafted], served(), CATALOG)[0].startswith("Run 1 was made with speculative decoding")
    assert doubts_about([drafted, drafted], served(), CATALOG)[0].startswith("Runs 1, 2 were made")
    chosen = served(techniques={"speculative": {"draft_tokens": 3, "acceptance_length": 2.4}})
    assert doubts_about([drafted], chosen, CATALOG) == []
    assert doubts_about([BenchPoint(Tool.SGLANG, step_tokens=1.0)], served(), CATALOG) == []
