"""llama.cpp's start-up log: its rules, and what it calls models and types."""

import re
from collections.abc import Iterator, Mapping

from app.calc.dtypes import WeightFormat
from app.engine_io.logs.findings import Unit
from app.engine_io.logs.log_format import Heard, LogFormat, Marks, ReleaseMark, Run
from app.engine_io.logs.model_names import cache_type, find_model, stated_weights
from app.engine_io.logs.patterns import DEVICE, LinePattern, Quantity, line

_MOST_NAMES = 16
_NAME = re.compile(r"[ ]{0,20}(?:str)?[ ]{0,40}= ([^\n]{1,120})")
_PLACES = (
    ("general.name", _NAME),
    ("general.basename", _NAME),
    ("tensors from ", re.compile(r"([^\n]{1,300}?) \(version")),
    ("loading model ", re.compile(r"'([^'\n]{1,300})'")),
)
_FILE_TYPES = (
    ("print_info: file type", re.compile(r"[ ]{0,20}= ([A-Za-z0-9_]{2,12})")),
    ("model ftype", re.compile(r"[ ]{0,20}= ([A-Za-z0-9_]{2,12})")),
)
_FORMATS: Mapping[str, WeightFormat] = {
    "F32": WeightFormat.FP32,
    "all": WeightFormat.FP32,
    "F16": WeightFormat.FP16,
    "BF16": WeightFormat.BF16,
    "Q8_0": WeightFormat.INT8,
    "Q4_0": WeightFormat.INT4,
    "Q4_1": WeightFormat.INT4,
    "Q4_K": WeightFormat.INT4,
    "IQ4_NL": WeightFormat.INT4,
    "IQ4_XS": WeightFormat.INT4,
    "MXFP4": WeightFormat.MXFP4,
    "NVFP4": WeightFormat.NVFP4,
}
_EXACT = frozenset({"F32", "all", "F16", "BF16", "MXFP4", "NVFP4"})


def tell_names(heard: Heard, text: str) -> None:
    """Fill in the model and the weight format of one model's part of the log."""
    models = heard.catalog.models
    found = [model for name in _after(text, _PLACES) if (model := find_model(name, models))]
    ids = {model.id for model in found}
    record = None
    if len(ids) == 1:
        record = models[found[0].id]
        heard.findings.tell("model.id", record.id)
    elif ids:
        heard.findings.note("The log names more than one model of the catalog, so none is taken.")
    for file_type in _after(text, _FILE_TYPES):
        said = _FORMATS.get(file_type)
        if said is None:
            heard.findings.note(
                "The file's weight format has no name in a scenario; the measured weights stand for it."
            )
            return
        heard.findings.tell("precision.weights", stated_weights(record, said))
        if file_type not in _EXACT:
            heard.findings.note(f"The file's weights are read as {said}; the measured weights include its own scales.")
        return


def _after(text: str, places: tuple[tuple[str, re.Pattern[str]], ...]) -> Iterator[str]:
    for literal, behind in places:
        at, found = text.find(literal), 0
        while at >= 0 and found < _MOST_NAMES:
            found += 1
            if matched := behind.match(text, at + len(literal)):
                yield matched[1].strip()
            at = text.find(literal, at + len(literal))


QUANTITIES = {
    "total": Quantity("Memory of the card", Unit.BYTES),
    "free": Quantity("Free before loading", Unit.BYTES),
    "file": Quantity("Size of the model", Unit.BYTES),
    "weights": Quantity("Weights on the device", Unit.BYTES),
    "offloaded": Quantity("Layers on devices", Unit.ORDINAL),
    "layers": Quantity("Layers in all", Unit.ORDINAL),
    "sequences": Quantity("Sequences at a time", Unit.SEQUENCES),
    "tokens": Quantity("Tokens of the cache", Unit.TOKENS),
    "length": Quantity("Longest sequence", Unit.TOKENS),
    "batch": Quantity("Tokens of a logical batch", Unit.TOKENS),
    "micro_batch": Quantity("Tokens of a prefill step", Unit.TOKENS),
    "pool": Quantity("Cache on the device", Unit.BYTES),
    "states": Quantity("Recurrent states on the device", Unit.BYTES),
    "cache": Quantity("Cache in all", Unit.BYTES),
    "vram": Quantity("Weights on devices", Unit.BYTES),
    "compute": Quantity("Compute buffer", Unit.BYTES),
    "slots": Quantity("Slots", Unit.SEQUENCES),
    "slot_length": Quantity("Longest sequence of a slot", Unit.TOKENS),
}

