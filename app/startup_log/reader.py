"""From a pasted start-up log to a LogReading."""

from collections.abc import Mapping

from app.catalog.catalog import Catalog
from app.startup_log.cards import cards_by_memory, find_card
from app.startup_log.findings import Findings
from app.startup_log.lines import clean_lines
from app.startup_log.llama_cpp import FORMAT as LLAMA_CPP
from app.startup_log.log_format import Heard, LogFormat, find_release
from app.startup_log.patterns import Hit, find_hits
from app.startup_log.ranks import Ranks, find_ranks
from app.startup_log.reading import Figure, LogError, LogReading
from app.startup_log.runs import Run, split_runs
from app.startup_log.settings import Settings
from app.startup_log.sglang import FORMAT as SGLANG
from app.startup_log.tensorrt_llm import FORMAT as TENSORRT_LLM
from app.startup_log.vllm import FORMAT as VLLM

FORMATS: Mapping[str, LogFormat] = {f.id: f for f in (VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP)}
MOST_FIGURES_OF_A_KIND = 128

_GIB = 2.0**30
_COMMANDS = ("vllm serve", "vllm.entrypoints", "sglang.launch_server", "sglang serve", "trtllm-serve", "llama-server")
_ONLY_LLAMA_CPP = frozenset({"apple"})  # vendors
_POOLS = ("pool", "latent", "keys", "rest")


def read_log(text: str, catalog: Catalog) -> LogReading:
    """The figures and settings in an engine's start-up log, and the partial scenario that they make.

    Raises:
        LogError: it is too long, empty, of no engine that is read here, or of two.
    """
    lines = clean_lines(text)
    ranks = find_ranks(lines)
    described, hits = _recognise(lines, ranks)
    findings = Findings()
    run = _last_complete(split_runs(lines, hits, ranks, described.marks), described, findings)
    release = find_release(run.text, described.releases)
    findings.tell("engine.id", described.id)
    findings.tell("engine.version", release)
    settings = Settings.find(run.text, described.lists)
    described.tell(Heard(run, settings, findings, catalog, release))
    candidates = _tell_card(run, described, findings, catalog)
    if described.smallest_decides:
        _note_ranks(run, findings)
    return LogReading(
        engine=described.id,
        engine_name=described.name,
        release=release,
        figures=_figures(run, described),
        document=findings.document(),
        told=findings.told(),
        missing=findings.missing(described.does_not_apply),
        accelerator_candidates=candidates,
        notes=tuple(findings.notes),
    )


def _recognise(lines: str, ranks: Ranks) -> tuple[LogFormat, tuple[Hit, ...]]:
    found = {}
    for described in FORMATS.values():
        hits = find_hits(lines, described.patterns, described.quantities, ranks)
        if any(hit.id in described.keys for hit in hits):
            found[described.id] = hits
    if len(found) > 1:
        names = " and ".join(FORMATS[id_].name for id_ in found)
        raise LogError(f"Lines of {names} are mixed in this text. Paste the log of one engine.")
    if not found:
        known = ", ".join(described.name for described in FORMATS.values())
        if any(command in lines for command in _COMMANDS):
            raise LogError("This is a command, not its log, or a log that ends early. Paste what the engine printed.")
        raise LogError(f"This is no start-up log that is read here. Those of {known} are.")
    ((id_, hits),) = found.items()
    return FORMATS[id_], hits


def _last_complete(runs: list[Run], described: LogFormat, findings: Findings) -> Run:
    """The last run that got as far as its cache, else the last."""
    complete = [run for run in runs if any(hit.id in described.marks.complete for hit in run.hits)]
    chosen = complete[-1] if complete else runs[-1]
    if len(runs) > 1:
        which = "last complete" if complete else "last"
        findings.note(f"The log holds {len(runs)} starts of the engine; the {which} one is used.")
    if not complete:
        findings.note("The log ends before the engine says how large its cache is.")
    return chosen


def _tell_card(run: Run, described: LogFormat, findings: Findings, catalog: Catalog) -> tuple[str, ...]:
    total = findings.values.get("engine.total_memory_bytes")
    seen = float(total) if total is not None else None
    named = find_card(run.text, seen, catalog)
    findings.tell("hardware.id", named)
    if named is not None or seen is None:
        return ()
    passed_over = frozenset() if described.id == LLAMA_CPP.id else _ONLY_LLAMA_CPP
    return cards_by_memory(seen, catalog, free=described.id == SGLANG.id, passed_over=passed_over)


def _note_ranks(run: Run, findings: Findings) -> None:
    for id_ in _POOLS:
        sizes = [hit.value for hit in run.all(id_)]
        ranks = {hit.rank for hit in run.all(id_)}
        if len(ranks) > 1 and min(sizes) < max(sizes) and "engine.kv_pool_bytes" in findings.values:
            findings.note(
                f"The workers' pools are {min(sizes) / _GIB:.2f} to {max(sizes) / _GIB:.2f} GiB; the smallest decides "
                "how many tokens all hold."
            )
            return


def _figures(run: Run, described: LogFormat) -> tuple[Figure, ...]:
    """Figures in the order of the engine's table, of each kind at most `MOST_FIGURES_OF_A_KIND`."""
    return tuple(
        Figure(id_, quantity.label, hit.value, quantity.unit, hit.rank, hit.printed)
        for id_, quantity in described.quantities.items()
        for hit in run.by_id.get(id_, ())[:MOST_FIGURES_OF_A_KIND]
    )
