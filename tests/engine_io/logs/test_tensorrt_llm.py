"""TensorRT-LLM: built engines and the PyTorch backend."""

from app.catalog.catalog import Catalog
from app.engine_io.logs.reader import read_log
from tests.engine_io.logs import logs

GIB, MIB = 2.0**30, 2.0**20


def test_the_runtime_of_built_engines(catalog: Catalog) -> None:
    reading = read_log(logs.TENSORRT_CPP, catalog)
    assert reading.release == "0.17.0.post1"
    assert reading.document == {
        "engine": {
            "id": "tensorrt-llm",
            "version": "0.17.0.post1",
            "max_model_len": 2048,
            "max_num_seqs": 64,
            "max_batched_tokens": 8192,
            "block_size": 64,
            "prefix_caching": True,
            "total_memory_bytes": 79.10 * GIB,
            "weights_bytes": 6695 * MIB,
            "activation_bytes": 1134.01 * MIB,
            "non_framework_bytes": 43.29 * MIB + 180.30 * MIB,
            "kv_pool_bytes": 63.44 * GIB,
        },
        "observed": {"kv_tokens": 259_840, "gpu_blocks": 4060},
    }


def test_the_pool_after_profiling_is_in_force(catalog: Catalog) -> None:
    document = read_log(logs.TENSORRT_PYTORCH, catalog).document
    assert document["engine"]["kv_pool_bytes"] == 5.95 * GIB
    assert document["engine"]["weights_bytes"] == 63.32 * GIB
    assert document["engine"]["activation_bytes"] == 0.85 * GIB
    assert document["engine"]["non_framework_bytes"] == 49.28 * GIB
    assert document["engine"]["total_memory_bytes"] == 119.70 * GIB
    assert document["engine"]["memory_utilization"] == 0.8999999761581421
    assert document["observed"] == {"kv_tokens": 86_720, "gpu_blocks": 2710}
    assert document["model"] == {"id": "gpt-oss-120b"}
    assert document["engine"]["max_num_seqs"] == 64


def test_without_a_word_of_profiling_the_last_pool_is_in_force(catalog: Catalog) -> None:
    log = """\
[11/22/2025-11:19:23] [TRT-LLM] [I] Using LLM with PyTorch backend
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 0.56 GiB for max tokens in paged KV cache (8224).
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 3.17 GiB for max tokens in paged KV cache (46208).
"""
    assert read_log(log, catalog).document["observed"] == {"kv_tokens": 46_208}


def test_ranks_of_mpirun_are_kept_apart(catalog: Catalog) -> None:
    log = """\
[1,0]<stdout>:[TensorRT-LLM][INFO] Loaded engine size: 6695 MiB
[1,1]<stdout>:[TensorRT-LLM][INFO] Loaded engine size: 6695 MiB
[1,0]<stdout>:[TensorRT-LLM][INFO] [MemUsageChange] Allocated 63.44 GiB for max tokens in paged KV cache (259840).
[1,1]<stdout>:[TensorRT-LLM][INFO] [MemUsageChange] Allocated 62.44 GiB for max tokens in paged KV cache (255744).
"""
    reading = read_log(log, catalog)
    assert reading.document["engine"]["kv_pool_bytes"] == 62.44 * GIB
    assert {f.rank for f in reading.figures} == {"rank 0", "rank 1"}
    assert any("62.44 to 63.44" in note for note in reading.notes)
