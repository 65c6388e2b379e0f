"""vLLM's start-up log: its rules, and the budget of memory that it prints."""

import re

from app.calc.dtypes import WeightFormat
from app.calc.quantity import GIB
from app.engine_io.logs.findings import Unit
from app.engine_io.logs.log_format import Heard, LogFormat, Marks, ReleaseMark, Run
from app.engine_io.logs.model_names import cache_type, find_model, scheme_format, stated_weights, wide_type
from app.engine_io.logs.patterns import Hit, Quantity, line

_TOLERANCE = 0.05 * GIB  # five figures of two decimals
_DISAGREEMENT = 0.01  # of the budget
_FIRST_CHARGED = (0, 21)
_RELEASE = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_SAYS_SO = "CUDA graph memory profiling is enabled"


def graph_charge(
    heard: Heard,
    weights: float | None,
    activation: float | None,
    outside: float | None,
    pool: float,
    rank: str | None,
) -> float | None:
    """The estimate that was taken from the budget for graphs, bytes: 0 where none was, None where nothing tells.

    What the parts leave of the budget decides. Without them it is what the log or the release says: from 0.21 on the
    estimate is charged.
    """
    estimate, budget = heard.run.of_rank(rank, "graphs_estimated"), heard.run.of_rank(rank, "budget")
    parts = (weights, activation, outside)
    if budget is not None and all(part is not None for part in parts):
        left = budget - pool - sum(part for part in parts if part is not None)
        if abs(left) <= _TOLERANCE:
            return 0.0
        if estimate is not None and abs(left - estimate) <= _TOLERANCE:
            return estimate
    if estimate is not None and _SAYS_SO in heard.run.text:
        return estimate
    release = _RELEASE.match(heard.release or "")
    if release is None:
        return None
    if (int(release[1]), int(release[2])) < _FIRST_CHARGED:
        return 0.0
    return estimate


def graphs_outside(heard: Heard, rank: str | None) -> float:
    """Graphs that were captured and not charged, because the release charges none; 0 where it does, or none were."""
    release = _RELEASE.match(heard.release or "")
    if release is None or (int(release[1]), int(release[2])) >= _FIRST_CHARGED:
        return 0.0
    return heard.run.of_rank(rank, "graphs") or 0.0


def check_budget(heard: Heard, parts: tuple[float | None, ...], rank: str | None) -> None:
    """Note where weights, activations, the rest, pool and graphs are not the budget."""
    budget, known = heard.run.of_rank(rank, "budget"), [part for part in parts if part is not None]
    if budget is None or len(known) < len(parts):
        return
    if abs(sum(known) - budget) > max(_DISAGREEMENT * budget, 2 * _TOLERANCE):
        heard.findings.note(
            f"The parts that the log names add up to {sum(known) / GIB:.2f} GiB, but its budget is "
            f"{budget / GIB:.2f} GiB."
        )


_ROUNDING = 0.011 * GIB  # two decimals of a GiB

QUANTITIES = {
    "total": Quantity("Memory of the card", Unit.BYTES),
    "free": Quantity("Free at the start", Unit.BYTES),
    "utilization": Quantity("gpu_memory_utilization", Unit.SHARE),
    "budget": Quantity("Budget of the engine", Unit.BYTES),
    "weights": Quantity("Loaded weights", Unit.BYTES),
    "weights_rounded": Quantity("Loaded weights, as profiled", Unit.BYTES),
    "consumed": Quantity("Weights and what no framework counts", Unit.BYTES),
    "activation": Quantity("Peak of the activations", Unit.BYTES),
    "peak": Quantity("Peak of weights and activations", Unit.BYTES),
    "non_torch": Quantity("Memory outside the framework", Unit.BYTES),
    "graphs": Quantity("Captured CUDA graphs", Unit.BYTES),
    "graphs_estimated": Quantity("CUDA graphs, estimated before", Unit.BYTES),
    "pool": Quantity("Available for the cache", Unit.BYTES),
    "pool_exact": Quantity("Cache in use", Unit.BYTES),
    "needed": Quantity("Cache that one longest request needs", Unit.BYTES),
    "tokens": Quantity("Tokens of the cache", Unit.TOKENS),
    "blocks": Quantity("Blocks of the cache", Unit.BLOCKS),
    "concurrency": Quantity("Longest requests at a time", Unit.REQUESTS),
    "length": Quantity("Longest sequence", Unit.TOKENS),
    "length_possible": Quantity("Longest sequence that would fit", Unit.TOKENS),
    "batched": Quantity("Tokens of a prefill step", Unit.TOKENS),
    "block": Quantity("Tokens of an attention block", Unit.TOKENS),
}

