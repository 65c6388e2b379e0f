import dataclasses
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.features.benchmarks.points import MOST_BYTES, MOST_POINTS, BenchError, BenchPoint, Tool
from app.features.benchmarks.reader import read
from tests.features.benchmarks.files import FOLDER, RESULTS, contents, points

TOOLS = {
    "vllm_serve.json": (Tool.VLLM, 1),
    "vllm_serve_appended.jsonl": (Tool.VLLM, 8),
    "sglang.jsonl": (Tool.SGLANG, 4),
    "guidellm_0.2.json": (Tool.GUIDELLM, 3),
    "guidellm_0.2.csv": (Tool.GUIDELLM, 3),
    "guidellm_0.5.json": (Tool.GUIDELLM, 3),
    "guidellm_0.5.csv": (Tool.GUIDELLM, 3),
    "aiperf.json": (Tool.AIPERF, 1),
    "aiperf.csv": (Tool.AIPERF, 1),
    "genai_perf.json": (Tool.GENAI_PERF, 1),
    "genai_perf.csv": (Tool.GENAI_PERF, 1),
    "llama_bench.json": (Tool.LLAMA_BENCH, 6),
    "llama_bench.csv": (Tool.LLAMA_BENCH, 6),
    "llama_bench.md": (Tool.LLAMA_BENCH, 6),
    "llama_bench_before_depth.jsonl": (Tool.LLAMA_BENCH, 3),
}
PRIVATE = ("secret", "internal", "someone", "somebody", "10.1.2.3", "0e9e39f249a1", "root", "GPU-")
ONE_RUN = {"request_throughput": 1.0, "total_token_throughput": 2.0, "completed": 1}


def refusal(given_bytes: bytes) -> str:
    with pytest.raises(BenchError) as caught:
        read(given_bytes)
    return str(caught.value)


@pytest.mark.parametrize("name", RESULTS)
def test_each_published_format_is_read_by_the_tool_that_writes_it(name: str) -> None:
    tool, runs = TOOLS[name]
    found = points(name)
    assert [point.tool for point in found] == [tool] * runs
    assert all(point.unusable is None for point in found)


@pytest.mark.parametrize("name", RESULTS)
def test_nothing_of_hosts_folders_people_and_prompts_is_kept(name: str) -> None:
    kept = " ".join(repr(dataclasses.asdict(point)) for point in points(name))
    assert not [word for word in PRIVATE if word in kept]


def test_milliseconds_become_seconds_and_totals_become_means() -> None:
    (point,) = points("vllm_serve.json")
    assert (point.concurrency, point.requests, point.request_rate_per_s) == (16, 128, None)
    assert (point.prompt_tokens, point.output_tokens) == (1024, 256)
    assert point.ttft.median_s == pytest.approx(0.1283713)
    assert point.tpot.p99_s == pytest.approx(0.0129424)
    assert point.latency.mean_s == pytest.approx(3.1599495)
    assert point.output_tokens_per_s == pytest.approx(1269.9099)
    assert point.model == "meta-llama/Llama-3.1-8B-Instruct"


def test_every_tool_tells_the_same_run_alike() -> None:
    told = [points(name)[0] for name in ("vllm_serve.json", "aiperf.json", "aiperf.csv", "genai_perf.csv")]
    for point in told:
        assert point.ttft.median_s == pytest.approx(0.12837, rel=1e-3)
        assert point.tpot.median_s == pytest.approx(0.01177, rel=1e-3)
        assert point.requests_per_s == pytest.approx(4.9606, rel=1e-3)


@pytest.mark.parametrize("release", ["0.2", "0.5"])
def test_the_csv_of_guidellm_says_what_its_json_says(release: str) -> None:
    for by_csv, by_json in zip(points(f"guidellm_{release}.csv"), points(f"guidellm_{release}.json"), strict=True):
        assert by_csv.ttft.p99_s == pytest.approx(by_json.ttft.p99_s, rel=1e-4)
        assert by_csv.tpot.median_s == pytest.approx(by_json.tpot.median_s, rel=1e-4)
        assert by_csv.mean_concurrency == pytest.approx(by_json.mean_concurrency)
        assert by_csv.output_tokens_per_s == pytest.approx(by_json.output_tokens_per_s)


def test_strategies_of_guidellm_are_closed_or_at_a_rate() -> None:
    for name in ("guidellm_0.2.json", "guidellm_0.5.json", "guidellm_0.2.csv"):
        alone, kept, sent = points(name)
        assert (alone.concurrency, kept.concurrency, sent.concurrency) == (1, 8, None)
        assert sent.request_rate_per_s == pytest.approx(7.97, abs=0.01)


def test_all_forms_of_llama_bench_agree() -> None:
    by_json = [point.bare for point in points("llama_bench.json")]
    assert [point.bare for point in points("llama_bench.csv")] == by_json
    for printed, whole in zip(points("llama_bench.md"), by_json, strict=True):
        assert printed.bare is not None
        assert whole is not None
        assert printed.bare.tokens_per_s == pytest.approx(whole.tokens_per_s, abs=0.01)
        assert (printed.bare.prompt_tokens, printed.bare.depth_tokens) == (whole.prompt_tokens, whole.depth_tokens)


