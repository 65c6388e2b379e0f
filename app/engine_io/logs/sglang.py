"""The start-up log of SGLang, from 0.2 on. What it prints as GB is GiB."""

from app.calc.quantity import GIB
from app.engine_io.logs.findings import Unit
from app.engine_io.logs.log_format import Heard, LogFormat, Marks, ReleaseMark, Run
from app.engine_io.logs.model_names import NamedModel, cache_type, find_model, scheme_format, stated_weights, wide_type
from app.engine_io.logs.patterns import Hit, Quantity, line

_CACHES = ("keys", "values", "latent")
_AVAILABLE = r".{0,300}?avail mem=<mem>"

QUANTITIES = {
    "free_before": Quantity("Free before loading", Unit.BYTES),
    "free_after": Quantity("Free after loading", Unit.BYTES),
    "weights": Quantity("Loaded weights", Unit.BYTES),
    "collectives": Quantity("Taken by starting the collectives", Unit.BYTES),
    "fraction": Quantity("mem_fraction_static", Unit.SHARE),
    "keys": Quantity("Keys of the cache", Unit.BYTES),
    "values": Quantity("Values of the cache", Unit.BYTES),
    "latent": Quantity("Cache of keys and values together", Unit.BYTES),
    "window": Quantity("Cache of window and full layers", Unit.BYTES),
    "conv_state": Quantity("Convolution states", Unit.BYTES),
    "ssm_state": Quantity("Recurrent states", Unit.BYTES),
    "rest": Quantity("Left for the cache", Unit.BYTES),
    "pool_tokens": Quantity("Tokens of the pool", Unit.TOKENS),
    "free_after_pool": Quantity("Free after the pool", Unit.BYTES),
    "graphs": Quantity("Captured CUDA graphs", Unit.BYTES),
    "tokens": Quantity("Tokens of the cache", Unit.TOKENS),
    "chunk": Quantity("Tokens of a prefill chunk", Unit.TOKENS),
    "prefill": Quantity("Tokens of a prefill batch", Unit.TOKENS),
    "sequences": Quantity("Sequences at a time", Unit.SEQUENCES),
    "length": Quantity("Longest sequence", Unit.TOKENS),
    "free_at_last": Quantity("Free when ready", Unit.BYTES),
}

PATTERNS = (
    line("Init torch distributed ends.", r".{0,40}?mem usage=<mem>", "collectives"),
    line("Load weight begin.", _AVAILABLE, "free_before"),
    # with "[gpu_id=0]" before it and no size in 2024; elapsed and quant since 2026
    line("Load weight end.", _AVAILABLE + "(?:, mem usage=<mem>)?", "free_after", "weights"),
    line("load weight end.", _AVAILABLE + "(?:, mem usage=<mem>)?", "free_after", "weights"),
    line("Memory profiling: ", r".{0,120}?mem_fraction_static=<num>, rest_memory=<mem>", "fraction", "rest"),
    line(
        "KV Cache is allocated.",
        r"(?: dtype: [a-z0-9_.]{1,30},)?(?: #tokens: <num>,)? K size: <mem>, V size: <mem>",
        *("pool_tokens", "keys", "values"),
    ),
    line(
        "KV Cache is allocated.",
        r"(?: dtype: [a-z0-9_.]{1,30},)?(?: #tokens: <num>,)? KV size: <mem>",
        *("pool_tokens", "latent"),
    ),
    line("SWAKVPool mem usage: ", "<mem>", "window"),
    line(
        "Mamba Cache is allocated.", r".{0,80}?conv_state size: <mem>, ssm_state size: <mem>", "conv_state", "ssm_state"
    ),
    line("Memory pool end.", _AVAILABLE, "free_after_pool"),
    line("Capture cuda graph end.", r".{0,60}?mem usage=<mem>", "graphs"),
    line("Capture target decode CUDA graph end.", r".{0,60}?mem usage=<mem>", "graphs"),
    line("max_total_num_tokens=", "<num>", "tokens"),
    line("max_total_num_tokens=", r".{0,80}?chunked_prefill_size=<num>", "chunk"),
    line("max_total_num_tokens=", r".{0,80}?max_prefill_tokens=<num>", "prefill"),
    line("max_total_num_tokens=", r".{0,120}?max_running_requests=<num>", "sequences"),
    line("max_total_num_tokens=", r".{0,160}?context_len=<num>", "length"),
    line("max_total_num_tokens=", r".{0,200}?available_gpu_mem=<mem>", "free_at_last"),
)


