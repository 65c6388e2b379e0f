"""docs/memory.md: every cell of its tables is computed from the logs and the laws, and compared."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.calc.memory.engines.paged_pool import BlockRoom
from app.calc.memory.engines.rules import Law
from tests.log_accuracy import (
    Accuracy,
    from_flags_accuracy,
    from_pool_accuracy,
    given,
    left_out,
    predictable,
    prints_parts,
)
from tests.log_evidence import ENGINES, PARTS, laws_of, measured
from tests.logged_starts import GIB, by_id, divided, logs
from tests.test_llama_cpp_logs import SIZED, cache_is_met

DOCUMENT = (Path(__file__).parents[1] / "docs" / "memory.md").read_text(encoding="utf-8")
TABLES = {
    found[1]: [[cell.strip() for cell in line.strip("|").split("|")] for line in found[2].splitlines()[2:]]
    for found in re.finditer(r"<!-- (.+?) -->\n\n((?:\|.*\n)+)", DOCUMENT)
}
WORKED = "v1-qwen36-35b-5090-a"
SETS = ("kv-logs", "new")


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def from_pool_rows() -> Iterator[list[str]]:
    """Logs whose pool is given: n, median, within 0.5 %, rounding holds the number; and the exceptions."""
    for name in SETS:
        for engine in ENGINES[:3]:
            found = from_pool_accuracy(given(name, engine))
            close = sum(1 for log in given(name, engine) if from_pool_accuracy([log]).median <= 0.005)
            exceptions = len(given(name, engine, exceptions=True))
            counts = (percent(found.median, 3), close, round(found.coverage * found.n), exceptions)
            yield [name, engine, str(found.n), *map(str, counts)]


def accuracy_cells(found: Accuracy) -> list[str]:
    return [str(found.n), percent(found.median), percent(found.p90), percent(found.coverage, 0)]


def from_flags_rows() -> Iterator[list[str]]:
    """Logs of which only card, model, split and flags are taken."""
    for name in SETS:
        for engine in ENGINES[:3]:
            yield [name, engine, *accuracy_cells(from_flags_accuracy(predictable(name, engine)))]
    of_vllm = predictable(engine="vllm")
    yield ["both", "vllm, parts printed", *accuracy_cells(from_flags_accuracy(filter(prints_parts, of_vllm)))]
    others = [log for log in of_vllm if not prints_parts(log)]
    yield ["both", "vllm, no parts printed", *accuracy_cells(from_flags_accuracy(others))]
    yield ["both", "vllm", *accuracy_cells(from_flags_accuracy(of_vllm))]


def left_out_rows() -> Iterator[list[str]]:
    """Reasons and how many logs have them, the most frequent first."""
    reasons = Counter(reason for log in logs() if (reason := left_out(log)))
    for reason, count in sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0])):
        yield [reason, str(count)]


def law_rows() -> Iterator[list[str]]:
    """Engine, part, the middle in symbols, the interval, logs, how many of them lie within."""
    for engine in ENGINES:
        for part in PARTS:
            law = getattr(laws_of(engine), part)
            if law is None:
                continue
            found = measured(engine, part)
            within = str(sum(one.holds for one in found)) if found else "–"
            if isinstance(law, Law):
                middle = " + ".join(
                    ["P"] * (part == "activation")
                    + [f"{law.fixed_gib:g}"]
                    + [f"{law.per_gpu_gib:g} n"] * bool(law.per_gpu_gib)
                )
            else:
                middle = f"W + {law.added_gib:g}" if law.added_gib else "W"
            yield [engine, part, middle, f"× {law.low:g} to {law.high:g}", str(len(found)), within]


def llama_cpp_rows() -> Iterator[list[str]]:
    """Caches to the MiB, and compute buffers within the interval."""
    sized = [log for log in SIZED if log.exception is None]
    yield ["cache within 1 MiB", str(len(sized)), str(sum(map(cache_is_met, sized)))]
    buffers = measured("llama.cpp", "activation")
    yield ["compute buffer within its interval", str(len(buffers)), str(sum(one.holds for one in buffers))]


def worked_rows() -> Iterator[list[str]]:
    """The blocks of one hybrid log, step by step."""
    log = by_id(WORKED)
    pool = log.logged["pool_gib"]
    room = divided(log, pool).tightest.plan
    assert isinstance(room, BlockRoom)
    plan = room.plan
    assert plan is not None
    length = log.scenario["engine"]["max_model_len"]
    blocks, demand = plan.blocks(pool * GIB), plan.blocks_of(length)
    full = next(kind for kind in plan.kinds if not kind.is_state)
    states = next(kind for kind in plan.kinds if kind.is_state)
    page = plan.block_bytes / 10
    yield ["state of a layer", "32 × 128 × 128 × 4 + 8192 × 3 × 2", f"{32 * 128 * 128 * 4 + 8192 * 3 * 2:,} B"]
    yield ["row of an attention layer", "2 × 2 × 256 × 1", f"{2 * 2 * 256:,} B"]
    yield ["tokens of a block", "⌈2146304 ÷ 1024⌉, up to a multiple of 16", f"{full.block_tokens:,}"]
    yield ["page", "2096 × 1024", f"{page:,.0f} B"]
    yield ["groups of 10 layers", "10 ÷ 10 + 30 ÷ 10", f"{full.groups + states.groups}"]
    yield ["blocks of the pool", "⌊5.98 × 2^30 ÷ (10 × 2146304)⌋", f"{blocks}"]
    yield ["blocks of a sequence", "⌈131072 ÷ 2096⌉ + 3 × 2", f"{demand}"]
    yield ["concurrency", "299 ÷ 69", f"{blocks / demand:.2f}"]
    yield ["new token line", "⌊299 ÷ 69 × 131072⌋", f"{room.concurrency_tokens_line(pool * GIB, length):,}"]
    yield ["old token line", "⌊299 ÷ 4⌋ × 2096", f"{room.block_tokens_line(pool * GIB):,}"]


def exception_rows() -> Iterator[list[str]]:
    """Logs whose printed number our rules do not give."""
    for log in logs():
        if log.exception:
            yield [log.id, log.exception]


EXPECTED: dict[str, Callable[[], Iterator[list[str]]]] = {
    "from the pool": from_pool_rows,
    "from the flags": from_flags_rows,
    "left out": left_out_rows,
    "laws": law_rows,
    "llama.cpp": llama_cpp_rows,
    "worked": worked_rows,
    "exceptions": exception_rows,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_every_cell_is_computed(name: str) -> None:
    assert TABLES[name] == list(EXPECTED[name]())


def test_there_is_no_other_table() -> None:
    assert set(TABLES) == set(EXPECTED)


def test_the_working_of_the_example_is_arithmetic() -> None:
    for _, cell, result in TABLES["worked"]:
        if re.fullmatch(r"[0-9 ×÷+.()⌊⌋⌈⌉^]+", cell) and not re.search(r"[⌊⌋⌈⌉]", cell):
            value = eval(cell.replace("×", "*").replace("÷", "/").replace("^", "**"))
            assert value == pytest.approx(float(result.removesuffix(" B").replace(",", "")), abs=0.005)