def test_a_rate_without_bound_is_no_rate() -> None:
    closed, *_, sent = points("sglang.jsonl")
    assert closed.request_rate_per_s is None
    assert sent.request_rate_per_s == pytest.approx(10.57)
    assert sent.concurrency is None
    assert sent.mean_concurrency == pytest.approx(62.08)


def test_files_one_after_the_other_are_read_as_one() -> None:
    together = contents("vllm_serve.json") + contents("aiperf.json") + contents("sglang.jsonl")
    assert [point.tool for point in read(together)] == [Tool.VLLM, Tool.AIPERF, *[Tool.SGLANG] * 4]


def test_tables_one_after_the_other_are_read_as_one() -> None:
    tables = [
        contents(name).rstrip() for name in ("aiperf.csv", "genai_perf.csv", "guidellm_0.5.csv", "llama_bench.csv")
    ]
    found = read(b"\n".join(tables))
    counted = {tool: sum(point.tool is tool for point in found) for tool in Tool}
    assert counted[Tool.AIPERF] == counted[Tool.GENAI_PERF] == 1
    assert (counted[Tool.GUIDELLM], counted[Tool.LLAMA_BENCH]) == (3, 6)


def test_what_a_shell_writes_in_utf_16_is_read() -> None:
    assert read(contents("llama_bench.json").decode().encode("utf-16")) == points("llama_bench.json")


def test_a_run_on_the_host_is_told_apart() -> None:
    text = contents("llama_bench.json").replace(b'"n_gpu_layers": 99', b'"n_gpu_layers": 0')
    assert {point.unusable for point in read(text)} == {
        "a part of the model ran on the host, which the scenario has not"
    }


@pytest.mark.parametrize(
    ("given_text", "told"),
    [
        (b'"backends": "CUDA"', b'"backends": "CPU"'),
        (b'"backends": "CUDA"', b'"backends": "BLAS,CPU"'),
        (b'"n_depth": ', b'"no_kv_offload": true, "n_depth": '),
        (b'"n_depth": ', b'"n_cpu_moe": 4, "n_depth": '),
    ],
    ids=["cpu", "blas", "cache", "experts"],
)
def test_whatever_else_says_host_is_told_apart_too(given_text: bytes, told: bytes) -> None:
    assert {point.unusable for point in read(contents("llama_bench.json").replace(given_text, told))} == {
        "a part of the model ran on the host, which the scenario has not"
    }


def test_failures_are_counted_and_runs_that_are_not_counted_are_used() -> None:
    run = b'{"request_throughput": 1, "total_token_throughput": 1, "completed": 28, "failed": 100}'
    assert read(run)[0].failed == 100
    assert read(contents("guidellm_0.5.json").replace(b'"successful": 64', b'"of_them": 64'))[0].unusable is None
    (point,) = read(b'{"request_throughput": 1, "total_token_throughput": 1}')
    assert point.unusable == "how many requests were completed is not told"


@pytest.mark.parametrize("cell", ["N/A", "", "-", "null", "None"])
def test_a_cell_that_says_that_there_is_no_figure_is_none(cell: str) -> None:
    (point,) = read(contents("aiperf.csv").replace(b"134.79,89.86", f"{cell},89.86".encode()))
    assert point.ttft.mean_s is None
    assert point.ttft.median_s == pytest.approx(0.12837)


def test_what_a_step_gives_with_drafts_is_read() -> None:
    assert (
        read(contents("sglang.jsonl").replace(b'"accept_length": null', b'"accept_length": 2.4'))[0].step_tokens == 2.4
    )
    run = b'{"request_throughput": 1, "total_token_throughput": 1, "spec_decode_acceptance_length": 3.1}'
    assert read(run)[0].step_tokens == 3.1


