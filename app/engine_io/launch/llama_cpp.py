"""llama.cpp: `llama-server`, and its flags in both directions. One process serves one replica."""

from collections.abc import Mapping

from app.calc.dtypes import Dtype, WeightFormat
from app.calc.time.speculation import Method
from app.catalog.catalog import Catalog
from app.engine_io.launch.arguments import Arguments
from app.engine_io.launch.findings import CommandError, Findings, Reason, real, whole
from app.engine_io.launch.invocation import (
    UNNAMED,
    Invocation,
    Source,
    drafter_source,
    guesser_of,
    read_draft,
    read_model,
    read_quantization,
)
from app.scenario.scenario import Scenario

ENGINE = "llama.cpp"
SERVE = ("llama-server",)
MOST_DEVICES = 16
"""GGML_CUDA_MAX_DEVICES: what one process can use."""
MOST_CONTEXT = 2**31 - 1
_FILES = {
    WeightFormat.BF16: "BF16",
    WeightFormat.FP16: "F16",
    WeightFormat.FP32: "F32",
    WeightFormat.INT8: "Q8_0",
    WeightFormat.INT4: "Q4_0",
    WeightFormat.MXFP4: "MXFP4",
}
_CACHES = {Dtype.BF16: "bf16", Dtype.FP16: "f16", Dtype.FP32: "f32", Dtype.INT8: "q8_0", Dtype.INT4: "q4_0"}
_CACHE_MEANINGS = {word: dtype for dtype, word in _CACHES.items()} | {"q4_1": Dtype.INT4, "iq4_nl": Dtype.INT4}
_KINDS = {
    "draft-simple": Method.DRAFT_MODEL,
    "draft-eagle3": Method.EAGLE,
    "draft-mtp": Method.MTP,
    "ngram-simple": Method.NGRAM,
}


def write(scenario: Scenario, catalog: Catalog) -> Invocation:
    """The flags of a scenario."""
    told = _begin(scenario, catalog)
    split, engine = scenario.parallelism, scenario.engine
    told.add("--gpu-layers", "all")
    _write_split(told, scenario)
    if max(split.data, split.expert, split.decode_context) > 1:
        told.note("llama.cpp has no data, expert or context parallelism.")
    cache = _CACHES.get(scenario.precision.kv_cache)
    told.add("--cache-type-k", cache)
    told.add("--cache-type-v", cache)
    if cache is None:
        told.note(f"llama.cpp has no {scenario.precision.kv_cache} cache.")
    _write_context(told, scenario)
    told.add("--batch-size", engine.max_batched_tokens)
    told.add("--ubatch-size", engine.max_batched_tokens)
    if engine.prefix_caching is not None:
        told.switch("--cache-prompt" if engine.prefix_caching else "--no-cache-prompt", True)
    if not scenario.techniques.chunked_prefill:
        told.note("llama.cpp always prefills in steps of its batch: whole prompts are not said here.")
    _write_speculation(told, scenario, catalog)
    return told


def _begin(scenario: Scenario, catalog: Catalog) -> Invocation:
    record, weights = catalog.models.get(scenario.model.id or ""), scenario.precision.weights
    if record is None:
        told = Invocation(Source(f"/models/{UNNAMED}.gguf", None, False))
    else:
        kind = _FILES.get(WeightFormat(weights)) if weights not in (None, "native") else None
        told = Invocation(Source(_gguf(record.hub_id, kind), weights, False))
        if kind is None:
            told.note(f"There is no GGUF type for {weights or 'native'} weights as a whole.")
        if weights is WeightFormat.INT4:
            told.note("Q4_0 stores 4.5 bits a weight; int4 counts 4.16.")
    told.note(f"{told.source.path} stands for the GGUF file of the model: put its path there.")
    return told


def _gguf(hub_id: str, kind: str | None) -> str:
    tail = hub_id.rpartition("/")[2]
    return f"/models/{tail}-{kind}.gguf" if kind else f"/models/{tail}.gguf"


def _write_split(told: Invocation, scenario: Scenario) -> None:
    tensor, pipeline = scenario.parallelism.tensor, scenario.parallelism.pipeline
    if tensor > 1 and pipeline > 1:
        told.note("llama.cpp splits by layers or by tensors, not both: the parallelism is not said here.")
    elif max(tensor, pipeline) > MOST_DEVICES:
        told.note(f"llama.cpp uses at most {MOST_DEVICES} devices: the parallelism is not said here.")
    elif max(tensor, pipeline) > 1:
        told.add("--split-mode", "tensor" if tensor > 1 else "layer")
        told.add("--tensor-split", ",".join("1" * max(tensor, pipeline)))


def _write_context(told: Invocation, scenario: Scenario) -> None:
    """`--ctx-size` is the cache of all slots together; each has its part."""
    length, slots = scenario.engine.max_model_len, scenario.engine.max_num_seqs
    told.add("--parallel", slots)
    if slots is not None:
        told.switch("--no-kv-unified", True)
    if length is not None:
        total = length * (slots or 1)
        told.add("--ctx-size", total if total <= MOST_CONTEXT else None)
        if total > MOST_CONTEXT:
            told.note("The context of all slots together is more than llama.cpp counts: it is not said here.")


