"""The digests that were recorded, and what differs from them."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

DIGESTS = Path(__file__).with_name("digests.txt")
PRINTED = 40
Digests = Mapping[str, str]


def record(found: Mapping[str, Digests]) -> None:
    """Write a line for each case: its id, and its parts with two digests each."""
    lines = (" ".join([id_, *(f"{name}={both}" for name, both in parts.items())]) for id_, parts in found.items())
    DIGESTS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def recorded_digests() -> dict[str, Digests]:
    """What `record` wrote."""
    rows = (line.split(" ") for line in DIGESTS.read_text(encoding="utf-8").splitlines())
    return {id_: dict(part.split("=", 1) for part in parts) for id_, *parts in rows}


def differences(recorded: Mapping[str, Digests], found: Mapping[str, Digests]) -> dict[str, dict[str, str]]:
    """By case and part: what became of it."""
    told: dict[str, dict[str, str]] = {}
    for id_ in [*recorded, *(new for new in found if new not in recorded)]:
        if id_ not in found or id_ not in recorded:
            told[id_] = {"all": "is new" if id_ in found else "is asked no more"}
            continue
        before, now = recorded[id_], found[id_]
        changed = {part for part in (*before, *now) if before.get(part) != now.get(part)}
        if changed:
            told[id_] = {part: _change(before.get(part), now.get(part)) for part in sorted(changed)}
    return told


def _change(before: str | None, now: str | None) -> str:
    if before is None or now is None:
        return "is new" if before is None else "is gone"
    return "words changed" if before.rpartition(".")[2] == now.rpartition(".")[2] else "NUMBERS changed"


def report(told: Mapping[str, Mapping[str, str]]) -> list[str]:
    """How often each part of each kind differs, and the first cases by name."""
    counts = Counter(
        (id_.partition("/")[0], part, change) for id_, parts in told.items() for part, change in parts.items()
    )
    lines = [f"{count:5} x {kind}: {part} {change}" for (kind, part, change), count in sorted(counts.items())]
    named = [f"{id_}: {', '.join(f'{part} {change}' for part, change in parts.items())}" for id_, parts in told.items()]
    more = [f"and {len(named) - PRINTED} more"] if len(named) > PRINTED else []
    return [*lines, *named[:PRINTED], *more]
