"""vLLM's logs of several releases give back exactly what they print."""

import pytest

from app.catalog.catalog import Catalog
from app.engine_io.logs.findings import LogReading, Unit
from app.engine_io.logs.reader import read_log
from tests.engine_io.logs import logs

GIB = 2.0**30


def printed(reading: LogReading, id_: str) -> list[tuple[str | None, str]]:
    return [(figure.rank, figure.printed) for figure in reading.figures if figure.id == id_]


def test_v0_tells_every_part_of_its_budget(catalog: Catalog) -> None:
    reading = read_log(logs.VLLM_V0, catalog)
    assert reading.release == "0.6.6.post1"
    assert reading.document == {
        "model": {"id": "llama-3-8b"},
        "hardware": {"count": 1},
        "precision": {"weights": "bf16", "kv_cache": "bf16"},
        "parallelism": {"tensor": 1, "pipeline": 1},
        "engine": {
            "id": "vllm",
            "version": "0.6.6.post1",
            "memory_utilization": 0.9,
            "max_model_len": 8192,
            "max_num_seqs": 256,
            "block_size": 16,
            "prefix_caching": False,
            "enforce_eager": False,
            "total_memory_bytes": 39.5 * GIB,
            "weights_bytes": 14.9595 * GIB,
            "activation_bytes": 9.37 * GIB,
            "non_framework_bytes": 0.10 * GIB,
            "graph_bytes": 0.36 * GIB,
            "kv_pool_bytes": 11.12 * GIB,
        },
        "observed": {"gpu_blocks": 5691, "max_concurrency": 11.12},
    }
    assert printed(reading, "weights") == [(None, "14.9595 GB")]
    assert printed(reading, "graphs") == [(None, "0.36 GiB")]
    assert reading.accelerator_candidates[:2] == ("a100-pcie-40gb", "a100-sxm-40gb")
    assert reading.notes == ()


def test_v0_of_2024_tells_a_peak_from_which_the_activations_follow(catalog: Catalog) -> None:
    engine = read_log(logs.VLLM_V0_SHORT, catalog).document["engine"]
    assert engine["activation_bytes"] == pytest.approx((2.50 - 0.9271) * GIB)
    assert engine["kv_pool_bytes"] == 68.08 * GIB
    assert engine["non_framework_bytes"] == 0.62 * GIB
    assert engine["memory_utilization"] == 0.9


def test_a_negative_budget_is_said_and_kept_out_of_the_scenario(catalog: Catalog) -> None:
    reading = read_log(logs.VLLM_V0_NEGATIVE, catalog)
    assert printed(reading, "pool") == [(None, "-1.05 GiB")]
    assert "kv_pool_bytes" not in reading.document["engine"]
    assert any("-1.05 GiB" in note for note in reading.notes)
    assert reading.document["observed"] == {"gpu_blocks": 0, "max_concurrency": 0.0}
    assert reading.document["model"] == {"id": "qwen2.5-7b"}
    assert reading.document["precision"] == {"weights": "int4", "kv_cache": "fp16"}


def test_of_two_workers_the_smaller_pool_decides(catalog: Catalog) -> None:
    reading = read_log(logs.VLLM_V1, catalog)
    assert printed(reading, "pool") == [("TP0 EP0", "44.61 GiB"), ("TP1 EP1", "44.59 GiB")]
    assert reading.notes == (
        "The workers' pools are 44.59 to 44.61 GiB; the smallest decides how many tokens all hold.",
    )
    document = reading.document
    assert document["engine"]["kv_pool_bytes"] == 47878721024.0
    assert document["observed"] == {"kv_tokens": 973_760, "gpu_blocks": 1790, "max_concurrency": 14.77}
    assert document["parallelism"] == {"tensor": 2, "pipeline": 1, "expert": 2, "data": 1}
    assert document["hardware"] == {"id": "h200-sxm", "count": 2}
    assert document["model"] == {"id": "qwen3-next-80b-a3b", "mtp": True}
    assert document["techniques"] == {"speculative": {"draft_tokens": 2}}
    assert document["engine"]["block_size"] == 544
    assert document["engine"]["max_num_seqs"] == 512
    assert document["engine"]["graph_bytes"] == 2.37 * GIB
    assert reading.accelerator_candidates == ()
    assert reading.missing == ()


