"""The start-up log of TensorRT-LLM: the C++ runtime of built engines, and the PyTorch backend."""

from app.calc.quantity import GIB
from app.engine_io.logs.findings import Unit
from app.engine_io.logs.log_format import Heard, LogFormat, Marks, ReleaseMark, Run
from app.engine_io.logs.model_names import cache_type, find_model, scheme_format, stated_weights
from app.engine_io.logs.patterns import Hit, Quantity, line

_PYTORCH = "PyTorch backend"

QUANTITIES = {
    "total": Quantity("Memory of the card", Unit.BYTES),
    "weights": Quantity("Engine", Unit.BYTES),
    "weights_inside": Quantity("Weights, inside the framework", Unit.BYTES),
    "outside_loaded": Quantity("Outside the framework after loading", Unit.BYTES),
    "activation": Quantity("Execution context", Unit.BYTES),
    "activation_torch": Quantity("Taken while inferring", Unit.BYTES),
    "outside": Quantity("Outside the framework", Unit.BYTES),
    "runtime": Quantity("Runtime buffers", Unit.BYTES),
    "decoder": Quantity("Decoder buffers", Unit.BYTES),
    "peak": Quantity("Peak while profiling", Unit.BYTES),
    "free": Quantity("Free for the cache", Unit.BYTES),
    "planned": Quantity("Planned for the cache", Unit.BYTES),
    "fraction": Quantity("Fraction of the free memory", Unit.SHARE),
    "token_bytes": Quantity("Bytes of a token", Unit.ORDINAL),
    "pool": Quantity("Cache pool", Unit.BYTES),
    "tokens": Quantity("Tokens of the cache", Unit.TOKENS),
    "blocks": Quantity("Blocks of the cache", Unit.BLOCKS),
    "block": Quantity("Tokens of a block", Unit.TOKENS),
    "length": Quantity("Longest sequence", Unit.TOKENS),
    "sequences": Quantity("Sequences at a time", Unit.SEQUENCES),
    "batched": Quantity("Tokens of a prefill step", Unit.TOKENS),
    "draft": Quantity("Guessed tokens", Unit.TOKENS),
}

PATTERNS = (
    # C++ runtime
    line("Loaded engine size: ", "<mem>", "weights"),
    line("Allocated ", "<mem> for execution context memory", "activation"),
    line("Allocated ", "<mem> GPU memory for runtime buffers", "runtime"),
    line("Allocated ", "<mem> GPU memory for decoder", "decoder"),
    line("when calculating max tokens in paged kv cache: ", "total: <mem>, available: <mem>", "total", "free"),
    line("Number of blocks in KV cache primary pool: ", "<num>", "blocks"),
    line("Number of tokens per block: ", "<num>", "block"),
    # since 1.0, in place of the number of blocks
    line(
        "Max KV cache blocks per sequence: ",
        r".{0,60}?tokens per block=<num> ?, primary blocks=<num>, secondary blocks=[0-9]{1,9}"
        "(?:, max sequence length=<num>)?",
        *("block", "blocks", "length"),
    ),
    line("Allocated ", r"<mem> for max tokens in paged KV cache \(<num>\)", "pool", "tokens"),
    line("TRTGptModel maxNumSequences: ", "<num>", "sequences"),
    line("TRTGptModel maxSequenceLen: ", "<num>", "length"),
    line("TRTGptModel maxNumTokens: ", "<num>", "batched"),
    line("TRTGptModel maxDraftLen: ", "<num>", "draft"),
    # PyTorch backend
    line("Use ", "<mem> for model weights", "weights"),
    line(
        "Memory used after loading model weights (inside torch)", r" in memory usage profiling: <mem>", "weights_inside"
    ),
    line(
        "Memory used after loading model weights (outside torch)",
        r" in memory usage profiling: <mem>",
        "outside_loaded",
    ),
    line("Memory dynamically allocated during inference", r".{0,60}?profiling: <mem>", "activation_torch"),
    line("Memory used outside torch", r".{0,80}?profiling: <mem>", "outside"),
    line("Peak memory during memory usage profiling", r".{0,40}?: <mem>", "peak"),
    line("available KV cache memory when calculating max tokens: ", "<mem>", "planned"),
    line(
        "fraction is set ",
        r"<num>, kv size (?:per token )?is ([0-9]{1,15})(?:\. device total memory <mem>)?",
        *("fraction", "token_bytes", "total"),
    ),
    line("max_seq_len=", "<num>, max_num_requests=<num>, max_num_tokens=<num>", "length", "sequences", "batched"),
)


