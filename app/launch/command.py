"""A scenario out of a launch text that was pasted."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from app.catalog.catalog import Catalog
from app.launch import carried, llama_cpp, prefill_pool, sglang, tensorrt_llm, vllm
from app.launch.arguments import Arguments, leave_the_rest, split_arguments
from app.launch.findings import Findings, get
from app.launch.forms import MOST_BYTES, CommandError, CommandReading
from app.launch.locate import Launch, find_launch
from app.launch.releases import release_of

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_READERS: Mapping[str, Callable[[Arguments, Findings, Catalog, Mapping[str, str]], None]] = {
    vllm.ENGINE: vllm.read,
    sglang.ENGINE: sglang.read,
    tensorrt_llm.ENGINE: tensorrt_llm.read,
    llama_cpp.ENGINE: llama_cpp.read,
}


def read_command(text: str, catalog: Catalog) -> CommandReading:
    """The scenario document that a launch text stands for, as far as it says one.

    Flags win over the comment line that `launch_variants` writes, and that over what names and images suggest. No
    host, path, token or other word of the text is kept.

    Raises:
        CommandError: the text cannot be read, or a flag says something that cannot be; in words fit for its author.
    """
    text = _checked(text)
    comment = carried.read_comment(text)
    launch = find_launch(text)
    findings = Findings()
    findings.tell("the launcher", "engine.id", "llm-d" if launch.by_llm_d else launch.engine)
    if launch.by_llm_d:
        findings.tell("the launcher", "engine.underneath", launch.engine, inferred=True)
    release = release_of(launch.engine)
    arguments = split_arguments(launch.words, release, findings)
    _READERS[launch.engine](arguments, findings, catalog, launch.files)
    leave_the_rest(arguments, release, findings)
    _read_surroundings(launch, findings, comment or {})
    document = carried.combined(findings.inferred, comment or {}, findings.document, findings.guesser)
    return CommandReading(
        document=document,
        told=tuple(told for told in findings.told if get(document, told.path) == told.value),
        unread=tuple(findings.unread),
        missing=_missing(document, findings, comment is not None),
        engine=launch.engine,
        variant=launch.variant,
    )


def _checked(text: str) -> str:
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise CommandError(f"The text is longer than {MOST_BYTES // 1024} KiB.")
    text = text.replace("\r\n", "\n")
    if _CONTROLS.search(text):
        raise CommandError("The text has control characters in it: paste plain text.")
    if not text.strip():
        raise CommandError("There is nothing to read.")
    return text


def _read_surroundings(launch: Launch, findings: Findings, comment: dict[str, Any]) -> None:
    """What image and replicas say, which weighs less than flags and comment."""
    if launch.version is not None:
        findings.tell("the image", "engine.version", launch.version, inferred=True)
    if launch.replicas is not None and findings.resolved("replicas", launch.replicas):
        number = _whole_replicas(launch.replicas)
        of_one = get(findings.inferred, "hardware.count") or _ranks(findings.document)
        if number:
            findings.tell("replicas", "hardware.count", number * of_one, inferred=True)
    if launch.prefill is not None:
        prefill_pool.read(launch.prefill, findings, comment)


def _whole_replicas(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise CommandError("replicas must be a whole number, written in digits.")
    return int(text)


def _ranks(document: dict[str, Any]) -> int:
    ranks = 1
    for size in ("tensor", "pipeline", "data"):
        ranks *= get(document, f"parallelism.{size}") or 1
    return ranks


def _missing(document: dict[str, Any], findings: Findings, with_comment: bool) -> tuple[str, ...]:
    """Parts that a scenario needs, or that are better said than assumed, and that the text does not hold."""
    model = document.get("model") or {}
    hardware = document.get("hardware") or {}
    found = []
    if not any(model.get(key) for key in ("id", "config", "architecture")):
        found.append("model")
    if not hardware.get("id") and not hardware.get("custom"):
        found.append("hardware")
    if "workload" not in document and not with_comment:
        found.append("workload")
    found += [path for path in findings.missing if get(document, path) is None]
    return tuple(found)