def tell(heard: Heard) -> None:
    """Fill the findings from one run."""
    _tell_settings(heard)
    run, findings = heard.run, heard.findings
    first = _first_of_ranks(run)
    pools = {rank: pool for rank, figures in first.items() if (pool := _pool(figures)) is not None}
    decisive = min(pools, key=lambda rank: pools[rank]) if pools else None
    figures = first.get(decisive, {}) if pools else {}
    free = figures.get("free_before") or _smallest(first, "free_before")
    findings.tell("engine.total_memory_bytes", free)
    if free is not None:
        # What other programs, the context and the collectives hold is off it already.
        findings.tell("engine.non_framework_bytes", 0.0)
        findings.note("The memory seen is what was free before loading: SGLang takes its fraction of that.")
    weights = figures.get("weights") or _largest(first, "weights")
    after = figures.get("free_after") or _smallest(first, "free_after")
    if weights is None and free is not None and after is not None and free > after:
        weights = free - after
    findings.tell("engine.weights_bytes", weights)
    if pools:
        findings.tell("engine.kv_pool_bytes", pools[decisive])
    tokens = run.smallest("tokens")
    sizes = {hit.value for hit in run.hits if hit.id == "pool_tokens"}
    findings.tell("observed.kv_tokens", tokens.value if tokens else sizes.pop() if len(sizes) == 1 else None)
    _note_draft(heard)


def _first_of_ranks(run: Run) -> dict[str | None, dict[str, float]]:
    """Of each rank and figure the first: what comes after it is a draft model's, which is loaded second.

    Before that, caches add up: a model of window and full layers has one of each.
    """
    first: dict[str | None, dict[str, float]] = {}
    loaded: dict[str | None, int] = {}
    for hit in run.hits:
        own = first.setdefault(hit.rank, {})
        loaded[hit.rank] = loaded.get(hit.rank, 0) + (hit.id == "free_after")
        if hit.id not in own:
            own[hit.id] = hit.value
        elif hit.id in _CACHES and loaded[hit.rank] < 2:
            own[hit.id] += hit.value
    return first


def _pool(figures: dict[str, float]) -> float | None:
    """All that is set aside for sequences: keys and values of every kind of layer, and states."""
    caches = [figures[id_] for id_ in _CACHES if id_ in figures]
    if "window" in figures:
        caches = [figures["window"]]  # the sum of the two that are printed before
    if not caches and "rest" in figures:
        return figures["rest"]
    states = [figures[id_] for id_ in ("conv_state", "ssm_state") if id_ in figures]
    return sum(caches) + sum(states) if caches else None


def _smallest(first: dict[str | None, dict[str, float]], id_: str) -> float | None:
    return min((figures[id_] for figures in first.values() if id_ in figures), default=None)


def _largest(first: dict[str | None, dict[str, float]], id_: str) -> float | None:
    return max((figures[id_] for figures in first.values() if id_ in figures), default=None)


def _note_draft(heard: Heard) -> None:
    loaded: dict[str | None, list[Hit]] = {}
    for hit in heard.run.hits:
        if hit.id == "weights" and hit.value > 0:
            loaded.setdefault(hit.rank, []).append(hit)
    second = next((hits[1] for hits in loaded.values() if len(hits) > 1), None)
    if second is not None:
        heard.findings.note(
            f"A second model was loaded, {second.value / GIB:.2f} GiB: a draft. Weights and pool are the first one's."
        )