_BUFFER = r"<sp>([A-Za-z][^\s]{0,60}) "
_SIZE = r"buffer size<sp>=<sp><mem>"
_CONTEXTS = ("llama_context: ", "llama_new_context_with_model: ", "llama_init_from_model: ")
# "init:" ends "llama_kv_cache_init:" of 2024 too
_CACHES = ("init:", "llama_kv_cache_unified:", "llama_kv_cache:")
_ONE_OF_CONTEXT = {
    "n_seq_max": "sequences",
    "n_ctx": "tokens",
    "n_ctx_per_seq": "length",
    "n_ctx_seq": "length",
    "n_batch": "batch",
    "n_ubatch": "micro_batch",
}


def _context_lines() -> Iterator[LinePattern]:
    for function in _CONTEXTS:
        for name, id_ in _ONE_OF_CONTEXT.items():
            yield line(function + name, "<sp>=<sp><num>", id_)
    for function in (*(name.strip() for name in _CONTEXTS), "sched_reserve:", "init:"):
        yield line(function, _BUFFER + "compute " + _SIZE, DEVICE, "compute")


PATTERNS = (
    line("VRAM: ", "<mem>", "total"),
    line("|   - ", r"([A-Za-z]{1,12}[0-9]{0,3}) \([^)\n]{1,60}\)<sp>\|<sp><mib> = ", DEVICE, "total"),
    line(
        "using device ",
        r"([A-Za-z]{1,12}[0-9]{0,3}) \([^)\n]{1,60}\)(?: \([^)\n]{1,40}\))? - <mem> free",
        DEVICE,
        "free",
    ),
    line("print_info: file size", "<sp>=<sp><mem>", "file"),
    line("print_meta: model size", "<sp>=<sp><mem>", "file"),
    line("load_tensors:", _BUFFER + "(?:model )?" + _SIZE, DEVICE, "weights"),
    line("load_tensors: offloaded ", "<num>/<num> layers", "offloaded", "layers"),
    *_context_lines(),
    *(line(function, _BUFFER + "KV " + _SIZE, DEVICE, "pool") for function in _CACHES),
    *(
        line(f, _BUFFER + "RS " + _SIZE, DEVICE, "states")
        for f in ("llama_memory_recurrent:", "llama_kv_cache_recurrent:")
    ),
    line("KV self size", "<sp>=<sp><mem>", "cache"),
    # 2023, one device and MB
    line("kv self size", "<sp>=<sp><mem>", "cache"),
    line("VRAM used", "<sp>[:=]<sp><mem>", "vram"),
    *(line(function, " size =<sp><mem>", "cache") for function in _CACHES),
    line("n_slots", "<sp>=<sp><num>", "slots"),
    line("n_ctx_slot", "<sp>=<sp><num>", "slot_length"),
    line("new slot, n_ctx", "<sp>=<sp><num>", "slot_length"),
)

# Names only: 34 bytes for 32 values in q8_0, for example, which the scenario counts as 8 bits.
_CACHE_TYPES = re.compile(r"[ ,](V|K|K-only|c\^KV) \(([a-z][a-z0-9_]{1,11})\):")
_SECOND_MODEL = ("llama_model_loader: loaded meta data", "creating MTP draft context")


def tell(heard: Heard) -> None:
    """Fill the findings from one run."""
    run, findings = _main_model(heard), heard.findings
    tell_names(heard, run.text)
    _tell_context(heard, run)
    devices = _by_device(run)
    fullest = None
    if devices:
        # Layers are dealt out to the devices; the fullest one decides whether they fit.
        fullest = max(devices, key=lambda name: sum(devices[name].values()))
        own = devices[fullest]
        findings.tell("engine.weights_bytes", own.get("weights"))
        findings.tell("engine.activation_bytes", own.get("compute"))
        cache = [own[id_] for id_ in ("pool", "states") if id_ in own]
        findings.tell("engine.kv_pool_bytes", sum(cache) if cache else None)
        holding = [name for name, sizes in devices.items() if "weights" in sizes]
        if holding:
            findings.tell("hardware.count", len(holding))
            findings.tell("parallelism.tensor", 1)
            findings.tell("parallelism.pipeline", len(holding))
        if len(holding) > 1:
            findings.note(
                f"The layers lie on {len(holding)} devices; the bytes are those of {fullest}, the fullest, and the "
                "devices are read as pipeline stages."
            )
    else:
        findings.tell("engine.weights_bytes", run.last("vram"))
        last = max((hit.offset for hit in run.hits if hit.id == "tokens"), default=0)
        caches = [hit.value for hit in run.hits if hit.id == "cache" and hit.offset >= last]
        findings.tell("engine.kv_pool_bytes", sum(caches) if caches else None)
    findings.tell("engine.total_memory_bytes", run.of_rank(fullest, "total"))
    _note_host(heard, run)


