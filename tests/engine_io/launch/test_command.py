"""Commands as people paste them, and what is read of them."""

from typing import Any

import pytest

from app.engine_io.launch.command import read_command
from app.engine_io.launch.findings import CommandError, CommandReading, Reason, get
from tests.factories import shipped_catalog


def read(text: str) -> CommandReading:
    return read_command(text, shipped_catalog())


def fields(text: str) -> dict[str, Any]:
    """What is told, by path."""
    reading = read(text)
    assert all(get(reading.document, told.path) == told.value for told in reading.told)
    return {told.path: told.value for told in reading.told if told.path != "engine.id"}


LLAMA = {"model.id": "llama-3.1-8b", "precision.weights": "bf16"}
COMMANDS = {
    "positional model, equals signs, a size with a letter": (
        "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size=2 --max-model-len 32k --max-num-batched-tokens=8K",
        LLAMA | {"parallelism.tensor": 2, "engine.max_model_len": 32_000, "engine.max_batched_tokens": 8192},
    ),
    "the older entry point, underscores for dashes": (
        "python3 -m vllm.entrypoints.openai.api_server --model meta-llama/Llama-3.1-8B \\\n"
        "   --gpu_memory_utilization 0.92 --enable_prefix_caching --max_num_seqs 128",
        LLAMA
        | {
            "engine.memory_utilization": 0.92,
            "engine.prefix_caching": True,
            "engine.max_num_seqs": 128,
        },
    ),
    "short names": (
        "vllm serve meta-llama/Llama-3.1-8B -tp 4 -pp 2 -dp 2 -dcp 2 -ep -q fp8",
        {
            "model.id": "llama-3.1-8b",
            "precision.weights": "fp8",
            "parallelism.tensor": 4,
            "parallelism.pipeline": 2,
            "parallelism.data": 2,
            "parallelism.decode_context": 2,
            "parallelism.expert": 8,
        },
    ),
    "environment before, output behind": (
        "export HF_TOKEN=secret; VLLM_USE_V1=1 CUDA_VISIBLE_DEVICES=0,1 nohup vllm serve meta-llama/Llama-3.1-8B "
        "--enforce-eager --no-enable-prefix-caching > log.txt 2>&1 &",
        LLAMA | {"engine.enforce_eager": True, "engine.prefix_caching": False},
    ),
    "docker with its own options": (
        "docker run --runtime nvidia --gpus all -v ~/.cache/huggingface:/root/.cache/huggingface "
        '--env "HUGGING_FACE_HUB_TOKEN=<secret>" -p 8000:8000 --ipc=host '
        "vllm/vllm-openai:v0.11.0 --model meta-llama/Llama-3.1-8B --kv-cache-dtype fp8_e4m3",
        LLAMA | {"engine.version": "0.11.0", "precision.kv_cache": "fp8"},
    ),
    "speculation key by key": (
        "vllm serve deepseek-ai/DeepSeek-V3 --speculative-config.method deepseek_mtp "
        "--speculative-config.num_speculative_tokens 2",
        {
            "model.id": "deepseek-v3",
            "precision.weights": "fp8",
            "model.mtp": True,
            "techniques.speculative.draft_tokens": 2,
        },
    ),
    "a draft model": (
        "vllm serve meta-llama/Llama-3.1-8B -sc "
        """'{"model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 5, "draft_tensor_parallel_size": 1}'""",
        LLAMA | {"techniques.speculative.draft_tokens": 5, "techniques.speculative.draft.id": "llama-3.2-1b"},
    ),
    "a local folder that keeps the name, another name for the API": (
        "vllm serve /data/users/someone/Llama-3.1-8B-AWQ --served-model-name chat",
        {"model.id": "llama-3.1-8b", "precision.weights": "int4"},
    ),
    "a folder of the hub's cache": (
        "vllm serve /hf/hub/models--meta-llama--Llama-3.1-8B/snapshots/0123456789abcdef",
        LLAMA,
    ),
    "a path that says nothing, the served name does": (
        "vllm serve /mnt/weights --served-model-name meta-llama/Llama-3.1-8B",
        {"model.id": "llama-3.1-8b"},
    ),
    "sglang with abbreviations and data-parallel attention": (
        "python -m sglang.launch_server --model deepseek-ai/DeepSeek-V3 --tp 16 --dp 4 --enable-dp-attention "
        "--ep 16 --trust-remote-code --mem-frac 0.85 --speculative-algorithm EAGLE --speculative-num-steps 3 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        {
            "model.id": "deepseek-v3",
            "precision.weights": "fp8",
            "parallelism.tensor": 4,
            "parallelism.data": 4,
            "parallelism.expert": 16,
            "engine.memory_utilization": 0.85,
            "model.mtp": True,
            "techniques.speculative.draft_tokens": 3,
        },
    ),
    "sglang replicas": (
        "sglang serve --model-path meta-llama/Llama-3.1-8B --dp-size 4 --tp-size 2 --disable-radix-cache",
        LLAMA | {"parallelism.tensor": 2, "hardware.count": 8, "engine.prefix_caching": False},
    ),
    "trtllm with a file, older names": (
        "cat >./extra.yml <<EOF\nenable_attention_dp: true\nkv_cache_config:\n    dtype: fp8\n"
        "    enable_block_reuse: false\nspeculative_config:\n  decoding_type: MTP\n  num_nextn_predict_layers: 3\n"
        "cuda_graph_config:\n  enable_padding: true\nEOF\n"
        "mpirun -n 8 trtllm-serve serve deepseek-ai/DeepSeek-V3 --tp_size 8 --ep_size 8 --max_batch_size 161 "
        "--kv_cache_free_gpu_memory_fraction 0.95 --extra_llm_api_options ./extra.yml",
        {
            "model.id": "deepseek-v3",
            "precision.weights": "fp8",
            "parallelism.data": 8,
            "parallelism.expert": 8,
            "engine.max_num_seqs": 161,
            "engine.memory_utilization": 0.95,
            "precision.kv_cache": "fp8",
            "engine.prefix_caching": False,
            "engine.enforce_eager": False,
            "model.mtp": True,
            "techniques.speculative.draft_tokens": 3,
        },
    ),
    "llama.cpp from a hub": (
        "./build/bin/llama-server -hf someone/Llama-3.1-8B-GGUF:Q4_K_M -ngl 99 -c 32768 -np 4 -fa on "
        "-ctk q8_0 -ctv q8_0",
        {
            "model.id": "llama-3.1-8b",
            "precision.weights": "int4",
            "engine.max_num_seqs": 4,
            "engine.max_model_len": 8192,
            "precision.kv_cache": "int8",
        },
    ),
    "llama.cpp over cards, with a draft of an earlier build": (
        "llama-server -m Llama-3.1-8B-Q8_0.gguf -md Llama-3.2-1B-Q4_0.gguf --draft-max 16 -ts 1,1,0,2 -sm layer "
        "-ub 1024",
        {
            "model.id": "llama-3.1-8b",
            "precision.weights": "int8",
            "parallelism.pipeline": 3,
            "engine.max_batched_tokens": 1024,
            "techniques.speculative.draft_tokens": 16,
            "techniques.speculative.draft.id": "llama-3.2-1b",
        },
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_as_it_is_pasted(name: str) -> None:
    text, expected = COMMANDS[name]
    assert fields(text) == expected


def test_a_manifest_with_a_shell_inside() -> None:
    reading = read(
        """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat, namespace: team-a}
spec:
  replicas: 3
  template:
    spec:
      initContainers:
      - name: fetch
        image: busybox
        command: ["sh", "-c", "echo ready"]
      containers:
      - name: engine
        image: "docker.io/vllm/vllm-openai:v0.10.2"
        command: ["/bin/sh", "-c"]
        args:
        - |
          vllm serve meta-llama/Llama-3.1-8B \\
            --tensor-parallel-size 2 --api-key $API_KEY
        env:
        - name: HUGGING_FACE_HUB_TOKEN
          valueFrom: {secretKeyRef: {name: hub, key: token}}
        resources: {limits: {nvidia.com/gpu: "2"}}
"""
    )
    assert reading.variant == "kubernetes"
    assert reading.document["hardware"] == {"count": 6}
    assert reading.document["engine"] == {"id": "vllm", "version": "0.10.2"}
    assert "hub" not in repr(reading)


def test_a_compose_file() -> None:
    reading = read(
        "services:\n  chat:\n    image: vllm/vllm-openai:v0.11.0-x86_64\n    ports: ['8000:8000']\n"
        "    command: --model meta-llama/Llama-3.1-8B --max-model-len 4096\n"
    )
    assert reading.variant == "container"
    assert reading.document["engine"] == {"id": "vllm", "version": "0.11.0", "max_model_len": 4096}
    assert reading.document["model"] == {"id": "llama-3.1-8b"}


def test_an_args_list_alone_needs_its_launcher() -> None:
    assert (
        fields('args: ["vllm", "serve", "meta-llama/Llama-3.1-8B", "--max-num-seqs 32"]')["engine.max_num_seqs"] == 32
    )
    with pytest.raises(CommandError, match="no container"):
        read('args: ["--max-num-seqs", "32"]')


def test_values_of_llm_d() -> None:
    reading = read(
        """
multinode: false
modelArtifacts:
  uri: "hf://{{ .Values.modelArtifacts.name }}"
  name: meta-llama/Llama-3.1-8B
decode:
  replicas: 2
  parallelism: {tensor: 4, dataLocal: 2}
  containers:
  - name: vllm
    image: ghcr.io/llm-d/llm-d-cuda:v0.3.0
    modelCommand: vllmServe
    args:
      - "--block-size=64"
      - "--kv-transfer-config"
      - '{"kv_connector":"NixlConnector", "kv_role":"kv_both"}'
prefill:
  create: true
  containers:
  - args: ["--enforce-eager"]
"""
    )
    assert (reading.engine, reading.variant) == ("vllm", "llm-d")
    assert reading.document["engine"] == {"id": "llm-d", "underneath": "vllm", "block_size": 64}
    assert reading.document["parallelism"] == {"tensor": 4, "data": 2}
    assert reading.document["hardware"] == {"count": 16}
    assert {unread.flag: unread.reason for unread in reading.unread} == {
        "--kv-transfer-config": Reason.NO_FIELD,
        "--prefill": Reason.VALUE,
    }


def test_what_sets_nothing_is_named_with_its_reason() -> None:
    reading = read(
        "vllm serve $MODEL --tensor-parallel-size ${TP} --port 80 --swap-space 16 --load-format dummy "
        "--kv-cache-dtype turboquant_k8v4"
    )
    assert {unread.flag: unread.reason for unread in reading.unread} == {
        "--model": Reason.VALUE,
        "--tensor-parallel-size": Reason.VALUE,
        "--port": Reason.WITHOUT_EFFECT,
        "--swap-space": Reason.UNKNOWN,
        "--load-format": Reason.NO_FIELD,
        "--kv-cache-dtype": Reason.VALUE,
    }
    assert reading.missing == ("model", "hardware", "workload")


def test_names_of_people_hosts_and_secrets_do_not_survive() -> None:
    reading = read(
        "HF_TOKEN=hf_abcdef docker run -e HF_TOKEN=hf_abcdef -v /home/jdoe/weights:/w registry.corp.example/x:1 "
        "vllm serve /home/jdoe/project-x --host db7.corp.example --api-key sk-12345 --served-model-name project-x "
        "--hf-token hf_abcdef --chat-template /home/jdoe/t.jinja --made-up jdoe"
    )
    for secret in ("hf_abcdef", "jdoe", "corp", "sk-12345", "project-x", "jinja"):
        assert secret not in repr(reading)
    assert "model" in reading.missing


def test_flags_win_over_the_comment_line() -> None:
    text = (
        "# Tokenroof: hw=h100-sxm-80gb&model=custom&config=%7B%7D&tp=8&batch=\n"
        "vllm serve meta-llama/Llama-3.1-8B --tensor-parallel-size 2"
    )
    document = read(text).document
    assert document["parallelism"]["tensor"] == 2
    assert document["model"] == {"id": "llama-3.1-8b"}
    assert document["workload"] == {"concurrency": None}


def test_a_comment_without_its_speculative_flag_is_set_aside() -> None:
    document = read("# Tokenroof: draft=llama-3.2-1b\nvllm serve meta-llama/Llama-3.1-8B").document
    assert document["techniques"]["speculative"] is None


REFUSED = {
    "vllm serve a/b --max-model-len=-5": "--max-model-len must be a whole number",
    "vllm serve a/b --tensor-parallel-size 1e3": "--tensor-parallel-size must be a whole number",
    "vllm serve a/b --tensor-parallel-size 99999": "--tensor-parallel-size is out of range",
    "vllm serve a/b --max-num-seqs 999999999999999999999": "--max-num-seqs must be a whole number",
    "vllm serve a/b --gpu-memory-utilization nan": "--gpu-memory-utilization must be a number",
    "vllm serve a/b --gpu-memory-utilization 1e999": "--gpu-memory-utilization must be a finite number",
    "vllm serve a/b --gpu-memory-utilization 90": "--gpu-memory-utilization is out of range",
    "vllm serve a/b --block-size 16 --block-size 32": "--block-size is given twice",
    "vllm serve a/b --block-size": "--block-size needs a value",
    "vllm serve a/b --enforce-eager=maybe": "--enforce-eager is a switch",
    "vllm serve a/b --speculative-config '{'": "--speculative-config is no JSON",
    "vllm serve a/b --speculative-config '[1]'": "--speculative-config must be a JSON object",
    """vllm serve a/b --speculative-config '{"method": "mtp", "num_speculative_tokens": 1.5}'""": "whole number",
    """vllm serve a/b --speculative-config '{"method": "mtp", "num_speculative_tokens": 65}'""": "out of range",
    """vllm serve a/b --speculative-config '{"method": ["mtp"], "num_speculative_tokens": 1}'""": "must be texts",
    "vllm serve 'a/b": "A ' is missing",
    'vllm serve "a/b': 'A " is missing',
    "sglang serve --model a/b --tp 4 --dp 3 --enable-dp-attention": "multiple",
    "llama-server -c 10 -np 64": "--ctx-size is less",
    "llama-server -ts 1,x": "--tensor-split must be a number",
    "vllm serve a/b\nvllm serve c/d": "more than one launch",
    "vllm serve a/b\nllama-server -m x.gguf": "more than one launch",
    "INFO 01-01 engine.py:1] Initializing an engine (v0.11.0) with config: model=x": "No launch command",
    "": "nothing to read",
    "vllm serve a/b\x00": "control characters",
    "vllm serve a/b\x1b[31m": "control characters",
    "x" * 65_537: "longer than 64 KiB",
    "é" * 40_000: "longer than 64 KiB",
    "# Tokenroof: tp=two\nvllm serve a/b": "line # Tokenroof",
    "# Tokenroof: x%ff=%ff\nvllm serve a/b": "line # Tokenroof",
    "apiVersion: v1\nkind: Pod\nspec: &a [*a, *a]": "anchors",
    "apiVersion: v1\nkind: Pod\nspec: !!python/object:os.system x": "anchors, aliases and tags",
    "apiVersion: v1\nkind: Pod\n<<: {a: 1}": "line 3",
    "apiVersion: v1\nkind: Pod": "no container",
    "kind: Pod\nkind: Pod": "there twice",
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_read_is_refused_by_name(text: str) -> None:
    with pytest.raises(CommandError, match=REFUSED[text].replace("(", r"\(")):
        read(text)
