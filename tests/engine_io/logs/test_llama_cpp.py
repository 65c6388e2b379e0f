"""llama.cpp and ik_llama.cpp: buffers of each device."""

import pytest

from app.catalog.catalog import Catalog
from app.engine_io.logs.reader import read_log
from tests.engine_io.logs import logs

MIB = 2.0**20


def test_the_fullest_device_stands_for_the_rest(catalog: Catalog) -> None:
    reading = read_log(logs.LLAMA_CPP, catalog)
    assert reading.release == "b6182"
    assert reading.document == {
        "model": {"id": "qwen3-30b-a3b"},
        "hardware": {"id": "rtx-3090", "count": 2},
        "precision": {"weights": "int4", "kv_cache": "fp16"},
        "parallelism": {"tensor": 1, "pipeline": 2},
        "engine": {
            "id": "llama.cpp",
            "version": "b6182",
            "max_model_len": 8192,
            "max_num_seqs": 4,
            "max_batched_tokens": 512,
            "weights_bytes": 8867.11 * MIB,
            "activation_bytes": 300.75 * MIB,
            "kv_pool_bytes": 1600.0 * MIB,
        },
        "observed": {"kv_tokens": 32_768},
    }
    assert [(f.rank, f.printed) for f in reading.figures if f.id == "weights"] == [
        ("CUDA0", "8867.11 MiB"),
        ("CUDA1", "8656.20 MiB"),
    ]
    assert not any("smallest" in note for note in reading.notes)


def test_layers_left_in_the_hosts_memory_are_said(catalog: Catalog) -> None:
    reading = read_log(logs.LLAMA_CPP_2024, catalog)
    assert any(note.startswith("20 of 33 layers") for note in reading.notes)
    # A decimal comma, as some locales print it.
    assert reading.document["engine"]["weights_bytes"] == pytest.approx(4403.49 * MIB)
    assert reading.document["precision"] == {"weights": "int8", "kv_cache": "int8"}
    assert reading.document["model"] == {"id": "llama-3.1-8b"}
    assert reading.release == "b4067"


def test_window_layers_and_states_are_added_to_the_pool(catalog: Catalog) -> None:
    document = read_log(logs.LLAMA_CPP_WINDOW, catalog).document
    assert document["engine"]["kv_pool_bytes"] == (416.0 + 97.5 + 50.25) * MIB
    assert document["precision"]["weights"] == "bf16"


def test_ik_llama_with_one_latent_cache(catalog: Catalog) -> None:
    document = read_log(logs.IK_LLAMA_CPP, catalog).document
    assert document["engine"]["version"] == "b3840"
    assert document["engine"]["weights_bytes"] == 9335.0 * MIB
    assert document["engine"]["activation_bytes"] == 7376.02 * MIB
    assert document["precision"]["kv_cache"] == "int8"


def test_a_trial_context_is_replaced_by_the_last(catalog: Catalog) -> None:
    trial = "llama_context: n_ctx         = 4096\nllama_kv_cache:    Vulkan0 KV buffer size =    50.00 MiB\n"
    document = read_log(trial + logs.LLAMA_CPP_WINDOW, catalog).document
    assert document["engine"]["kv_pool_bytes"] == (416.0 + 97.5 + 50.25) * MIB
    assert document["observed"] == {"kv_tokens": 32_768}


def test_a_draft_model_is_left_out(catalog: Catalog) -> None:
    draft = """\
llama_model_loader: loaded meta data with 30 key-value pairs and 310 tensors from /models/Qwen3-0.6B-Q8_0.gguf (version
load_tensors:        CUDA0 model buffer size =   604.00 MiB
llama_context: n_ctx         = 4096
llama_kv_cache_unified:      CUDA0 KV buffer size =   448.00 MiB
"""
    head, _, tail = logs.LLAMA_CPP.partition("srv          init")
    reading = read_log(head + draft + "srv          init" + tail, catalog)
    assert reading.document == read_log(logs.LLAMA_CPP, catalog).document
    assert any("draft" in note for note in reading.notes)


def test_keys_and_values_of_two_types_are_noted(catalog: Catalog) -> None:
    reading = read_log(logs.LLAMA_CPP_2024.replace("V (q8_0)", "V (q4_0)"), catalog)
    assert "kv_cache" not in reading.document["precision"]
    assert any("Keys and values" in note for note in reading.notes)


def test_a_remote_device_says_no_address(catalog: Catalog) -> None:
    log = "load_tensors: RPC[192.168.17.4:50052] model buffer size = 6011.00 MiB\n"
    reading = read_log(log, catalog)
    assert [f.rank for f in reading.figures] == ["RPC"]
    assert "192.168" not in repr(reading)


def test_a_file_format_without_a_name_is_noted(catalog: Catalog) -> None:
    reading = read_log(logs.LLAMA_CPP.replace("Q4_K - Medium", "Q6_K"), catalog)
    assert "weights" not in reading.document["precision"]
    assert any("no name" in note for note in reading.notes)