PATTERNS = (
    # 0.3 to 0.7: GB; from 0.8 on with the seconds; GiB from 0.9 on; "GiB memory" from 0.12 on
    line("Loading model weights took ", "<mem>", "weights"),
    line("Model loading took ", "<mem>", "weights"),
    # V0, 0.6.0 to 0.6.3
    line(
        "Memory profiling results: ",
        r"total_gpu_memory=<mem>.{0,80}?peak_torch_memory=<mem>.{0,80}?non_torch_memory=<mem> kv_cache_size=<mem>"
        "(?: gpu_memory_utilization=<num>)?",
        *("total", "peak", "non_torch", "pool", "utilization"),
    ),
    # V0, from 0.6.4 on
    line(
        "total_gpu_memory ", r"\(<mem>\) x gpu_memory_utilization \(<num>\) = <mem>", "total", "utilization", "budget"
    ),
    line("model weights take ", "<mem>", "weights_rounded"),
    line("non_torch_memory takes ", "<mem>", "non_torch"),
    line("PyTorch activation peak memory takes ", "<mem>", "activation"),
    line("the rest of the memory reserved for KV Cache is ", "<mem>", "pool"),
    *(line(f"# {kind} blocks: ", "<num>", "blocks") for kind in ("GPU", "CUDA", "cuda", "ROCM", "rocm", "NPU", "hpu")),
    # V1
    line("torch peak memory increase: ", "<mem>", "activation"),
    line("non-torch forward increase memory: ", "<mem>", "non_torch"),
    line("Available KV cache memory: ", "<mem>", "pool"),
    line("reserved ", "<mem> memory for KV Cache as specified", "pool"),
    line("GPU KV cache size: ", "<num> tokens", "tokens"),
    line("num_gpu_blocks is: ", "<num>", "blocks"),
    line("Maximum concurrency for ", "<num> tokens per request: <num>x", "length", "concurrency"),
    line("Graph capturing finished in ", r"[0-9.]{1,12} secs?, took <mem>", "graphs"),
    line("Estimated CUDA graph memory: ", "<mem>", "graphs_estimated"),
    line("CUDA graph pool memory: ", r"<mem> \(actual\), <mem> \(estimated\)", "graphs", "graphs_estimated"),
    line("Free memory on device ", r"(?:[a-z]{1,8}:[0-9]{1,3} )?\(<gib>/<mem>\) on startup", "free", "total"),
    line("esired GPU memory utilization ", r"(?:is )?\(<num>, <mem>\)", "utilization", "budget"),
    line("Actual usage is ", "<mem> for weight", "weights_rounded"),
    line("Actual usage is ", "<mem> for consumed memory", "consumed"),
    line("Actual usage is ", r".{0,80}?<mem> for peak activation", "activation"),
    line("Actual usage is ", r".{0,120}?<mem> for non-torch memory", "non_torch"),
    line("Actual usage is ", r".{0,200}?<mem> for CUDAGraph memory", "graphs"),
    line("Current kv cache memory in use is ", "<mem>", "pool_exact"),
    # refusals to start
    line("The model's max seq len ", r"\(<num>\) is larger than.{0,100}?KV cache \(<num>\)", "length", "tokens"),
    line("models's max seq len ", r"\(<num>\), \(<mem> KV cache is needed", "length", "needed"),
    line("model's max seq len ", r"\(<num>\), \(?<mem> KV cache is needed", "length", "needed"),
    line("larger than the available KV cache memory ", r"\(<mem>\)", "pool"),
    line("the estimated maximum model length is ", "<num>", "length_possible"),
    # settings that are settled only while starting
    line("Using max model len ", "<num>", "length"),
    line("Chunked prefill is enabled with max_num_batched_tokens=", "<num>", "batched"),
    line("Setting attention block size to ", "<num> tokens", "block"),
)


def tell(heard: Heard) -> None:
    """Fill the findings from one run."""
    _tell_settings(heard)
    run, findings = heard.run, heard.findings
    least = run.smallest("pool", "pool_exact")
    rank = least.rank if least else None
    weights = run.of_rank(rank, "weights", "weights_rounded")
    findings.tell("engine.weights_bytes", weights)
    findings.tell("engine.total_memory_bytes", run.of_rank(rank, "total"))
    activation, peak = run.of_rank(rank, "activation"), run.of_rank(rank, "peak")
    if activation is None and peak is not None and weights is not None:
        activation = max(0.0, peak - weights)
    findings.tell("engine.activation_bytes", activation)
    outside, consumed = run.of_rank(rank, "non_torch"), run.of_rank(rank, "consumed")
    if outside is None and consumed is not None and weights is not None:
        outside = max(0.0, consumed - weights)
    findings.tell("engine.non_framework_bytes", outside)
    if least:
        pool = _exact_pool(run, least)
        if pool >= 1:
            findings.tell("engine.kv_pool_bytes", pool)
        else:
            findings.note(
                f"The memory left for the cache is {pool / GIB:.2f} GiB: the engine could hold no sequence with these "
                "settings, and the scenario leaves the pool to be computed."
            )
        charge = graph_charge(heard, weights, activation, outside, pool, rank)
        # What was captured without being charged lies outside of the share, and still takes memory.
        findings.tell("engine.graph_bytes", graphs_outside(heard, rank) if charge == 0 else charge)
        check_budget(heard, (weights, activation, outside, pool, charge), rank)
    for path, id_ in (("kv_tokens", "tokens"), ("gpu_blocks", "blocks"), ("max_concurrency", "concurrency")):
        figure = run.smallest(id_)
        findings.tell(f"observed.{path}", figure.value if figure else None)


