"""SGLang: `python -m sglang.launch_server`, and its flags in both directions."""

from collections.abc import Mapping

from app.calc.dtypes import Dtype
from app.calc.time.speculation import Method
from app.catalog.catalog import Catalog
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
from app.engine_io.launch.vllm import CASTS, DTYPES, QUANTIZATIONS
from app.scenario.scenario import Scenario

ENGINE = "sglang"
SERVE = ("python3", "-m", "sglang.launch_server")
_CACHES = {Dtype.BF16: "bfloat16", Dtype.FP8: "fp8_e4m3", Dtype.FP4: "nvfp4"}
_CACHE_MEANINGS = {
    "bf16": Dtype.BF16,
    "bfloat16": Dtype.BF16,
    "fp8_e4m3": Dtype.FP8,
    "fp8_e5m2": Dtype.FP8,
    "nvfp4": Dtype.FP4,
    "fp4_e2m1": Dtype.FP4,
}
_ALGORITHMS = {
    Method.DRAFT_MODEL: "STANDALONE",
    Method.EAGLE: "EAGLE3",
    Method.MTP: "NEXTN",
    Method.NGRAM: "NGRAM",
}


def write(scenario: Scenario, catalog: Catalog) -> Invocation:
    """The flags of a scenario."""
    told = begin(scenario, catalog, CASTS)
    split, engine = scenario.parallelism, scenario.engine
    ranks = split.tensor * split.data
    told.add("--tp-size", ranks if ranks > 1 else None)
    if split.data > 1:
        told.add("--dp-size", split.data)
        told.switch("--enable-dp-attention", True)
    told.add("--pp-size", split.pipeline if split.pipeline > 1 else None)
    told.add("--dcp-size", split.decode_context if split.decode_context > 1 else None)
    if split.expert > 1:
        told.add("--ep-size", split.expert if split.expert == ranks else None)
        if split.expert != ranks:
            told.note("SGLang spreads experts over all ranks of --tp-size: expert parallelism is not said here.")
    told.add("--kv-cache-dtype", _CACHES.get(scenario.precision.kv_cache))
    if scenario.precision.kv_cache not in _CACHES:
        told.note(f"SGLang has no {scenario.precision.kv_cache} cache beside that of the model's own type.")
    told.add("--mem-fraction-static", engine.memory_utilization)
    told.add("--context-length", engine.max_model_len)
    told.add("--max-running-requests", engine.max_num_seqs)
    in_chunks = scenario.techniques.chunked_prefill
    told.add("--chunked-prefill-size", engine.max_batched_tokens if in_chunks else -1)
    if not in_chunks and engine.max_batched_tokens is not None:
        told.note("Without chunked prefill SGLang has no size of a step to be told: it is in the comment line.")
    told.add("--page-size", engine.block_size)
    told.switch("--disable-radix-cache", engine.prefix_caching is False)
    told.switch("--disable-cuda-graph", engine.enforce_eager)
    _write_speculation(told, scenario, catalog)
    return told


def _write_speculation(told: Invocation, scenario: Scenario, catalog: Catalog) -> None:
    speculative, method = scenario.techniques.speculative, guesser_of(scenario)
    if speculative is None or method is None:
        return
    told.add("--speculative-algorithm", _ALGORITHMS[method])
    told.add("--speculative-draft-model-path", drafter_source(told, scenario, catalog))
    if method is not Method.NGRAM:
        told.add("--speculative-num-steps", speculative.draft_tokens)
        told.add("--speculative-eagle-topk", 1)
    # What is verified in a step is the guesses and the token before them.
    told.add("--speculative-num-draft-tokens", speculative.draft_tokens + 1)


def read(given: Arguments, findings: Findings, catalog: Catalog, files: Mapping[str, str]) -> None:
    """Set what the flags say."""
    served = given.take("--served-model-name")
    model = given.take("--model-path") or next(iter(given.positionals), None)
    held = read_model(findings, "--model-path", model, served, catalog)
    read_cast(findings, "--dtype", given.take("--dtype"), held, DTYPES)
    read_cast(findings, "--quantization", given.take("--quantization"), held, QUANTIZATIONS)
    _read_ranks(given, findings)
    for flag, path in (
        ("--ep-size", "parallelism.expert"),
        ("--dcp-size", "parallelism.decode_context"),
        ("--context-length", "engine.max_model_len"),
        ("--max-running-requests", "engine.max_num_seqs"),
        ("--page-size", "engine.block_size"),
    ):
        findings.whole(flag, path, given.take(flag))
    _read_chunks(given, findings)
    findings.choice("--kv-cache-dtype", "precision.kv_cache", given.take("--kv-cache-dtype"), _CACHE_MEANINGS)
    findings.real("--mem-fraction-static", "engine.memory_utilization", given.take("--mem-fraction-static"))
    without_cache = given.take_switch("--disable-radix-cache")
    if without_cache is not None:
        findings.tell("--disable-radix-cache", "engine.prefix_caching", not without_cache)
    eager = given.take_switch("--disable-cuda-graph")
    if eager is not None:
        findings.tell("--disable-cuda-graph", "engine.enforce_eager", eager)
    _read_speculation(given, findings, catalog)


