"""The fields of a scenario in words, as the workbench's form calls them, and their values as a person reads them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from app.answer import Answer
from app.calc.dtypes import Dtype
from app.calc.notation import quantity, significant
from app.scenario_query import FIELDS, Kind

_KINDS = {field.path: field.kind for field in FIELDS}
# Path: label, unit.
_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "schema_version": ("Version of the scenario’s form", ""),
        "calibration.name": ("Calibrated by", ""),
        "model.id": ("Model", ""),
        "model.name": ("Name of your model", ""),
        "model.config": ("Its config.json", ""),
        "model.quantization": ("Its hf_quant_config.json", ""),
        "model.read_as": ("Read as", ""),
        "model.architecture": ("A description, in place of a config", ""),
        "model.mtp": ("Load the multi-token-prediction layers, where the model has any", ""),
        "hardware.id": ("Accelerator", ""),
        "hardware.custom": ("Accelerator of your own", ""),
        "hardware.custom.name": ("Name of your accelerator", ""),
        "hardware.custom.memory_gb": ("Memory", "GB"),
        "hardware.custom.memory_reported_mib": ("Reported memory", "MiB"),
        "hardware.custom.bandwidth_gb_per_s": ("Bandwidth", "GB/s"),
        **{
            f"hardware.custom.dense_tflops.{d}": (f"Dense {d}", "TOP/s" if d.value.startswith("int8") else "TFLOP/s")
            for d in Dtype
        },
        "hardware.custom.tdp_w": ("Power", "W"),
        "hardware.custom.usd_per_hour": ("Price an hour", "$"),
        "hardware.custom.link_one_way_gb_per_s": ("Link, one way", "GB/s"),
        "hardware.count": ("All GPUs", ""),
        "precision.weights": ("Weights", ""),
        "precision.kv_cache": ("KV cache", ""),
        "precision.compute": ("Arithmetic", ""),
        "parallelism.tensor": ("GPUs that share each layer", ""),
        "parallelism.pipeline": ("Pipeline stages", ""),
        "parallelism.expert": ("Expert groups", ""),
        "parallelism.data": ("Data ranks", ""),
        "parallelism.decode_context": ("Context ranks", ""),
        "engine.id": ("Engine, whose rules divide the memory", ""),
        "engine.underneath": ("Engine underneath", ""),
        "engine.version": ("Release", ""),
        "engine.memory_utilization": ("Share of the card it may use", ""),
        "engine.max_model_len": ("Longest sequence served", "tokens"),
        "engine.max_num_seqs": ("Sequences at a time", ""),
        "engine.max_batched_tokens": ("Tokens of a step", ""),
        "engine.block_size": ("Tokens of a block", ""),
        "engine.prefix_caching": ("Prefix caching", ""),
        "engine.enforce_eager": ("No captured CUDA graphs (eager)", ""),
        "engine.total_memory_bytes": ("Seen by the engine", ""),
        "engine.weights_bytes": ("Loaded weights", ""),
        "engine.activation_bytes": ("Activations, peak", ""),
        "engine.non_framework_bytes": ("Non-framework", ""),
        "engine.graph_bytes": ("CUDA graphs", ""),
        "engine.kv_pool_bytes": ("Cache pool", ""),
        "workload.prompt_tokens": ("Prompt", "tokens"),
        "workload.output_tokens": ("Answer", "tokens"),
        "workload.concurrency": ("Users at a time", ""),
        "workload.prefix_hit_rate": ("Prompt found in the prefix cache", ""),
        "workload.slo_ttft_s": ("First token within", "s"),
        "workload.slo_tpot_s": ("Each token within", "s"),
        "techniques.speculative.draft_tokens": ("Guesses a step", ""),
        "techniques.speculative.draft": ("Draft", ""),
        "techniques.speculative.draft.id": ("Draft", ""),
        "techniques.speculative.draft.config": ("The draft’s config.json", ""),
        "observed.kv_tokens": ("Logged tokens", ""),
        "observed.gpu_blocks": ("Logged blocks", ""),
        "observed.max_concurrency": ("Logged concurrency", ""),
        "memory_basis": ("Memory of the card", ""),
    }
)
_UNSET = {
    "calibration.name": "published measurements",
    "workload.concurrency": "as many as fit",
    "workload.slo_ttft_s": "no target",
    "workload.slo_tpot_s": "no target",
    "engine.max_model_len": "model’s limit",
    "engine.version": "the newest known",
    "precision.weights": "as shipped (native)",
    "techniques.speculative.draft.id": "none",
    "techniques.speculative.draft_tokens": "none",
}
_NAMED = {"native": "as shipped (native)", "reported": "as the driver reports it", "marketed": "as on the box"}
_LONGEST = 80


def label_of(path: str) -> str:
    """The field at `path` in words; one that has none is called by its path, made readable."""
    if path in _WORDS:
        return _WORDS[path][0]
    above = next((p for p in _above(path) if _KINDS.get(p) is Kind.JSON), None)
    if above is not None:
        return f"{label_of(above)}: {path.removeprefix(above + '.')}"
    parts = path.removesuffix(".id").split(".")
    words = [part.replace("_", " ") for part in (parts[1:] or parts)[-2:]]  # the section says little beside the field
    text = ", ".join(reversed(words))
    return text[:1].upper() + text[1:]


def value_words(path: str, value: Any, answer: Answer, *, binary: bool = False) -> str:
    """A value of the field at `path`, with its unit."""
    if path == "model.id":
        return answer.evaluation.deployment.architecture.name
    if path == "hardware.id":
        return answer.evaluation.deployment.accelerator.name
    if path == "engine.id":
        return answer.engine.name
    if value is None:
        return _UNSET.get(path, "not set")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return f"given, {len(value):,} {'entry' if len(value) == 1 else 'entries'}"
    if isinstance(value, (int, float)):
        return _number(path, value, binary=binary)
    text = _NAMED.get(str(value), str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _number(path: str, value: float, *, binary: bool) -> str:
    if _KINDS.get(path) is Kind.BYTES:
        return quantity(value, "B", 4, binary=binary)
    unit = _WORDS.get(path, ("", ""))[1]
    number = f"{value:,}" if isinstance(value, int) else significant(value, 6)
    return f"${number}" if unit == "$" else f"{number} {unit}".rstrip()


def phrase_of(path: str, value: Any, answer: Answer) -> str:
    """The value as the name of a plan that differs in it: short, and clear without its label."""
    words = value_words(path, value, answer)
    pattern = _PHRASES.get(path)
    if path in ("model.id", "hardware.id", "engine.id"):
        return words
    if path == "workload.concurrency" and value is None:
        return "as many users as fit"
    if pattern is None:
        return f"{label_of(path)}: {words}"
    text = pattern.format(words)
    return text.removesuffix("s") if value == 1 and text.endswith(("users", "GPUs")) else text


_PHRASES = {
    "hardware.count": "{} GPUs",
    "precision.weights": "weights {}",
    "precision.kv_cache": "cache {}",
    "precision.compute": "arithmetic {}",
    "parallelism.tensor": "TP {}",
    "parallelism.pipeline": "PP {}",
    "parallelism.expert": "EP {}",
    "parallelism.data": "DP {}",
    "parallelism.decode_context": "DCP {}",
    "engine.version": "release {}",
    "workload.prompt_tokens": "prompt {}",
    "workload.output_tokens": "answer {}",
    "workload.concurrency": "{} users",
}


def _above(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:n]) for n in range(1, len(parts))]