def test_an_estimate_that_the_budget_lacks_was_charged(catalog: Catalog) -> None:
    reading = read_log(logs.VLLM_CHARGED, catalog)
    assert reading.release == "0.26.1rc1.dev229"
    assert reading.document["engine"]["graph_bytes"] == 4.99 * GIB
    assert printed(reading, "graphs") == [("TP2", "4.13 GiB")]
    assert reading.document["observed"]["kv_tokens"] == 1_139_456
    assert reading.document["parallelism"]["decode_context"] == 2
    assert reading.document["precision"] == {"weights": "nvfp4", "kv_cache": "fp8"}


def test_consumed_memory_less_the_weights_is_what_no_framework_counts(catalog: Catalog) -> None:
    engine = read_log(logs.VLLM_CONSUMED, catalog).document["engine"]
    assert engine["weights_bytes"] == 15.0 * GIB
    assert engine["non_framework_bytes"] == pytest.approx(0.26 * GIB)
    # 72.91 - 15.26 - 1.44 = 56.21: nothing is left that graphs could have been charged.
    assert engine["graph_bytes"] == 0.0


def test_a_refusal_to_start_still_tells_the_pool(catalog: Catalog) -> None:
    reading = read_log(logs.VLLM_REFUSED, catalog)
    assert reading.document["engine"]["kv_pool_bytes"] == 48.66 * GIB
    assert reading.document["engine"]["max_model_len"] == 262_144
    assert printed(reading, "needed") == [(None, "62.00 GiB")]
    assert printed(reading, "length_possible") == [(None, "205728 tokens")]
    assert reading.document["hardware"]["count"] == 8


def test_the_older_refusal_tells_tokens(catalog: Catalog) -> None:
    log = (
        "Loading model weights took 57.752 GB\nValueError: The model's max seq len (131072) is larger than the maximum "
        "number of tokens that can be stored in KV cache (79392). Try increasing it."
    )
    reading = read_log(log, catalog)
    assert reading.document["observed"] == {"kv_tokens": 79_392}
    assert reading.document["engine"]["max_model_len"] == 131_072


def test_workers_without_ranks_are_numbered(catalog: Catalog) -> None:
    log = """\
(EngineCore_0 pid=1159) (RayWorkerWrapper pid=345, ip=10.42.9.225) INFO Available KV cache memory: 45.32 GiB
(EngineCore_0 pid=1159) (RayWorkerWrapper pid=345, ip=10.42.9.226) INFO Available KV cache memory: 44.10 GiB
\x1b[36m(RayWorkerWrapper pid=345, ip=10.42.9.225)\x1b[0m INFO Model loading took 17.2217 GiB [repeated 3x]
"""
    reading = read_log(log, catalog)
    assert [(f.rank, f.printed) for f in reading.figures] == [
        ("worker 1", "17.2217 GiB"),
        ("worker 1", "45.32 GiB"),
        ("worker 2", "44.10 GiB"),
    ]
    assert reading.document["engine"]["kv_pool_bytes"] == 44.10 * GIB


def test_parts_that_miss_the_budget_are_noted(catalog: Catalog) -> None:
    reading = read_log(logs.VLLM_V1.replace("5.58 GiB for peak", "9.58 GiB for peak"), catalog)
    assert any("add up to 129.83 GiB" in note and "125.83 GiB" in note for note in reading.notes)


def test_a_draft_model_of_the_catalog_is_told(catalog: Catalog) -> None:
    log = (
        "Initializing a V1 LLM engine (v0.20.0) with config: model='Qwen/Qwen3-32B', speculative_config="
        "SpeculativeConfig(method='draft_model', model='Qwen/Qwen3-0.6B', num_spec_tokens=5), dtype=torch.bfloat16\n"
        "Available KV cache memory: 5.0 GiB"
    )
    document = read_log(log, catalog).document
    assert document["techniques"] == {"speculative": {"draft_tokens": 5, "draft": {"id": "qwen3-0.6b"}}}


def test_figures_carry_units(catalog: Catalog) -> None:
    units = {figure.id: figure.unit for figure in read_log(logs.VLLM_V1, catalog).figures}
    assert units["tokens"] is Unit.TOKENS
    assert units["concurrency"] is Unit.REQUESTS
    assert units["utilization"] is Unit.SHARE
    assert units["blocks"] is Unit.BLOCKS