def _tell_settings(heard: Heard) -> None:
    run, settings, findings = heard.run, heard.settings, heard.findings
    model = find_model(settings.text("model_path"), heard.catalog.models)
    record = heard.catalog.models[model.id] if model else None
    findings.tell("model.id", model.id if model else None)
    weights = (model.weights if model else None) or scheme_format(settings.text("quantization"))
    findings.tell("precision.weights", stated_weights(record, weights))
    findings.tell("precision.kv_cache", _cache_type(heard))
    _tell_parallelism(heard)
    findings.tell("engine.memory_utilization", run.last("fraction") or settings.real("mem_fraction_static"))
    findings.tell("engine.max_model_len", run.last("length") or settings.whole("context_length"))
    findings.tell("engine.max_num_seqs", run.last("sequences") or settings.whole("max_running_requests"))
    chunk = run.last("chunk") or settings.whole("chunked_prefill_size")
    findings.tell("engine.max_batched_tokens", chunk if chunk and chunk > 0 else run.last("prefill"))
    findings.tell("engine.block_size", settings.whole("page_size"))
    uncached = settings.flag("disable_radix_cache")
    findings.tell("engine.prefix_caching", None if uncached is None else not uncached)
    findings.tell("engine.enforce_eager", settings.flag("disable_cuda_graph"))
    _tell_speculation(heard, model)


def _tell_speculation(heard: Heard, model: NamedModel | None) -> None:
    settings, findings = heard.settings, heard.findings
    method = settings.text("speculative_algorithm") or "None"
    guessed = settings.whole("speculative_num_draft_tokens", "speculative_num_steps")
    if method == "None" or guessed is None:
        return
    findings.tell("techniques.speculative.draft_tokens", guessed)
    draft = find_model(settings.text("speculative_draft_model_path"), heard.catalog.models)
    if method == "NEXTN" or (draft and model and draft.id == model.id):
        findings.tell("model.mtp", True)
    elif draft and "techniques.speculative.draft_tokens" in findings.values:
        findings.tell("techniques.speculative.draft.id", draft.id)
    elif "NGRAM" not in method:
        findings.note("Tokens are guessed by a draft model that is not in the catalog; its memory is not counted.")


def _cache_type(heard: Heard) -> str | None:
    """The type that the log says was chosen, else the setting; "auto" alone does not tell."""
    for literal in ("Using KV cache dtype: ", "KV Cache is allocated. dtype: "):
        at = heard.run.text.rfind(literal)
        if at >= 0:
            behind = heard.run.text[at + len(literal) :][:40]
            return cache_type(behind.split("\n")[0].split(",")[0].strip())
    said = heard.settings.text("kv_cache_dtype")
    return wide_type(_loaded_dtype(heard.run.text)) if said == "auto" else cache_type(said)


def _loaded_dtype(text: str) -> str:
    at = text.find("Load weight end.")
    said = text.find("dtype=", at, at + 200) if at >= 0 else -1
    return text[said + 6 : said + 40].split(",")[0] if said >= 0 else ""


def _tell_parallelism(heard: Heard) -> None:
    settings, findings = heard.settings, heard.findings
    tensor, pipeline, data = (settings.whole(f"{part}_size") for part in ("tp", "pp", "dp"))
    if tensor is None:
        return
    findings.tell("parallelism.pipeline", pipeline)
    expert = settings.whole("ep_size")
    findings.tell("parallelism.expert", expert)
    if settings.flag("enable_dp_attention") and data and tensor % data == 0:
        # Here tp_size counts all GPUs of a stage, and attention is split over what data parallelism leaves.
        findings.tell("parallelism.tensor", tensor // data)
        findings.tell("parallelism.data", data)
        findings.tell("hardware.count", tensor * (pipeline or 1))
        return
    findings.tell("parallelism.tensor", tensor)
    findings.tell("hardware.count", tensor * (pipeline or 1) * (data or 1))
    if data and data > 1:
        findings.note(f"{data} replicas run beside each other; the figures are those of one.")


FORMAT = LogFormat(
    id="sglang",
    name="SGLang",
    quantities=QUANTITIES,
    patterns=PATTERNS,
    keys=frozenset({"free_after", "keys", "latent", "window", "tokens"}),
    releases=(ReleaseMark("sglang=="), ReleaseMark("sglang version: "), ReleaseMark("SGLang version: ")),
    lists=("server_args=ServerArgs(", "ServerArgs("),
    marks=Marks(
        starts=("server_args=ServerArgs(",),
        restarts=("Load weight begin.",),
        complete=("tokens", "keys", "latent"),
        ready=("tokens",),
        first=frozenset(QUANTITIES) - {"tokens", "graphs", "free_at_last"},
    ),
    tell=tell,
    does_not_apply=(
        "engine.activation_bytes",
        "engine.non_framework_bytes",
        "engine.graph_bytes",
        "observed.gpu_blocks",
        "observed.max_concurrency",
    ),
)
