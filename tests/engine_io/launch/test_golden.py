"""The launch texts of a few scenarios, letter by letter: what a change of the writers changes shows in the diff."""

from pathlib import Path
from typing import Any

import pytest

from app.engine_io.launch.variants import launch_variants
from app.scenario.scenario import Scenario
from tests.engine_io.launch.strategies import ENGINES
from tests.factories import shipped_catalog

FOLDER = Path(__file__).resolve().parent / "golden"


def asked(engine: str) -> dict[str, Scenario]:
    underneath = {"underneath": "sglang"} if engine == "llm-d" else {}
    return {
        "one card": _scenario(
            model={"id": "llama-3.1-8b"},
            hardware={"id": "h100-sxm-80gb", "count": 1},
            precision={"weights": "bf16", "compute": "bf16"},
            engine={"id": engine, "memory_utilization": 0.9, "max_model_len": 8192, "max_num_seqs": 256},
        ),
        "experts over eight cards, two replicas": _scenario(
            model={"id": "deepseek-v3", "mtp": True},
            hardware={"id": "h200-sxm", "count": 16},
            precision={"weights": "fp8", "kv_cache": "fp8", "compute": "fp8"},
            parallelism={"data": 8, "expert": 8},
            engine={"id": engine, "version": "0.11.0", "max_batched_tokens": 8192, "prefix_caching": False},
            techniques={"speculative": {"draft_tokens": 1}},
        ),
        "a model of one's own, cut both ways, with a draft": _scenario(
            model={"config": {"model_type": "llama"}, "name": "Ours & theirs"},
            hardware={"id": "h100-sxm-80gb", "count": 4},
            precision={"weights": "int4", "kv_cache": "int8"},
            parallelism={"tensor": 2, "pipeline": 2, "decode_context": 2},
            engine={"id": engine, **underneath, "block_size": 32, "enforce_eager": True, "prefix_caching": True},
            techniques={"speculative": {"draft_tokens": 4, "draft": {"id": "llama-3.2-1b"}}},
        ),
    }


def _scenario(**sections: Any) -> Scenario:
    return Scenario.model_validate(sections)


def texts(engine: str) -> str:
    parts = []
    for name, one in asked(engine).items():
        for variant in launch_variants(one, shipped_catalog()):
            notes = "".join(f"({note})\n" for note in variant.notes)
            parts.append(f"===== {name}: {variant.label}, {variant.release}\n{notes}\n{variant.text}")
    return "\n".join(parts)


@pytest.mark.parametrize("card", ["mi300x", "trainium2", "h100-sxm-80gb"])
def test_containers_and_manifests_are_written_for_the_cards_whose_names_they_use(card: str) -> None:
    scenario = _scenario(
        model={"id": "llama-3.1-8b"},
        hardware={"id": card, "count": 1},
        engine={"id": "vllm", "memory_utilization": 0.9},
    )
    variants = launch_variants(scenario, shipped_catalog())
    is_theirs = card.startswith("h100")
    assert [variant.id for variant in variants] == (["shell", "container", "kubernetes"] if is_theirs else ["shell"])
    assert any("NVIDIA" in note for note in variants[0].notes) is not is_theirs


@pytest.mark.parametrize("engine", ENGINES)
def test_the_texts_of_an_engine(engine: str) -> None:
    assert texts(engine) == (FOLDER / f"{engine}.txt").read_text(encoding="utf-8")