def _main_model(heard: Heard) -> Run:
    """The run up to where a draft model is loaded, if both weights and cache come before that."""
    run = heard.run
    first = run.text.find(_SECOND_MODEL[0])
    ends = [run.text.find(_SECOND_MODEL[0], first + 1), run.text.find(_SECOND_MODEL[1])]
    end = min((at for at in ends if at > first), default=-1)
    if end < 0:
        return run
    before = tuple(hit for hit in run.hits if hit.offset < run.start + end)
    if {"weights", "pool"} <= {hit.id for hit in before}:
        heard.findings.note("A draft model is loaded after the model; its buffers are not in these figures.")
        return Run(run.text[:end], before, run.ranks, run.start, run.first)
    return run


def _by_device(run: Run) -> dict[str, dict[str, float]]:
    """Bytes of each device by what they hold. Fitting makes contexts on trial, so only what follows the last counts."""
    last = max((hit.offset for hit in run.hits if hit.id == "tokens"), default=0)
    devices: dict[str, dict[str, float]] = {}
    for hit in run.hits:
        if hit.rank is None or hit.id not in ("weights", "pool", "states", "compute"):
            continue
        if hit.id != "weights" and hit.offset < last:
            continue
        sizes = devices.setdefault(hit.rank, {})
        # Window layers have a cache of their own, and mapped weights may come in several parts.
        added = sizes.get(hit.id, 0.0) if hit.id in ("pool", "states", "weights") else 0.0
        sizes[hit.id] = added + hit.value
    return devices


def _tell_context(heard: Heard, run: Run) -> None:
    findings = heard.findings
    sequences, tokens = run.last("sequences", "slots") or run.last("slots"), run.last("tokens")
    length = run.last("length", "slot_length")
    if length is None and tokens is not None and sequences:
        length = tokens // sequences
    findings.tell("engine.max_num_seqs", sequences)
    findings.tell("engine.max_model_len", length or tokens)
    findings.tell("engine.max_batched_tokens", run.last("micro_batch"))
    findings.tell("observed.kv_tokens", tokens)
    kinds = {half == "V": cache_type(name) for half, name in _CACHE_TYPES.findall(run.text)}
    keys = kinds.get(False)
    if keys and kinds.get(True, keys) == keys:
        findings.tell("precision.kv_cache", keys)
    elif kinds:
        findings.note("Keys and values have types that a scenario cannot name together; its cache type is left out.")


def _note_host(heard: Heard, run: Run) -> None:
    offloaded, layers = run.last("offloaded"), run.last("layers")
    if offloaded is not None and layers is not None and offloaded < layers:
        heard.findings.note(
            f"{offloaded:.0f} of {layers:.0f} layers are on devices; the rest lies in the host's memory, which the "
            "scenario does not know."
        )


FORMAT = LogFormat(
    id="llama.cpp",
    name="llama.cpp",
    quantities=QUANTITIES,
    patterns=PATTERNS,
    keys=frozenset({"weights", "pool", "file", "tokens", "cache", "vram"}),
    releases=(
        ReleaseMark("build: ", re.compile(r"([0-9]{2,6}) \("), "b"),
        ReleaseMark("build = ", re.compile(r"([0-9]{2,6}) \("), "b"),
    ),
    lists=(),
    marks=Marks(
        starts=("ggml_cuda_init: found", "main: loading model", "load_model: loading model", "main: load the model"),
        restarts=("llama_model_loader: loaded meta data",),
        complete=("pool", "cache"),
        ready=("slots",),
    ),
    tell=tell,
    smallest_decides=False,
    does_not_apply=(
        *("engine.memory_utilization", "engine.block_size", "engine.prefix_caching", "engine.non_framework_bytes"),
        *("engine.graph_bytes", "observed.gpu_blocks", "observed.max_concurrency"),
    ),
)