def test_a_run_that_completed_nothing_is_kept_with_its_reason() -> None:
    (point,) = read(b'{"request_throughput": 0, "total_token_throughput": 0, "completed": 0}')
    assert point.unusable == "no request was completed"


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("/home/alice/models/Llama-3.1-8B/", "Llama-3.1-8B"),
        ("C:\\\\Users\\\\alice\\\\qwen.gguf", "qwen.gguf"),
        ("alice/qwen.gguf", "qwen.gguf"),
        ("/cache/models--Qwen--Qwen3-32B/snapshots/abc", "Qwen/Qwen3-32B"),
        ("https://box.example/v1/m", "m"),
    ],
)
def test_model_names_lose_their_folders(given_name: str, kept: str) -> None:
    text = f'{{"request_throughput": 1, "total_token_throughput": 1, "completed": 1, "model_id": "{given_name}"}}'
    assert read(text.encode())[0].model == kept


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "nothing in it"),
        (b"  \n", "nothing in it"),
        (b"<!doctype html><p>Not found", "web page"),
        (b'{"a": 1, "b": 2}', "keys seen: a, b"),
        (b'{"request_throughput": 1, "tot', "cut off"),
        (b'[{"n_prompt": 1', "cut off"),
        (b"[1, 2]", "no objects"),
        (b'"text"', "no file of results"),
        (b'{"experiments": []}', "raw profile"),
        (b'{"metadata": {}, "metrics": {}}', "single requests"),
        (b'{"avg_latency": 1, "latencies": []}', "bench latency"),
        (b'{"elapsed_time": 1, "requests_per_second": 2}', "bench throughput"),
        (b"============ Serving Benchmark Result ============", "--save-result"),
        (b"\x1f\x8b\x08\x00", "packed"),
        (b"PK\x03\x04", "packed"),
        (b"\xff\xff\xff", "UTF-8"),
        (b'{"a": "\x00"}', "zero bytes"),
        (b'{"benchmarks": []}', "no benchmarks"),
        (b'{"a": 1, "a": 2}', "same key twice"),
        (b"Metric,avg\nOutput,1\n", "without request latency"),
        (b"build_commit,n_prompt\nabc\n", "cut off"),
        (b"build_commit,n_prompt\nabc,1\n", "without n_prompt, n_gen and avg_ts"),
        (b'a,"b\nc', "no file of results"),
        (b'Metric,avg\nOutput,"1', "cell is not closed"),
        (b"Run Info,Benchmark\n", "no benchmarks"),
        (b"Type,Run Id,Id,Name\nx\n", "benchmarks.json instead"),
        (b"| model | test | t/s |\n| - | - | - |\n", "no run"),
    ],
)
def test_a_wrong_file_is_refused_by_name(text: bytes, words: str) -> None:
    assert words in refusal(text)


def test_sql_is_refused_by_name() -> None:
    assert "-o json" in refusal((FOLDER / "llama_bench.sql").read_bytes())


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("NaN", "mean_ttft_ms is NaN"),
        ("-Infinity", "mean_ttft_ms is Infinity"),
        ('"nan"', "mean_ttft_ms is nan"),
        ("-3.5", "mean_ttft_ms is negative"),
        ("1e13", "beyond 10^12"),
        ("1" + "0" * 400, "is not finite"),
        ("1e400", "too large for a double"),
        ("true", "is no number"),
        ('"fast"', "is no number"),
        ("[1]", "is no number"),
    ],
)
def test_what_is_no_measurement_is_refused_by_name(value: str, words: str) -> None:
    good = '{"request_throughput": 1, "total_token_throughput": 1, "completed": 1}'
    bad = good.replace("}", f', "mean_ttft_ms": {value}}}')
    message = refusal(f"{good}\n{bad}".encode())
    assert words in message
    assert "2" in message


def test_keys_are_shown_safely_and_values_never() -> None:
    message = refusal(b'{"\\u202ehidden\\n": "a value", "<b>": 1}')
    assert "a value" not in message
    assert "\u202e" not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "hostile",
    [
        b"[" * (MOST_BYTES // 4),
        b"[" * 5_000 + b"]" * 5_000,
        b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
        b'["' + b'\\"' * (MOST_BYTES // 8),
        b'{"a": "' + b"\\" * (MOST_BYTES // 4),
        b"[]" * (MOST_BYTES // 8),
        b'{"benchmarks": [' + b'{"metrics":{}},' * 25_000 + b'{"metrics":{}}]}',
        b"build_commit,n_prompt,n_gen,avg_ts\n" + b"a,1,1,1\n" * 50_000,
        b"| model | test | t/s |\n" + b"| m | pp1 | 1 |\n" * 25_000,
        b"{" + b'"k":1,' * 75_000 + b'"z":1}',
        b'{"request_throughput":1,"total_token_throughput":1,"completed":1}\n' * 20_000,
        b"a" * MOST_BYTES,
        b"Metric,avg\n" + b"a,\n" * (MOST_BYTES // 8),
    ],
    ids=range(13),
)
def test_hostile_files_are_refused_in_little_time(hostile: bytes) -> None:
    started = time.process_time()
    refusal(hostile)
    assert time.process_time() - started < 1


def test_a_file_beyond_the_limit_is_not_looked_at() -> None:
    assert "2 MiB" in refusal(b"x" * (MOST_BYTES + 1))


def test_as_many_runs_as_are_allowed() -> None:
    run = b'{"request_throughput":1,"total_token_throughput":1,"completed":1}\n'
    assert len(read(run * MOST_POINTS)) == MOST_POINTS
    assert f"{MOST_POINTS} runs" in refusal(run * (MOST_POINTS + 1))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_damage_to_a_file_is_read_or_refused(data: st.DataObject) -> None:
    text = bytearray(contents(data.draw(st.sampled_from(RESULTS))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=6))
    with suppress(BenchError):
        assert all(isinstance(point, BenchPoint) for point in read(bytes(text)))