def tell(heard: Heard) -> None:
    """Fill the findings from one run."""
    _tell_settings(heard)
    run, findings = heard.run, heard.findings
    least = _in_force(run, "pool", "planned")
    rank = least.rank if least else None
    findings.tell("engine.total_memory_bytes", run.of_rank(rank, "total"))
    findings.tell("engine.weights_bytes", run.of_rank(rank, "weights", "weights_inside"))
    findings.tell("engine.activation_bytes", run.of_rank(rank, "activation", "activation_torch"))
    buffers = [size for id_ in ("runtime", "decoder") if (size := run.of_rank(rank, id_)) is not None]
    outside = run.of_rank(rank, "outside")
    findings.tell("engine.non_framework_bytes", sum(buffers) if buffers else outside)
    if least:
        if least.value >= 1:
            findings.tell("engine.kv_pool_bytes", least.value)
        else:
            findings.note(f"The memory left for the cache is {least.value / GIB:.2f} GiB.")
    for path, id_ in (("kv_tokens", "tokens"), ("gpu_blocks", "blocks")):
        figure = _in_force(run, id_)
        findings.tell(f"observed.{path}", figure.value if figure else None)


def _in_force(run: Run, *ids: str) -> Hit | None:
    """The smallest of the ranks' figures, of those that are in force.

    The PyTorch backend makes a small cache for profiling first, in lines that name no rank. What follows the profiling
    is in force, and without a word of it what stands last.
    """
    figures = run.all(*ids)
    if _PYTORCH in run.text and len(figures) > 1 and all(hit.rank is None for hit in figures):
        profiled = max((hit.offset for hit in run.all("planned")), default=0)
        after = [hit for hit in figures if hit.offset > profiled > 0]
        return min(after, key=lambda hit: hit.value) if after else max(figures, key=lambda hit: hit.offset)
    return run.smallest(*ids)


def _tell_settings(heard: Heard) -> None:
    run, settings, findings = heard.run, heard.settings, heard.findings
    model = find_model(settings.text("model", "model_name", "model_path"), heard.catalog.models)
    record = heard.catalog.models[model.id] if model else None
    findings.tell("model.id", model.id if model else None)
    weights = (model.weights if model else None) or scheme_format((settings.text("quant_algo") or "").lower())
    findings.tell("precision.weights", stated_weights(record, weights))
    cache = settings.text("kv_cache_dtype", "kv_cache_quant_algo")
    findings.tell("precision.kv_cache", None if cache in ("auto", "None") else cache_type(cache))
    tensor, pipeline = settings.whole("tensor_parallel_size"), settings.whole("pipeline_parallel_size")
    findings.tell("parallelism.tensor", tensor)
    findings.tell("parallelism.pipeline", pipeline)
    findings.tell("parallelism.expert", settings.whole("moe_expert_parallel_size", "expert_parallel_size"))
    if tensor is not None:
        findings.tell("hardware.count", tensor * (pipeline or 1))
    findings.tell("engine.memory_utilization", run.last("fraction") or settings.real("free_gpu_memory_fraction"))
    findings.tell("engine.max_model_len", run.last("length") or settings.whole("max_seq_len"))
    findings.tell("engine.max_num_seqs", run.last("sequences") or settings.whole("max_batch_size"))
    findings.tell("engine.max_batched_tokens", run.last("batched") or settings.whole("max_num_tokens"))
    findings.tell("engine.block_size", run.last("block") or settings.whole("tokens_per_block"))
    reuse = [said for said in ("enabled", "disabled") if f"KV cache block reuse is {said}" in run.text]
    findings.tell("engine.prefix_caching", reuse == ["enabled"] if len(reuse) == 1 else None)
    findings.tell("techniques.speculative.draft_tokens", run.last("draft") or None)


FORMAT = LogFormat(
    id="tensorrt-llm",
    name="TensorRT-LLM",
    quantities=QUANTITIES,
    patterns=PATTERNS,
    keys=frozenset({"weights", "weights_inside", "pool", "planned"}),
    releases=tuple(map(ReleaseMark, ("TensorRT-LLM version: ", "TensorRT LLM version: ", "Engine version "))),
    lists=("LlmArgs(", "engine args: ", "config: Config(", "KvCacheConfig(", "args: "),
    marks=Marks(
        starts=("TensorRT-LLM version: ", "TensorRT LLM version: "),
        restarts=("Loaded engine size: ",),
        complete=("tokens",),
        ready=("tokens",),
    ),
    tell=tell,
    does_not_apply=("engine.graph_bytes", "engine.enforce_eager", "observed.max_concurrency"),
)