def _write_speculation(told: Invocation, scenario: Scenario, catalog: Catalog) -> None:
    speculative, method = scenario.techniques.speculative, guesser_of(scenario)
    if speculative is None:
        return
    if method is Method.EAGLE:
        told.note("No flags are written for an EAGLE head under llama.cpp: the command as it stands guesses nothing.")
    elif draft := drafter_source(told, scenario, catalog):
        told.add("--spec-type", "draft-simple")
        told.add("--model-draft", _gguf(draft, None))
        told.add("--spec-draft-n-max", speculative.draft_tokens)
    elif method is Method.MTP:
        told.add("--spec-type", "draft-mtp")
        told.add("--spec-draft-n-max", speculative.draft_tokens)
    else:
        told.add("--spec-type", "ngram-simple")
        told.add("--spec-ngram-simple-size-m", speculative.draft_tokens)


def read(given: Arguments, findings: Findings, catalog: Catalog, files: Mapping[str, str]) -> None:
    """Set what the flags say."""
    _read_model(given, findings, catalog)
    _read_split(given, findings)
    _read_context(given, findings)
    findings.whole("--ubatch-size", "engine.max_batched_tokens", given.take("-ub"))
    if (logical := given.take("-b")) is not None and findings.resolved("--batch-size", logical):
        whole("--batch-size", logical)
    keys, values = given.take("-ctk"), given.take("-ctv")
    if keys == values:
        findings.choice("--cache-type-k", "precision.kv_cache", keys, _CACHE_MEANINGS)
    else:
        findings.leave("--cache-type-k", Reason.VALUE)
    prompts = given.take_switch("--cache-prompt")
    if prompts is not None:
        findings.tell("--cache-prompt", "engine.prefix_caching", prompts)
    _read_speculation(given, findings, catalog)


def _read_model(given: Arguments, findings: Findings, catalog: Catalog) -> None:
    file, repository = given.take("-m"), given.take("-hf")
    served = given.take("-a")
    given.take("-hff")
    if file is not None:
        read_model(findings, "--model", file, served, catalog)
    elif repository is not None:
        name, _, kind = repository.partition(":")
        read_model(findings, "--hf-repo", name, served, catalog)
        weights = read_quantization(kind) if kind else None
        if weights is not None:
            findings.tell("--hf-repo", "precision.weights", weights, inferred=True)
    else:
        read_model(findings, "--model", None, served, catalog)


def _read_split(given: Arguments, findings: Findings) -> None:
    mode, parts = given.take("-sm"), given.take("-ts")
    if mode not in (None, "none", "layer", "row", "tensor"):
        findings.leave("--split-mode", Reason.VALUE)
        return
    if parts is None or not findings.resolved("--tensor-split", parts):
        return
    shares = parts.replace("/", ",").split(",")
    if len(shares) > 128:
        raise CommandError("--tensor-split names more devices than there are.")
    devices = sum(real("--tensor-split", share) > 0 for share in shares)
    if devices > 0 and mode != "none":
        by_tensor = mode in ("row", "tensor")
        findings.tell("--tensor-split", "parallelism.tensor" if by_tensor else "parallelism.pipeline", devices)


def _read_context(given: Arguments, findings: Findings) -> None:
    slots = findings.whole("--parallel", "engine.max_num_seqs", given.take("-np"))
    unified = given.take_switch("-kvu")
    text = given.take("-c")
    if text is None or not findings.resolved("--ctx-size", text):
        return
    total = whole("--ctx-size", text)
    if total is not None:
        each = total if unified or slots is None else total // slots
        if each < 1:
            raise CommandError("--ctx-size is less than one token for each slot of --parallel.")
        findings.tell("--ctx-size", "engine.max_model_len", each)


def _read_speculation(given: Arguments, findings: Findings, catalog: Catalog) -> None:
    flag = "--spec-type"
    kind, draft = given.take(flag), given.take("--spec-draft-model")
    longest = given.take("--spec-draft-n-max") or given.take("--draft")
    match_length = given.take("--spec-ngram-simple-size-m")
    if kind is None and draft is None:
        return
    method = _KINDS.get(kind or "draft-simple")
    if method is None:
        findings.leave(flag, Reason.VALUE)
        return
    if method is not Method.NGRAM:
        if findings.whole("--spec-draft-n-max", "techniques.speculative.draft_tokens", longest) is None:
            # Left out, it is what the checked release has.
            findings.tell(flag, "techniques.speculative.draft_tokens", 3)
    else:
        name = "--spec-ngram-simple-size-m"
        if findings.whole(name, "techniques.speculative.draft_tokens", match_length) is None:
            findings.tell(flag, "techniques.speculative.draft_tokens", 48)
    findings.guessed_by(flag, method)
    if method is Method.DRAFT_MODEL:
        read_draft(findings, "--model-draft", draft, catalog)
