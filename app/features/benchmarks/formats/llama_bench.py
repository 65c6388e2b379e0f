"""Results of `llama-bench`: `-o json`, `-o jsonl`, `-o csv`, and the table that it prints.

No server and no crowd: a prompt (pp), a sequence token by token (tg), or both (pg), behind `n_depth` tokens.
"""

import re
from collections.abc import Sequence

from app.features.benchmarks.points import (
    MOST_POINTS,
    TOO_MANY,
    BarePass,
    BenchError,
    BenchPoint,
    Fields,
    Tool,
    kind_name,
    model_name,
)

CSV_HEADINGS = "build_commit,"
ON_THE_HOST = "a part of the model ran on the host, which the scenario has not"
NO_RATE = "no rate is told, or none of any tokens"
_HOSTS = {"CPU", "BLAS"}
"""Backends that are no GPU."""
_TABLE_HEADINGS = ("model", "test", "t/s")
_TEST = re.compile(
    r"(?:pp ?(?P<pp>[0-9]{1,9}))?\+?(?:tg ?(?P<tg>[0-9]{1,9}))?(?: @ d ?(?P<depth>[0-9]{1,9}))?", re.IGNORECASE
)


def is_llama_bench(values: dict[str, object]) -> bool:
    """Whether an object is a test of llama-bench."""
    return all(key in values for key in ("n_prompt", "n_gen", "avg_ts"))


def llama_bench_point(values: dict[str, object], where: str) -> BenchPoint:
    """One test.

    Raises:
        BenchError: a figure is no measurement; says which.
    """
    fields, backend = Fields(values, where), kind_name(values.get("backends") or values.get("backend"))
    rate, prompt, generated = fields.number("avg_ts"), fields.whole("n_prompt") or 0, fields.whole("n_gen") or 0
    bare = None
    if rate is not None and prompt + generated:
        depth, batch = fields.whole("n_depth") or 0, fields.whole("n_batch")
        bare = BarePass(prompt, generated, depth, rate, batch, _gpu_layers(fields))
    return BenchPoint(
        tool=Tool.LLAMA_BENCH,
        model=model_name(values.get("model_filename")),
        backend=backend,
        concurrency=1,
        bare=bare,
        unusable=ON_THE_HOST if _on_host(fields, backend) else NO_RATE if bare is None else None,
    )


def _on_host(fields: Fields, backend: str | None) -> bool:
    """Whether it says that layers, experts or the cache were kept from the GPU, or that there was none."""
    backends = {name.strip() for name in (backend or "GPU").split(",")}
    kept_back = str(fields.values.get("no_kv_offload")).lower() in ("true", "1")
    no_layers = str(fields.values.get("n_gpu_layers")) == "0"
    return backends <= _HOSTS or kept_back or no_layers or bool(fields.number("n_cpu_moe"))


def _gpu_layers(fields: Fields) -> int | None:
    """Layers on the GPU; None where it does not say, or -1: all."""
    return None if str(fields.values.get("n_gpu_layers")) == "-1" else fields.whole("n_gpu_layers")


def csv_points(rows: Sequence[Sequence[str]]) -> list[BenchPoint]:
    """The tests of a table in CSV.

    Raises:
        BenchError: a row does not fit its headings, or a figure is no measurement.
    """
    found = []
    for number, row in enumerate(rows[1:], start=1):
        if len(row) != len(rows[0]):
            raise BenchError(
                f"row {number} has {len(row):,} cells under {len(rows[0]):,} headings: the table is cut off."
            )
        values: dict[str, object] = dict(zip(rows[0], row, strict=True))
        if not is_llama_bench(values):
            raise BenchError("llama-bench's table without n_prompt, n_gen and avg_ts.")
        found.append(llama_bench_point(values, f"row {number}"))
    return found


def is_table(line: str) -> bool:
    """Whether a line is the headings of the table that llama-bench prints."""
    cells = _cells(line)
    return line.lstrip().startswith("|") and all(heading in cells for heading in _TABLE_HEADINGS)


def table_points(text: str) -> list[BenchPoint]:
    """The tests of printed tables, among whatever else was printed; models are named by kind there.

    Raises:
        BenchError: a figure is no measurement.
    """
    found: list[BenchPoint] = []
    headings: list[str] = []
    for line in text.splitlines():
        cells = _cells(line)
        if is_table(line):
            headings = cells
        elif not line.lstrip().startswith("|"):
            headings = []
        elif headings and len(cells) == len(headings) and (test := _TEST.fullmatch(cells[headings.index("test")])):
            told = dict(zip(headings, cells, strict=True))
            values: dict[str, object] = {
                "n_prompt": test["pp"],
                "n_gen": test["tg"],
                "n_depth": test["depth"],
                "avg_ts": told["t/s"].partition("±")[0].strip(),
                "n_batch": told.get("n_batch"),
                "n_gpu_layers": told.get("ngl"),
                "model_filename": told["model"].replace("/", " "),
                "backends": told.get("backend"),
            }
            found.append(llama_bench_point(values, f"row {len(found) + 1}"))
            if len(found) > MOST_POINTS:
                raise BenchError(TOO_MANY)
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