def _read_chunks(given: Arguments, findings: Findings) -> None:
    """A size that is not positive turns chunked prefill off."""
    flag = "--chunked-prefill-size"
    text = given.take(flag)
    findings.whole(flag, "engine.max_batched_tokens", text)
    if text is not None and text.strip() in ("-1", "0"):
        findings.tell(flag, "techniques.chunked_prefill", False)


def _read_ranks(given: Arguments, findings: Findings) -> None:
    """`--tp-size` counts the ranks of a replica's layer; attention may be data-parallel within them."""
    ranks = findings.whole("--tp-size", "parallelism.tensor", given.take("--tp-size"))
    findings.whole("--pp-size", "parallelism.pipeline", given.take("--pp-size"))
    sizes = {}
    for flag in ("--dp-size", "--attn-dp-size"):
        text = given.take(flag)
        if text is not None and findings.resolved(flag, text):
            sizes[flag] = whole(flag, text)
    attention = sizes.get("--attn-dp-size")
    replicas = sizes.get("--dp-size")
    if given.take_switch("--enable-dp-attention") and attention is None:
        attention, replicas = replicas, None
    if attention is not None and attention > 1:
        if ranks is None or ranks % attention:
            raise CommandError("--tp-size must be a multiple of --dp-size where attention is data-parallel.")
        findings.tell("--dp-size", "parallelism.data", attention)
        findings.tell("--tp-size", "parallelism.tensor", ranks // attention)
    if replicas is not None:
        of_one = (ranks or 1) * (get(findings.document, "parallelism.pipeline") or 1)
        findings.tell("--dp-size", "hardware.count", replicas * of_one, inferred=True)


def _read_speculation(given: Arguments, findings: Findings, catalog: Catalog) -> None:
    flag = "--speculative-algorithm"
    algorithm = given.take(flag)
    draft = given.take("--speculative-draft-model-path")
    steps, top = given.take("--speculative-num-steps"), given.take("--speculative-eagle-topk")
    tokens = given.take("--speculative-num-draft-tokens")
    if algorithm is None or not findings.resolved(flag, algorithm):
        return
    method = _method(algorithm.upper(), draft)
    if method is None:
        findings.leave(flag, Reason.VALUE)
        return
    if top is not None and findings.resolved("--speculative-eagle-topk", top):
        whole("--speculative-eagle-topk", top)
    guessed = _guessed(findings, steps, tokens)
    if guessed is None:
        findings.leave(flag, Reason.VALUE)
        return
    findings.tell(flag, "techniques.speculative.draft_tokens", guessed)
    findings.guessed_by(flag, method)
    if method is Method.DRAFT_MODEL:
        read_draft(findings, "--speculative-draft-model-path", draft, catalog)


def _method(algorithm: str, draft: str | None) -> Method | None:
    """Who guesses; None where it is told otherwise here. EAGLE without a head of its own takes the model's layers."""
    if algorithm in ("STANDALONE", "NGRAM"):
        return Method.DRAFT_MODEL if algorithm == "STANDALONE" else Method.NGRAM
    if draft is None:
        return Method.MTP if algorithm in ("NEXTN", "EAGLE") else None
    # Prediction layers were once published as files of their own, and started as a head.
    return Method.EAGLE if algorithm in ("EAGLE", "EAGLE3") and "nextn" not in draft.lower() else None


def _guessed(findings: Findings, steps: str | None, tokens: str | None) -> int | None:
    """Tokens guessed in a step: the steps, or what is verified less the token before the guesses."""
    for flag, text, less in (("--speculative-num-steps", steps, 0), ("--speculative-num-draft-tokens", tokens, 1)):
        if text is not None and findings.resolved(flag, text):
            value = whole(flag, text)
            if value is not None:
                return value - less
    return None
