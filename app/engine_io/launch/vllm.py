"""vLLM: `vllm serve`, and its flags in both directions."""

import json
from collections.abc import Mapping
from typing import Any

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.time.speculation import Method
from app.catalog.catalog import Catalog
from app.checkpoint.text import StrictJsonError, loads
from app.engine_io.launch.arguments import Arguments
from app.engine_io.launch.findings import CommandError, Findings, Reason, get, whole
from app.engine_io.launch.invocation import (
    Invocation,
    begin,
    drafter_source,
    guesser_of,
    read_cast,
    read_draft,
    read_model,
)
from app.scenario.scenario import Scenario

ENGINE = "vllm"
SERVE = ("vllm", "serve")
CASTS = {
    WeightFormat.FP8: ("--quantization", "fp8"),
    WeightFormat.BF16: ("--dtype", "bfloat16"),
    WeightFormat.FP16: ("--dtype", "float16"),
    WeightFormat.FP32: ("--dtype", "float32"),
}
_CACHES = {
    Dtype.BF16: "bfloat16",
    Dtype.FP16: "float16",
    Dtype.FP8: "fp8",
    Dtype.INT8: "int8_per_token_head",
    Dtype.INT4: "int4_per_token_head",
    Dtype.FP4: "nvfp4",
}
_CACHE_MEANINGS = {word: dtype for dtype, word in _CACHES.items()} | dict.fromkeys(
    ("fp8_e4m3", "fp8_e5m2", "fp8_inc", "fp8_ds_mla", "fp8_per_token_head"), Dtype.FP8
)
DTYPES = {
    "bfloat16": WeightFormat.BF16,
    "float16": WeightFormat.FP16,
    "half": WeightFormat.FP16,
    "float32": WeightFormat.FP32,
    "float": WeightFormat.FP32,
}
QUANTIZATIONS = {
    "fp8": WeightFormat.FP8,
    "modelopt": WeightFormat.FP8,
    "modelopt_fp8": WeightFormat.FP8,
    "w8a8_fp8": WeightFormat.FP8,
    "awq": WeightFormat.INT4,
    "awq_marlin": WeightFormat.INT4,
    "w8a8_int8": WeightFormat.INT8,
    "mxfp4": WeightFormat.MXFP4,
    "modelopt_fp4": WeightFormat.NVFP4,
}
"""Formats that the word alone settles; gptq and compressed-tensors may be of several widths."""
_METHODS = {Method.DRAFT_MODEL: "draft_model", Method.EAGLE: "eagle3", Method.MTP: "mtp", Method.NGRAM: "ngram"}
_METHOD_MEANINGS = {word: method for method, word in _METHODS.items()} | {
    "eagle": Method.EAGLE,
    "ngram_gpu": Method.NGRAM,
}
_NAMES_OF_HEADS = ("eagle-", "eagle3")
"""By which vLLM knows a head where no method is given."""


def write(scenario: Scenario, catalog: Catalog) -> Invocation:
    """The flags of a scenario."""
    told = begin(scenario, catalog, CASTS)
    split, engine = scenario.parallelism, scenario.engine
    for flag, size in (
        ("--tensor-parallel-size", split.tensor),
        ("--pipeline-parallel-size", split.pipeline),
        ("--data-parallel-size", split.data),
        ("--decode-context-parallel-size", split.decode_context),
    ):
        told.add(flag, size if size > 1 else None)
    if split.expert > 1:
        everywhere = split.expert == split.tensor * split.data
        told.switch("--enable-expert-parallel", everywhere)
        if not everywhere:
            told.note("vLLM spreads experts over all tensor × data ranks or none: expert parallelism is not said here.")
    told.add("--kv-cache-dtype", _CACHES.get(scenario.precision.kv_cache))
    if scenario.precision.kv_cache not in _CACHES:
        told.note(f"vLLM has no {scenario.precision.kv_cache} cache.")
    told.add("--gpu-memory-utilization", engine.memory_utilization)
    told.add("--max-model-len", engine.max_model_len)
    told.add("--max-num-seqs", engine.max_num_seqs)
    told.add("--max-num-batched-tokens", engine.max_batched_tokens)
    told.add("--block-size", engine.block_size)
    if engine.prefix_caching is not None:
        told.switch("--enable-prefix-caching" if engine.prefix_caching else "--no-enable-prefix-caching", True)
    _write_whole_prompts(told, scenario)
    told.switch("--enforce-eager", engine.enforce_eager)
    told.add("--speculative-config", _speculation(told, scenario, catalog))
    return told


def _write_whole_prompts(told: Invocation, scenario: Scenario) -> None:
    """Chunked prefill is on unless it is denied."""
    if scenario.techniques.chunked_prefill:
        return
    told.switch("--no-enable-chunked-prefill", True)
    step, longest = scenario.engine.max_batched_tokens, scenario.engine.max_model_len
    if step is not None and (longest is None or step < longest):
        told.note(
            "Without chunked prefill vLLM starts only if --max-num-batched-tokens is at least the longest sequence "
            "that it serves."
        )


