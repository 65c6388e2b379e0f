"""The ceilings that docs/worked-ceilings.md works by hand: every cell of its tables is computed and compared."""

import re
from pathlib import Path
from typing import Any

import pytest

from app.calc.evaluate import Evaluation
from app.calc.time.phase import PhaseCost
from tests.factories import answer_to

DOCUMENT = (Path(__file__).parents[2] / "docs" / "worked-ceilings.md").read_text(encoding="utf-8")
CHAT = {"prompt_tokens": 4000, "output_tokens": 192}  # 4,096 tokens half-way through the answer
LONG = {"prompt_tokens": 131_000, "output_tokens": 144}
LIMIT = {"prompt_tokens": 261_632, "output_tokens": 512}
SCENARIOS: dict[str, dict[str, Any]] = {
    "deepseek-v3 h200-sxm": {
        "precision": {"weights": "fp8"},
        "workload": CHAT | {"concurrency": 64},
        "parallelism": {"tensor": 8},
    },
    "qwen3-30b-a3b h100-sxm-80gb batch 1": {"workload": CHAT | {"concurrency": 1}},
    "qwen3-30b-a3b h100-sxm-80gb batch 8": {"workload": CHAT | {"concurrency": 8}},
    "qwen3-30b-a3b h100-sxm-80gb batch 64": {"workload": CHAT | {"concurrency": 64}},
    "gpt-oss-120b h100-sxm-80gb batch 1": {"workload": CHAT | {"concurrency": 1}},
    "gpt-oss-120b h100-sxm-80gb batch 64": {"workload": CHAT | {"concurrency": 64}},
    "gemma-3-27b h100-sxm-80gb batch 1": {"workload": LONG | {"concurrency": 1}},
    "gemma-3-27b h100-sxm-80gb prefill": {"workload": LONG | {"concurrency": 1}},
    "qwen3-next-80b-a3b h200-sxm batch 1": {
        "precision": {"weights": "fp8"},
        "workload": LIMIT | {"concurrency": 1},
    },
}
TABLES: dict[str, list[list[str]]] = {
    found[1]: [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2].splitlines()[2:]]
    for found in re.finditer(r"<!-- (.+?) -->\n\n((?:\|.*\n)+)", DOCUMENT)
}
case = pytest.mark.parametrize("name", SCENARIOS)


def worked(cell: str) -> float:
    """The arithmetic of a cell: numbers, + − × ÷ ^ and parentheses, nothing else."""
    text = cell.replace("×", "*").replace("÷", "/").replace("−", "-").replace("^", "**")
    assert re.fullmatch(r"[0-9.()*/+ -]+", text), cell
    return float(eval(text))


def microseconds(cell: str) -> float:
    return float(cell.strip("*").removesuffix(" µs").replace(",", ""))


def evaluation(name: str) -> Evaluation:
    """Of an ideal engine, as in the document: nothing but weights and cache."""
    model, hardware, *_ = name.split()
    return answer_to(model, hardware, **SCENARIOS[name], engine={"id": "ideal"}).evaluation


def phase(name: str) -> PhaseCost:
    measures = evaluation(name).measures
    return measures.prefill if name.endswith("prefill") else measures.decode


def test_every_case_has_its_table_and_every_table_its_case() -> None:
    assert set(TABLES) == set(SCENARIOS)


@case
def test_each_cell_is_what_the_product_computes(name: str) -> None:
    operators = {op.name.value.replace("_", " "): op for op in phase(name).operators}
    assert [row[0] for row in TABLES[name][:-1]] == list(operators)
    for label, flops, moved, time in TABLES[name][:-1]:
        op = operators[label]
        assert op.flops == pytest.approx(worked(flops), rel=1e-9)
        assert (op.link_bytes or op.bytes) == pytest.approx(worked(moved), rel=1e-9)
        assert op.time_s * 1e6 == pytest.approx(microseconds(time), rel=2e-3, abs=6e-5)


@case
def test_the_times_sum_to_the_ceiling(name: str) -> None:
    *rows, total = TABLES[name]
    assert total[0] == "**sum**"
    assert microseconds(total[3]) == pytest.approx(phase(name).ceiling_s * 1e6, rel=1e-4)
    assert sum(microseconds(row[3]) for row in rows) == pytest.approx(microseconds(total[3]), rel=1e-3)


@pytest.mark.parametrize(
    ("said", "computed"),
    [
        ("222.4", 256 * (1 - (1 - 8 / 256) ** 64)),
        ("125.9", 128 * (1 - (1 - 8 / 128) ** 64)),
        ("87 %", 100 * (1 - (1 - 8 / 256) ** 64)),
        ("11.17 GB", (10 * 131_072 + 52 * 1024) * 4096 * 2 / 1e9),
        ("66.6", 62 * 131_072 * 4096 * 2 / 1e9),
        ("81,920 B", 10 * 2 * 16 * 128 * 2),
        ("77,266,944 B", 36 * (32 * 128 * 128 * 4 + 8192 * 3 * 2)),
    ],
)
def test_the_numbers_of_the_text_divide(said: str, computed: float) -> None:
    assert said in DOCUMENT
    assert float(re.sub(r"[^0-9.]", "", said)) == pytest.approx(computed, rel=5e-3)


def test_64_sequences_of_qwen3_30b_a3b_need_87_4_gb_and_do_not_fit() -> None:
    found = evaluation("qwen3-30b-a3b h100-sxm-80gb batch 64")
    assert found.measures.memory.needed_bytes == pytest.approx(87.4e9, rel=1e-3)
    assert found.verdict.state == "does_not_fit"


def test_experts_take_three_quarters_of_deepseeks_step() -> None:
    step = phase("deepseek-v3 h200-sxm")
    (experts,) = [op for op in step.operators if op.name == "experts"]
    assert experts.time_s / step.ceiling_s == pytest.approx(0.75, abs=0.005)
