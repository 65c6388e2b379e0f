"""Names of models, settings and versions: no paths, hosts or addresses, and no guesses where several are told."""

import pytest

from app.machine.probes.reading import Absence
from app.machine.probes.servers.adapter import SETTINGS
from app.machine.probes.servers.adapters import adapter_of, known_adapters, wanted_names
from app.machine.probes.servers.exposition import Exposition, read_exposition
from app.machine.probes.servers.measure import model_name, settings, version, without_path


def told(*lines: str) -> Exposition:
    found = read_exposition("".join(f"{line}\n" for line in lines).encode(), wanted_names())
    assert isinstance(found, Exposition)
    return found


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("llama", "llama"),
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("/models/Qwen3-8B", "Qwen3-8B"),
        ("/home/someone/model", "model"),
        ("/home/someone/models/qwen", "models/qwen"),
        ("/data/models/Qwen/Qwen3-8B/", "Qwen/Qwen3-8B"),
        ("/mnt/home/someone/model", "model"),
        ("../models/llama.gguf", "llama.gguf"),
        ("./llama.gguf", "llama.gguf"),
        ("~/models/llama.gguf", "llama.gguf"),
        ("C:\\Users\\someone\\llama.gguf", "llama.gguf"),
        ("C:/models/llama.gguf", "llama.gguf"),
        ("\\\\host\\share\\llama.gguf", "llama.gguf"),
        ("s3://bucket/org/model", "org/model"),
        ("/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/9c925d64", "Qwen/Qwen3-8B"),
        ("/", ""),
    ],
)
def test_of_a_path_only_the_end_is_kept(name: str, shown: str) -> None:
    assert without_path(name) == shown


def test_several_models_have_no_one_name() -> None:
    one = 'vllm:num_requests_running{model_name="a"} 1'
    assert model_name(told(one), adapter_of("vllm")).value == "a"
    assert model_name(told(one, 'vllm:num_requests_waiting{model_name="b"} 1'), adapter_of("vllm")).absence is (
        Absence.NOT_REPORTED
    )
    assert model_name(told('vllm:num_requests_running{model_name="undefined"} 1'), adapter_of("vllm")).value is None


def test_settings_are_those_on_the_list_that_are_set_and_harmless() -> None:
    exposition = told(
        'vllm:cache_config_info{block_size="16",cache_dtype="/etc/passwd",gpu_memory_utilization="None",'
        'num_gpu_blocks="\u202e12",sliding_window="user@host",enable_prefix_caching="True",host="10.0.0.1"} 1'
    )
    assert dict(settings(exposition, adapter_of("vllm"))) == {
        "block_size": "16",
        "enable_prefix_caching": "True",
        "num_gpu_blocks": "12",
    }


def test_no_adapter_shows_a_label_that_could_be_private() -> None:
    shown = {label for adapter in known_adapters() for labels in adapter.labels.values() for label in labels}
    shown |= {key for adapter in known_adapters() for key in adapter.gauges}
    assert shown <= SETTINGS
    assert not any(word in label for label in shown for word in ("path", "host", "url", "user", "dir", "name"))


def test_the_version_is_told_where_a_metric_has_it() -> None:
    picker = adapter_of("endpoint-picker")
    assert version(told('inference_extension_info{build_ref="v1.2",commit="ab"} 1'), picker).value == "v1.2"
    assert version(told('inference_extension_info{build_ref="",commit="ab"} 1'), picker).value == "ab"
    assert version(told("inference_pool_ready_pods 1"), picker).absence is Absence.NOT_REPORTED
