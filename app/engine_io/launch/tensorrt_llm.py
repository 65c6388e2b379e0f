"""TensorRT-LLM: `trtllm-serve`, its flags and the options of its YAML file, in both directions."""

from collections.abc import Mapping
from typing import Any

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.time.speculation import Method
from app.catalog.catalog import Catalog
from app.engine_io.launch.arguments import Arguments
from app.engine_io.launch.findings import CommandError, Findings, Reason, put, yes
from app.engine_io.launch.invocation import (
    Invocation,
    begin,
    drafter_source,
    guesser_of,
    read_cast,
    read_draft,
    read_model,
)
from app.engine_io.launch.plain_yaml import read_documents
from app.engine_io.launch.vllm import DTYPES
from app.scenario.scenario import Scenario

ENGINE = "tensorrt-llm"
SERVE = ("trtllm-serve",)
OPTIONS_FILE = "tokenroof.yaml"
_CASTS = {
    WeightFormat.BF16: ("dtype", "bfloat16"),
    WeightFormat.FP16: ("dtype", "float16"),
    WeightFormat.FP32: ("dtype", "float32"),
}
_CACHES = {Dtype.FP8: "fp8", Dtype.FP4: "nvfp4"}
_CACHE_MEANINGS = {"fp8": Dtype.FP8, "nvfp4": Dtype.FP4, "int8": Dtype.INT8}
# The file's keys that are flags too, and the field that both set.
_SIZES: Mapping[str, str] = {
    "pipeline_parallel_size": "parallelism.pipeline",
    "moe_expert_parallel_size": "parallelism.expert",
    "max_seq_len": "engine.max_model_len",
    "max_batch_size": "engine.max_num_seqs",
    "max_num_tokens": "engine.max_batched_tokens",
}
_KINDS = {
    Method.DRAFT_MODEL: "DraftTarget",
    Method.EAGLE: "Eagle3",
    Method.MTP: "MTP",
    Method.NGRAM: "NGram",
}
_KIND_MEANINGS = {word.lower(): method for method, word in _KINDS.items()} | {"eagle": Method.EAGLE}
_CHUNKS = "enable_chunked_prefill"


def write(scenario: Scenario, catalog: Catalog) -> Invocation:
    """The flags and options of a scenario."""
    told = begin(scenario, catalog, _CASTS)
    split, engine = scenario.parallelism, scenario.engine
    cast = [pair for pair in told.pairs if pair[0] == "dtype"]
    told.pairs = []
    if split.tensor > 1 and split.data > 1:
        told.note(
            "TensorRT-LLM's attention is data-parallel over all tensor ranks or none: "
            "tensor × data parallelism is not said here."
        )
    else:
        ranks = split.tensor * split.data
        told.add("--tp_size", ranks if ranks > 1 else None)
        told.add("--ep_size", split.expert if split.expert > 1 else None)
    told.add("--pp_size", split.pipeline if split.pipeline > 1 else None)
    if split.decode_context > 1:
        told.note("trtllm-serve has no decode context parallelism.")
    told.add("--max_batch_size", engine.max_num_seqs)
    told.add("--max_num_tokens", engine.max_batched_tokens)
    told.add("--max_seq_len", engine.max_model_len)
    told.switch(f"--{_CHUNKS}", scenario.techniques.chunked_prefill)
    for _, dtype in cast:
        told.options["dtype"] = dtype
    if split.data > 1 and split.tensor == 1:
        told.options["enable_attention_dp"] = True
    told.options["kv_cache_config"] = _cache_options(scenario)
    if scenario.precision.kv_cache not in (*_CACHES, Dtype.BF16):
        told.note(f"TensorRT-LLM has no {scenario.precision.kv_cache} cache beside that of the model's own type.")
    if engine.enforce_eager:
        told.options["cuda_graph_config"] = None
    speculation = _speculation(told, scenario, catalog)
    if speculation:
        told.options["speculative_config"] = speculation
    told.options = {key: value for key, value in told.options.items() if value != {}}
    return told


def _cache_options(scenario: Scenario) -> dict[str, Any]:
    """One mapping holds all of the cache's options: were some of them flags, the file's mapping could undo them."""
    engine = scenario.engine
    options = {
        "dtype": _CACHES.get(scenario.precision.kv_cache),
        "free_gpu_memory_fraction": engine.memory_utilization,
        "enable_block_reuse": engine.prefix_caching,
        "tokens_per_block": engine.block_size,
    }
    return {key: value for key, value in options.items() if value is not None}


def _speculation(told: Invocation, scenario: Scenario, catalog: Catalog) -> dict[str, Any] | None:
    speculative, method = scenario.techniques.speculative, guesser_of(scenario)
    if speculative is None or method is None:
        return None
    drafter = drafter_source(told, scenario, catalog)
    options: dict[str, Any] = {"decoding_type": _KINDS[method], "max_draft_len": speculative.draft_tokens}
    return {**options, "speculative_model": drafter} if drafter else options