def _speculation(told: Invocation, scenario: Scenario, catalog: Catalog) -> str | None:
    speculative, method = scenario.techniques.speculative, guesser_of(scenario)
    if speculative is None or method is None:
        return None
    config: dict[str, Any] = {"method": _METHODS[method]}
    if drafter := drafter_source(told, scenario, catalog):
        config["model"] = drafter
    return json.dumps({**config, "num_speculative_tokens": speculative.draft_tokens})


def read(given: Arguments, findings: Findings, catalog: Catalog, files: Mapping[str, str]) -> None:
    """Set what the flags say."""
    served = given.take("--served-model-name")
    model = given.take("--model") or next(iter(given.positionals), None)
    held = read_model(findings, "--model", model, served, catalog)
    read_cast(findings, "--dtype", given.take("--dtype"), held, DTYPES)
    read_cast(findings, "--quantization", given.take("--quantization"), held, QUANTIZATIONS)
    for flag, path in (
        ("--tensor-parallel-size", "parallelism.tensor"),
        ("--pipeline-parallel-size", "parallelism.pipeline"),
        ("--data-parallel-size", "parallelism.data"),
        ("--decode-context-parallel-size", "parallelism.decode_context"),
        ("--max-num-seqs", "engine.max_num_seqs"),
        ("--block-size", "engine.block_size"),
    ):
        findings.whole(flag, path, given.take(flag))
    findings.whole("--max-model-len", "engine.max_model_len", given.take("--max-model-len"), sizes=True)
    findings.whole(
        "--max-num-batched-tokens", "engine.max_batched_tokens", given.take("--max-num-batched-tokens"), sizes=True
    )
    if given.take_switch("--enable-expert-parallel"):
        ranks = (get(findings.document, "parallelism.tensor") or 1) * (get(findings.document, "parallelism.data") or 1)
        findings.tell("--enable-expert-parallel", "parallelism.expert", ranks)
    findings.choice("--kv-cache-dtype", "precision.kv_cache", given.take("--kv-cache-dtype"), _CACHE_MEANINGS)
    findings.real("--gpu-memory-utilization", "engine.memory_utilization", given.take("--gpu-memory-utilization"))
    _read_pool(findings, given.take("--kv-cache-memory-bytes"))
    for flag, path in (
        ("--enable-prefix-caching", "engine.prefix_caching"),
        ("--enforce-eager", "engine.enforce_eager"),
        ("--enable-chunked-prefill", "techniques.chunked_prefill"),
    ):
        on = given.take_switch(flag)
        if on is not None:
            findings.tell(flag, path, on)
    _read_speculation(given, findings, catalog)


def _read_pool(findings: Findings, text: str | None) -> None:
    flag = "--kv-cache-memory-bytes"
    if text is not None and findings.resolved(flag, text):
        size = whole(flag, text, sizes=True)
        if size is not None:
            findings.tell(flag, "engine.kv_pool_bytes", float(size))


def _read_speculation(given: Arguments, findings: Findings, catalog: Catalog) -> None:
    flag = "--speculative-config"
    config: dict[str, Any] = dict(given.nested.pop(flag, {}))
    text = given.take(flag)
    if text is not None and findings.resolved(flag, text.replace("<", "")):
        config |= _object(flag, text)
    for name, key in (
        ("--spec-method", "method"),
        ("--spec-model", "model"),
        ("--spec-tokens", "num_speculative_tokens"),
    ):
        value = given.take(name)
        if value is not None:
            config[key] = value
    if not config:
        return
    word, model = config.get("method"), config.get("model")
    if not (word is None or isinstance(word, str)) or not (model is None or isinstance(model, str)):
        raise CommandError(f"{flag}: method and model must be texts.")
    method = _method(word, model)
    if method is None:
        findings.leave(flag, Reason.VALUE)
        return
    findings.whole(flag, "techniques.speculative.draft_tokens", _written(flag, config.get("num_speculative_tokens")))
    findings.guessed_by(flag, method)
    if method is Method.DRAFT_MODEL:
        read_draft(findings, flag, model, catalog)


def _method(word: str | None, model: str | None) -> Method | None:
    """Who guesses, by the word for it, or by the name of the drafter where there is none; None for other ways."""
    if word is not None:
        return Method.MTP if word.endswith("_mtp") else _METHOD_MEANINGS.get(word)
    if not model:
        return Method.NGRAM
    is_head = any(part in model.lower() for part in _NAMES_OF_HEADS)
    return Method.EAGLE if is_head else Method.DRAFT_MODEL


def _object(flag: str, text: str) -> dict[str, Any]:
    try:
        config = loads(text)
    except StrictJsonError as error:
        raise CommandError(f"{flag} is no JSON that is read here: {error}") from error
    if not isinstance(config, dict):
        raise CommandError(f"{flag} must be a JSON object.")
    return config


def _written(flag: str, value: Any) -> str:
    """A number of the JSON as text, to be read as any other."""
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise CommandError(f"{flag}: num_speculative_tokens must be a whole number.")
    text = str(value) if isinstance(value, str) or abs(value) < 10**15 else "9" * 15
    if text in ("0", "-1", "auto"):
        raise CommandError(f"{flag}: num_speculative_tokens must be 1 or more.")
    return text