def _exact_pool(run: Run, least: Hit) -> float:
    """The same pool in bytes where the log prints them too."""
    exact = [hit.value for hit in run.all("pool_exact") if hit.rank == least.rank and hit.printed.endswith("bytes")]
    return exact[0] if len(exact) == 1 and abs(exact[0] - least.value) <= _ROUNDING else least.value


def _tell_settings(heard: Heard) -> None:
    run, settings, findings = heard.run, heard.settings, heard.findings
    model = find_model(settings.text("model", "model_tag"), heard.catalog.models)
    record = heard.catalog.models[model.id] if model else None
    findings.tell("model.id", model.id if model else None)
    dtype, scheme = wide_type(settings.text("dtype")), settings.text("quantization")
    weights = (model.weights if model else None) or scheme_format(scheme)
    if weights is None and scheme == "None" and dtype is not None:
        weights = WeightFormat(dtype.value)
    findings.tell("precision.weights", stated_weights(record, weights))
    cache = settings.text("kv_cache_dtype")
    findings.tell("precision.kv_cache", dtype if cache in ("auto", "None") else cache_type(cache))
    _tell_parallelism(heard)
    findings.tell("engine.memory_utilization", run.last("utilization") or settings.real("gpu_memory_utilization"))
    findings.tell("engine.max_model_len", run.last("length") or settings.whole("max_seq_len", "max_model_len"))
    findings.tell("engine.max_num_seqs", settings.whole("max_num_seqs"))
    findings.tell("engine.max_batched_tokens", run.last("batched") or settings.whole("max_num_batched_tokens"))
    findings.tell("engine.block_size", run.last("block") or settings.whole("block_size"))
    findings.tell("engine.prefix_caching", settings.flag("enable_prefix_caching"))
    findings.tell("engine.enforce_eager", settings.flag("enforce_eager"))
    _tell_speculation(heard)


def _tell_parallelism(heard: Heard) -> None:
    settings, findings = heard.settings, heard.findings
    tensor, pipeline = settings.whole("tensor_parallel_size"), settings.whole("pipeline_parallel_size")
    data = settings.whole("data_parallel_size")
    findings.tell("parallelism.tensor", tensor)
    findings.tell("parallelism.pipeline", pipeline)
    findings.tell("parallelism.data", data)
    findings.tell("parallelism.decode_context", settings.whole("decode_context_parallel_size"))
    if tensor is None:
        return
    largest = heard.run.ranks.largest("EP")
    if settings.flag("enable_expert_parallel") or largest:
        findings.tell("parallelism.expert", tensor * (data or 1))
    findings.tell("hardware.count", tensor * (pipeline or 1) * (data or 1))


def _tell_speculation(heard: Heard) -> None:
    speculative = heard.settings.inside("speculative_config")
    if speculative is None:
        return
    findings = heard.findings
    findings.tell("techniques.speculative.draft_tokens", speculative.whole("num_spec_tokens", "num_speculative_tokens"))
    if "techniques.speculative.draft_tokens" not in findings.values:
        return
    method = speculative.text("method") or ""
    draft = find_model(speculative.text("model"), heard.catalog.models)
    if "mtp" in method:
        findings.tell("model.mtp", True)
    elif draft is not None and draft.id != findings.values.get("model.id"):
        findings.tell("techniques.speculative.draft.id", draft.id)
    elif "ngram" not in method:
        findings.note("Tokens are guessed by a draft model that is not in the catalog; its memory is not counted.")


FORMAT = LogFormat(
    id="vllm",
    name="vLLM",
    quantities=QUANTITIES,
    patterns=PATTERNS,
    keys=frozenset({"weights", "weights_rounded", "pool", "pool_exact", "tokens", "blocks"}),
    releases=(ReleaseMark("LLM engine ("), ReleaseMark("API server version ")),
    lists=(" with config: ", "non-default args: ", "args: Namespace(", "args: "),
    marks=Marks(
        starts=(
            "API server version ",
            "Initializing a V1 LLM engine",
            "Initializing a V0 LLM engine",
            "Initializing an LLM engine",
        ),
        complete=("pool", "pool_exact", "tokens", "blocks"),
    ),
    tell=tell,
)