def read(given: Arguments, findings: Findings, catalog: Catalog, files: Mapping[str, str]) -> None:
    """Set what the file's options say, then what the flags say, which win over them."""
    options = _options(given, findings, files)
    model = next(iter(word for word in given.positionals if word != "serve"), None)
    held = read_model(findings, "MODEL", model, None, catalog)
    read_cast(findings, "dtype", _text("dtype", options.pop("dtype", None)), held, DTYPES)
    for key, path in _SIZES.items():
        findings.whole(key, path, _text(key, options.pop(key, None)))
        findings.whole(f"--{key}", path, given.take(f"--{key}"))
    ranks = findings.whole(
        "tensor_parallel_size", "parallelism.tensor", _text("", options.pop("tensor_parallel_size", None))
    )
    flag = "--tensor_parallel_size"
    ranks = findings.whole(flag, "parallelism.tensor", given.take(flag)) or ranks
    spread = _flag(findings, "enable_attention_dp", options.pop("enable_attention_dp", None))
    if spread and ranks is not None:
        findings.tell("enable_attention_dp", "parallelism.data", ranks)
        put(findings.document, "parallelism.tensor", 1)
    _read_chunks(options.pop(_CHUNKS, None), given, findings)
    _read_cache(options.pop("kv_cache_config", None), given, findings)
    if "cuda_graph_config" in options:
        eager = options.pop("cuda_graph_config") is None
        findings.tell("cuda_graph_config", "engine.enforce_eager", eager)
    _read_speculation(options.pop("speculative_config", None), findings, catalog)
    for key in options:
        findings.leave(f"--{key}", Reason.NO_FIELD)


def _options(given: Arguments, findings: Findings, files: Mapping[str, str]) -> dict[str, Any]:
    """The options of the file that --config names, where the text holds it."""
    name = given.take("--config")
    if name is None:
        return {}
    found = files.get(name.rpartition("/")[2])
    if found is None:
        findings.leave("--config", Reason.VALUE)
        return {}
    documents = read_documents(found)
    if not documents:
        return {}
    if not isinstance(documents[0], dict):
        raise CommandError("The file of --config must be a mapping.")
    return dict(documents[0])


def _text(key: str, value: Any) -> str | None:
    """A scalar of the file, which is a text until it is known what it should be."""
    if value is None or isinstance(value, str):
        return value
    raise CommandError(f"{key} of the YAML file must be a plain value.")


def _flag(findings: Findings, key: str, value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = _text(key, value) or ""
    return yes(key, text) if findings.resolved(key, text) else None


def _read_chunks(option: Any, given: Arguments, findings: Findings) -> None:
    """Chunked prefill is off here unless it is asked for: a launch that says nothing of it prefills prompts whole."""
    flagged, in_file = given.take_switch(f"--{_CHUNKS}"), _flag(findings, _CHUNKS, option)
    said = in_file if flagged is None else flagged
    if said is not None:
        findings.tell(_CHUNKS, "techniques.chunked_prefill", said)
    elif option is None:
        put(findings.inferred, "techniques.chunked_prefill", False)


def _read_cache(options: Any, given: Arguments, findings: Findings) -> None:
    options = {} if options is None else options
    if not isinstance(options, dict):
        raise CommandError("kv_cache_config must be a mapping.")
    options = dict(options)
    name = "kv_cache_config."
    findings.choice(
        f"{name}dtype", "precision.kv_cache", _text(f"{name}dtype", options.pop("dtype", None)), _CACHE_MEANINGS
    )
    share, flag = "free_gpu_memory_fraction", "--free_gpu_memory_fraction"
    findings.real(f"{name}{share}", "engine.memory_utilization", _text(share, options.pop(share, None)))
    findings.real(flag, "engine.memory_utilization", given.take(flag))
    reuse = _flag(findings, f"{name}enable_block_reuse", options.pop("enable_block_reuse", None))
    if reuse is not None:
        findings.tell(f"{name}enable_block_reuse", "engine.prefix_caching", reuse)
    block = "tokens_per_block"
    findings.whole(f"{name}{block}", "engine.block_size", _text(block, options.pop(block, None)))
    for key in options:
        findings.leave(f"--{name}{key}", Reason.NO_FIELD)


def _read_speculation(options: Any, findings: Findings, catalog: Catalog) -> None:
    if options is None:
        return
    name = "speculative_config"
    if not isinstance(options, dict):
        raise CommandError(f"{name} must be a mapping.")
    kind = (_text(name, options.get("decoding_type")) or "").lower().replace("_", "")
    method = _KIND_MEANINGS.get(kind)
    if method is None:
        findings.leave(name, Reason.VALUE)
        return
    length = options.get("max_draft_len", options.get("num_nextn_predict_layers"))
    if findings.whole(name, "techniques.speculative.draft_tokens", _text(name, length)) is None:
        findings.leave(name, Reason.VALUE)
        return
    findings.guessed_by(name, method)
    if method is Method.DRAFT_MODEL:
        draft = options.get("speculative_model", options.get("speculative_model_dir"))
        read_draft(findings, f"{name}.speculative_model", _text(name, draft), catalog)


def written_keys(options: Mapping[str, Any], above: str = "") -> list[str]:
    """The keys of options, dotted; a section that is null stands for itself."""
    found: list[str] = []
    for key, value in options.items():
        found += written_keys(value, f"{above}{key}.") if isinstance(value, dict) else [f"{above}{key}"]
    return found
