"""The runs in a file of results, whichever of the known tools wrote it."""

import csv
import io
import re
from collections.abc import Sequence
from itertools import islice

from app.checkpoint.text import clean_text
from app.features.benchmarks.formats import aiperf, guidellm, llama_bench, serving_results
from app.features.benchmarks.formats import guidellm as guidellm_csv
from app.features.benchmarks.points import MOST_POINTS, TOO_MANY, BenchError, BenchPoint, as_text, json_values

_KEYS_SHOWN, _KEY_SHOWN = 8, 40
_MOST_ROWS = MOST_POINTS + guidellm_csv.MOST_HEADINGS
# Where the next file begins: at the headings of its table.
_TABLES = re.compile(
    f"^(?={re.escape(aiperf.CSV_HEADINGS)}avg|{re.escape(llama_bench.CSV_HEADINGS)}|{guidellm_csv.OLD}"
    f"|{guidellm_csv.NEW})",
    re.MULTILINE,
)
KNOWN = "vllm bench serve, SGLang bench_serving, GuideLLM, AIPerf, GenAI-Perf or llama-bench"
# What else these tools write, known by keys that nothing else has.
_NEIGHBOURS: Sequence[tuple[frozenset[str], str]] = (
    (frozenset({"experiments"}), "GenAI-Perf's raw profile: bring its profile_export_genai_perf.json."),
    (frozenset({"metadata", "metrics"}), "AIPerf's list of single requests: bring its profile_export_aiperf.json."),
    (
        frozenset({"elapsed_time", "requests_per_second"}),
        "a result of vllm bench throughput: vllm bench serve is read.",
    ),
    (frozenset({"avg_latency", "latencies"}), "a result of vllm bench latency: vllm bench serve is read."),
    (frozenset({"prefill_throughput", "median_decode_latency"}), "a result of SGLang's bench_one_batch."),
)


def read(given: bytes) -> tuple[BenchPoint, ...]:
    """The runs in `given`, in its order: at least one, at most 500.

    Raises:
        BenchError: it is of no tool that is read here, cut off, or holds something that is no measurement.
    """
    text = as_text(given).strip()
    points = _points(text)
    if not points:
        raise BenchError("There is no run in it.")
    if len(points) > MOST_POINTS:
        raise BenchError(TOO_MANY)
    return tuple(points)


def _points(text: str) -> list[BenchPoint]:
    if text.startswith(("{", "[")):
        return _of_json(text)
    if text.startswith("<"):
        raise BenchError("This is a web page, or other markup: bring the file of results itself.")
    head = text[:4096]
    if "CREATE TABLE" in head or "INSERT INTO llama_bench" in head or "INSERT INTO test" in head:
        raise BenchError("This is llama-bench's SQL output: save it as json, with -o json.")
    if any(llama_bench.is_table(line) for line in text.splitlines()):
        return llama_bench.table_points(text)
    if "Serving Benchmark Result" in text:
        raise BenchError(
            "This is the summary that the tool printed: save the result, with --save-result in vLLM or --output-file "
            "in SGLang, and bring that."
        )
    return _of_csv(text)


def _of_json(text: str) -> list[BenchPoint]:
    found: list[BenchPoint] = []
    for value in json_values(text):
        for one in value if isinstance(value, list) else [value]:
            if not isinstance(one, dict):
                raise BenchError("This is JSON, but of values that are no objects; no benchmark tool writes that.")
            found += _of_object(one, f"run {len(found) + 1}")
            if len(found) > MOST_POINTS:
                return found
    return found


def _of_object(values: dict[str, object], where: str) -> list[BenchPoint]:
    if llama_bench.is_llama_bench(values):
        return [llama_bench.llama_bench_point(values, where)]
    if guidellm.is_guidellm(values):
        return guidellm.guidellm_points(values, where)
    if aiperf.is_aiperf(values):
        return [aiperf.aiperf_point(values, where)]
    if serving_results.is_sglang(values):
        return [serving_results.sglang_point(values, where)]
    if serving_results.is_vllm(values):
        return [serving_results.vllm_point(values, where)]
    for keys, words in _NEIGHBOURS:
        if keys <= values.keys():
            raise BenchError(f"This is {words}")
    raise BenchError(f"This is a JSON of no benchmark tool that is read here ({KNOWN}); keys seen: {_keys(values)}.")


def _of_csv(text: str) -> list[BenchPoint]:
    """The runs of a table, or of several files of them one after the other."""
    found: list[BenchPoint] = []
    for table in _TABLES.split(text):
        if table.strip():
            found += _of_table(table, len(found) + 1)
            if len(found) > MOST_POINTS:
                break
    return found


def _of_table(text: str, number: int) -> list[BenchPoint]:
    known = (llama_bench.CSV_HEADINGS, guidellm_csv.OLD, guidellm_csv.NEW, aiperf.CSV_HEADINGS)
    if not text.startswith(known):
        raise BenchError(f"This is no file of results that is read here; known are those of {KNOWN}.")
    try:
        written = (row for row in csv.reader(io.StringIO(text), strict=True) if any(cell.strip() for cell in row))
        rows = list(islice(written, _MOST_ROWS + 1))
    except csv.Error as error:
        raise BenchError("This is no CSV: a cell is not closed, or longer than a cell may be.") from error
    if len(rows) > _MOST_ROWS:
        raise BenchError(TOO_MANY)
    if text.startswith(llama_bench.CSV_HEADINGS):
        return llama_bench.csv_points(rows)
    if text.startswith(guidellm_csv.OLD):
        return guidellm.guidellm_points(guidellm_csv.old_report(rows), "the table")
    if text.startswith(guidellm_csv.NEW):
        return guidellm.guidellm_points(guidellm_csv.new_report(rows), "the table")
    return [aiperf.csv_point(rows, f"table {number}")]


def _keys(values: dict[str, object]) -> str:
    """The names of the first fields, fit to be shown; never their values."""
    shown = []
    for key in list(values)[:_KEYS_SHOWN]:
        try:
            shown.append(clean_text(key[:_KEY_SHOWN]))
        except ValueError:
            continue
    return ", ".join(shown) or "none"
