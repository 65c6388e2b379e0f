"""People and what each asks first: scenarios to start from."""

from dataclasses import dataclass

from app.production import production_scenario
from app.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Preset:
    """A scenario with the person and the question it is for."""

    person: str
    question: str
    scenario: Scenario


def presets() -> tuple[Preset, ...]:
    """One for each of five, in the order of the page; and a deployment whose operator told what comes out."""
    return (
        _preset(
            "Platform engineer",
            "Do 32k-token documents fit, and how many at once?",
            ("llama-3.1-8b", "h100-sxm-80gb"),
            {"prompt_tokens": 32_000, "output_tokens": 768, "concurrency": 16},
        ),
        _preset(
            "Capacity planner",
            "What does a million tokens cost on a full card?",
            ("llama-3.1-70b", "h200-sxm"),
            {"prompt_tokens": 2_000, "output_tokens": 500, "concurrency": None, "slo_tpot_s": 0.05},
            {"weights": "fp8"},
        ),
        _preset(
            "Performance engineer",
            "Is my measured step near the roof?",
            ("llama-3.1-8b", "h100-sxm-80gb"),
            {"prompt_tokens": 3_840, "output_tokens": 512, "concurrency": 64},
        ),
        _preset(
            "Student",
            "Why does one user get some 200 tokens/s and no more?",
            ("llama-3.1-8b", "h100-sxm-80gb"),
            {"prompt_tokens": 1_000, "output_tokens": 500, "concurrency": 1},
        ),
        _preset(
            "Home user",
            "What can my one card run?",
            ("qwen3-14b", "rtx-4090"),
            {"prompt_tokens": 2_000, "output_tokens": 500, "concurrency": 1},
            {"weights": "int4"},
        ),
        Preset("Operator", "How does DeepSeek serve V3 and R1 on H800?", production_scenario()),
    )


def _preset(
    person: str,
    question: str,
    on: tuple[str, str],
    workload: dict[str, object],
    precision: dict[str, object] | None = None,
) -> Preset:
    model, hardware = on
    document = {
        "model": {"id": model},
        "hardware": {"id": hardware},
        "workload": workload,
        "precision": precision or {},
    }
    return Preset(person, question, Scenario.model_validate(document))
