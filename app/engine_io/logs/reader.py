"""A start-up log read: its lines made plain, the engine recognised, the figures and the card it names."""

import json
import re
from collections.abc import Iterator, Mapping

from app.calc.quantity import GIB
from app.catalog.catalog import Catalog
from app.catalog.match import known_accelerator
from app.engine_io.logs.findings import Figure, Findings, LogError, LogReading, Settings
from app.engine_io.logs.llama_cpp import FORMAT as LLAMA_CPP
from app.engine_io.logs.log_format import Heard, LogFormat, Run, find_release, split_runs
from app.engine_io.logs.patterns import Hit, Ranks, find_hits, find_ranks
from app.engine_io.logs.sglang import FORMAT as SGLANG
from app.engine_io.logs.tensorrt_llm import FORMAT as TENSORRT_LLM
from app.engine_io.logs.vllm import FORMAT as VLLM

MOST_BYTES = 1024 * 1024
MOST_LINES = 20_000

# Colours with their escape character, as journals write it out, and with it lost in copying.
_COLOUR = re.compile(r"(?:\x1b|\^\[|#033)?\[[0-9;]{1,12}m")
_TITLE = re.compile(r"\x1b\][^\x07\x1b\n]{0,200}\x07?")
_CURSOR = re.compile(r"\x1b\[[0-9;?]{0,12}[A-Za-z]")
_BREAKS = re.compile(r"[\r\n]+")

# Where log collectors keep the message of a JSON line.
_MESSAGE_KEYS = ("log", "message", "msg", "MESSAGE", "line", "text", "event")


def clean_lines(text: str) -> str:
    """The lines of a log, joined by line feeds.

    Raises:
        LogError: it is too long, or empty.
    """
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise LogError("This log is longer than 1 MiB. Paste the part from the engine's start to its first request.")
    if text.count("\n") > MOST_LINES:
        raise LogError(
            f"This log has more than {MOST_LINES:,} lines. Paste the part from the engine's start to its first request."
        )
    # Half of a text in UTF-16 is NULs; without them the rest can be read.
    plain = text.replace("\0", "")
    for noise in (_COLOUR, _TITLE, _CURSOR):
        plain = noise.sub("", plain)
    lines = [line for raw in _BREAKS.split(plain) for line in _messages(raw)]
    if not any(line.strip() for line in lines):
        raise LogError("There is nothing in this log.")
    return "\n".join(lines)


def _messages(line: str) -> list[str]:
    """The line itself, or the message inside a line of JSON."""
    stripped = line.strip()
    if not (stripped.startswith("{") and stripped.endswith("}")):
        return [line]
    try:
        entry = json.loads(stripped)
    except (ValueError, RecursionError):
        return [line]
    for key in _MESSAGE_KEYS:
        message = entry.get(key)
        if isinstance(message, str):
            return _BREAKS.split(_COLOUR.sub("", message.replace("\0", "")))
    return [line]


_MOST_NAMES = 64
_NAME = r"([A-Za-z0-9][A-Za-z0-9 +._/-]{1,59})"
_LINES = (
    # the name of a tuning file for mixtures of experts
    ("device_name=", re.compile(r"([A-Za-z0-9][A-Za-z0-9_+.-]{1,59}?)(?:,|\.json|\]|\s|$)")),
    ("  Device ", re.compile(r"[0-9]{1,3}: " + _NAME + ",")),
    (" Device ", re.compile(r"[0-9]{1,3}: " + _NAME + ",")),
    ("using device ", re.compile(r"[A-Za-z]{1,10}[0-9]{0,3} \(" + _NAME + r"\)")),
    ("GPU name:", re.compile(r"[ ]{0,9}" + _NAME)),
    ("GPU ", re.compile(r"[0-9]{1,3}: " + _NAME + r"(?: \(UUID|$)", re.MULTILINE)),
    ("ggml_vulkan: ", re.compile(r"[0-9]{1,3} = " + _NAME + r" \(")),
    ("Your ", re.compile(_NAME + r" GPU has compute capability")),
)
# What the engine sees of a card is up to 3.5 % less than the driver reports, and never more.
_OF_REPORTED = (0.965, 1.002)
# Where only the label is known: a GB of it may be a GiB, and some of it may be withheld.
_OF_MARKETED = (0.9, 1.08)
# Contexts and collectives take their share before anything is loaded.
_TAKEN_AT_START = 0.03


def find_card(text: str, total_bytes: float | None, catalog: Catalog) -> str | None:
    """The catalog id of the card that the lines name; None where they name none, two, or one it does not have."""
    found = set()
    for name in dict.fromkeys(_names(text)):
        matched = known_accelerator(name, total_bytes, catalog) or known_accelerator(name, None, catalog)
        if matched:
            found.add(matched)
    return found.pop() if len(found) == 1 else None


def cards_by_memory(
    total_bytes: float, catalog: Catalog, free: bool = False, passed_over: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Cards of which an engine would see about this much, those that come nearest first.

    `free` says that it is what was free before loading; vendors in `passed_over` are left out.
    """
    near = []
    for record in catalog.accelerators.values():
        if record.vendor.casefold() in passed_over:
            continue
        device = catalog.devices[record.id]
        reported = device.memory_reported_bytes
        known = reported or device.memory_marketed_bytes
        share = total_bytes / known
        least, most = _OF_REPORTED if reported else _OF_MARKETED
        if free:
            least -= _TAKEN_AT_START
        if least <= share <= most:
            near.append((reported is None, abs(1 - share), record.id))
    return tuple(id_ for _, _, id_ in sorted(near))


def _names(text: str) -> Iterator[str]:
    for literal, behind in _LINES:
        offset, found = text.find(literal), 0
        while offset >= 0 and found < _MOST_NAMES:
            found += 1
            start = offset + len(literal)
            if matched := behind.match(text, start):
                yield matched[1].replace("_", " ").strip()
            offset = text.find(literal, start)


FORMATS: Mapping[str, LogFormat] = {f.id: f for f in (VLLM, SGLANG, TENSORRT_LLM, LLAMA_CPP)}
MOST_FIGURES_OF_A_KIND = 128

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
                f"The workers' pools are {min(sizes) / GIB:.2f} to {max(sizes) / GIB:.2f} GiB; the smallest decides "
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
