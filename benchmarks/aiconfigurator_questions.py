"""A deployment as aiconfigurator asks for it: its names of models, systems and engines, and its number formats.

A model whose configuration it does not ship, but whose architecture it reads, is described by the few lines of a
configuration file that it needs. Formats are named where the measurement names them, and are left to its own reading
of the checkpoint where it does not.
"""

from collections.abc import Mapping
from typing import Any

from app.calc.deployment import Deployment
from app.calc.dtypes import WeightFormat
from app.calc.model.architecture import Architecture
from app.calc.model.layers.dense import DenseFeedForward
from app.calc.model.layers.grouped_attention import GroupedAttention
from app.catalog.measurements import Measurement

ENGINES: Mapping[str, str] = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
SYSTEMS: Mapping[str, str] = {
    "a100-sxm-80gb": "a100_sxm",
    "arc-pro-b60": "b60",
    "b200-sxm": "b200_sxm",
    "gb200": "gb200",
    "gb300": "gb300",
    "h100-sxm-80gb": "h100_sxm",
    "h200-sxm": "h200_sxm",
    "l40s": "l40s",
    "rtx-pro-6000-server": "rtx_pro_6000_server",
}
"""Cards that it has data of. Variants with another memory (A100 40 GB, GH200) are not what it measured."""
MODELS: Mapping[str, str] = {
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-v3.1": "deepseek-ai/DeepSeek-V3",
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "gemma-4-26b-a4b": "google/gemma-4-26B-A4B",
    "gemma-4-31b": "nvidia/Gemma-4-31B-IT-NVFP4",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "gpt-oss-20b": "openai/gpt-oss-20b",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "llama-3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-405b": "meta-llama/Meta-Llama-3.1-405B",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.3-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-4-maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "llama-4-scout": "meta-llama/Llama-4-Scout-17B-16E-Instruct",
    "minimax-m2": "MiniMaxAI/MiniMax-M2.5",
    "mixtral-8x22b": "mistralai/Mixtral-8x22B-v0.1",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "nemotron-3-super-120b-a12b": "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
    "qwen3-1.7b": "Qwen/Qwen3-1.7B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B",
    "qwen3-32b": "Qwen/Qwen3-32B",
}
"""Models of the same shapes share a name: Llama 3 and 3.1, the DeepSeek V3 series, MiniMax M2 to M2.7."""
DESCRIBED: Mapping[str, str] = {
    "llama-2-70b": "LlamaForCausalLM",
    "llama-2-7b": "LlamaForCausalLM",
    "qwen2.5-72b": "Qwen2ForCausalLM",
    "qwen2.5-7b": "Qwen2ForCausalLM",
}
OWN_CHECKPOINT: Mapping[tuple[str, WeightFormat], str] = {
    ("nemotron-3-super-120b-a12b", WeightFormat.NVFP4): "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
    ("kimi-k2.5", WeightFormat.NVFP4): "nvidia/Kimi-K2.5-NVFP4",
    ("qwen3-235b-a22b", WeightFormat.NVFP4): "nvidia/Qwen3-235B-A22B-NVFP4",
}
"""Checkpoints whose mix of formats it reads itself."""
BLOCK_FP8: Mapping[str, str] = {
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B-FP8",
    "qwen3-30b-a3b": "Qwen/Qwen3-30B-A3B-FP8",
    "qwen3-32b": "Qwen/Qwen3-32B-FP8",
}
"""The maker's own 8-bit checkpoints, with scales by block: what vLLM and SGLang are measured with."""
AS_SHIPPED = frozenset({"deepseek-r1", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2", "minimax-m2", "kimi-k2.5"})
"""Models quantized by their maker: left to its reading unless another format is measured."""
MODES: Mapping[WeightFormat, tuple[str, str]] = {
    WeightFormat.BF16: ("bfloat16", "bfloat16"),
    WeightFormat.FP16: ("bfloat16", "bfloat16"),
    WeightFormat.FP8: ("fp8", "fp8"),
    WeightFormat.NVFP4: ("nvfp4", "nvfp4"),
    WeightFormat.INT4: ("int4_wo", "int4_wo"),
}
"""Its modes of the matrices, and of those of experts. 16 bits are one mode; mxfp4 it reads from the checkpoint."""
CACHES: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "bfloat16", "fp8": "fp8", "int8": "int8"}


class NotAskableError(ValueError):
    """It has no name for a part of the question; the message says which."""


def question(row: Measurement, deployment: Deployment, step_tokens: int | None = None) -> dict[str, Any]:
    """The question about `row`, ready for the worker.

    Args:
        row: what was measured.
        deployment: the same, resolved.
        step_tokens: most tokens of prompts in a step, as far as the prompts that wait fill them; None is its default,
            one prompt whole.

    Raises:
        NotAskableError: it does not know the card or the model.
    """
    if row.accelerator not in SYSTEMS:
        raise NotAskableError(f"no data of the card: {row.accelerator}")
    split = deployment.split
    modes = _formats(row, deployment)
    ranks, prompt = split.tensor * split.data, int(row.prompt_tokens)
    # Its batch is that of one rank of attention and of one stage.
    batch = max(1, round(int(row.concurrency) / deployment.replicas / split.data / split.pipeline))
    return {
        "model": _model(row, deployment),
        "system": SYSTEMS[row.accelerator],
        "backend": ENGINES[row.engine],
        "isl": prompt,
        "osl": int(row.output_tokens),
        "prefix": int(row.cached_tokens or 0),
        "batch": batch,
        "ctx_tokens": prompt if step_tokens is None else min(step_tokens, prompt * max(1, batch - 1)),
        "replicas": deployment.replicas,
        "tp": split.tensor,
        "pp": split.pipeline,
        "dp": split.data,
        "moe_tp": ranks // split.expert,
        "moe_ep": split.expert,
        "gemm": modes and modes[0],
        "moe": modes and modes[1],
        "kv": CACHES.get(row.kv_cache),
    }


def _weights(deployment: Deployment) -> WeightFormat | None:
    label = deployment.precision.weights.label
    return label if isinstance(label, WeightFormat) else None


def _formats(row: Measurement, deployment: Deployment) -> tuple[str, str] | None:
    """Its modes by name; None where it reads them from the checkpoint."""
    weights = _weights(deployment)
    if weights is None or (row.model, weights) in OWN_CHECKPOINT or row.model in AS_SHIPPED:
        return None
    if weights is WeightFormat.FP8 and row.model in BLOCK_FP8 and row.engine != "tensorrt-llm":
        return None
    return MODES.get(weights)


def _model(row: Measurement, deployment: Deployment) -> str | dict[str, Any]:
    weights = _weights(deployment)
    if weights is not None and (row.model, weights) in OWN_CHECKPOINT:
        return OWN_CHECKPOINT[row.model, weights]
    if weights is WeightFormat.FP8 and row.model in BLOCK_FP8 and row.engine != "tensorrt-llm":
        return BLOCK_FP8[row.model]
    if row.model in MODELS:
        return MODELS[row.model]
    if row.model in DESCRIBED:
        return _configuration(deployment.architecture, DESCRIBED[row.model])
    raise NotAskableError(f"architecture not read: {row.model}")


def _configuration(architecture: Architecture, name: str) -> dict[str, Any]:
    """The lines of a `config.json` that it reads of a dense model whose layers are all alike."""
    (group,) = architecture.layers
    mixer, (feed_forward,) = group.mixer, group.feed_forwards
    assert isinstance(mixer, GroupedAttention)
    assert isinstance(feed_forward, DenseFeedForward)
    return {
        "architectures": [name],
        "num_hidden_layers": architecture.n_layers,
        "hidden_size": architecture.hidden_size,
        "intermediate_size": feed_forward.intermediate_size,
        "num_attention_heads": mixer.n_heads,
        "num_key_value_heads": mixer.n_kv_heads,
        "head_dim": mixer.head_dim,
        "vocab_size": architecture.vocab_size,
        "max_position_embeddings": architecture.max_position,
        "tie_word_embeddings": architecture.tied_embeddings,
    }
