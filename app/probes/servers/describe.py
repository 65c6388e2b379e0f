"""How a server describes itself: its model, its settings, its version. Never a path, a host or an address."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from app.probes.plausible import text
from app.probes.reading import Absence, Reading
from app.probes.servers.adapter import Adapter
from app.probes.servers.exposition import Exposition
from app.probes.servers.gauges import by_instance

_UNSET = frozenset({"", "none", "null", "undefined", "unknown"})
_CACHED_REPOSITORY = re.compile(r"models--([^/\\]+?)--([^/\\]+)")
_PATH_PARTS_FOR_TWO = 4
"""From so many parts on, the last but one is a folder of models rather than a person's or the machine's."""

_HOMES = frozenset({"home", "users"})


def model_name(exposition: Exposition, adapter: Adapter) -> Reading[str]:
    """The name under which the model is served; absent where there are several, for the readings are of all of them."""
    for label in adapter.models:
        named = {each.labels[label] for series in exposition.series.values() for each in series if label in each.labels}
        names = {name for name in named if name.lower() not in _UNSET}
        if len(names) == 1:
            shown = text(without_path(names.pop()))
            return Reading(shown.value, read_from=label) if shown.value is not None else shown
        if names:
            break
    return Reading.missing(Absence.NOT_REPORTED)


def without_path(name: str) -> str:
    """The name of a model, of a path to one only the end: `organisation/model`, or only the model where in doubt."""
    if cached := _CACHED_REPOSITORY.search(name):
        return "/".join(cached.groups())
    rooted = bool(re.match(r"[/\\~.]|[A-Za-z]:", name)) or "\\" in name
    parts = [part for part in re.split(r"[/\\]", name) if part not in ("", ".", "..", "~") and part[1:] != ":"]
    if not rooted and len(parts) <= 2:
        return name
    folder_is_of_models = len(parts) >= _PATH_PARTS_FOR_TWO and parts[-3].lower() not in _HOMES
    return "/".join(parts[-2:] if folder_is_of_models else parts[-1:])


def settings(exposition: Exposition, adapter: Adapter) -> Mapping[str, str]:
    """What the server shows of its configuration, as far as all its engines agree."""
    found: dict[str, str] = {}
    for name, labels in adapter.labels.items():
        series = exposition.series.get(name, ())
        for label in labels:
            values = {each.labels.get(label, "") for each in series}
            if len(values) == 1 and (shown := _setting(values.pop())) is not None:
                found.setdefault(label, shown)
    for key, candidates in adapter.gauges.items():
        for candidate in candidates:
            numbers = set((by_instance(exposition, adapter, candidate) or {}).values())
            if len(numbers) == 1:
                found.setdefault(key, f"{numbers.pop():.12g}")
                break
    return MappingProxyType(found)


def version(exposition: Exposition, adapter: Adapter) -> Reading[str]:
    """The version of the engine, where a metric tells it."""
    for selector in adapter.versions:
        values = {each.labels.get(selector.label or "", "") for each in exposition.series.get(selector.name, ())}
        if len(values) == 1 and (shown := _setting(values.pop())) is not None:
            return Reading(shown, read_from=selector.name)
    return Reading.missing(Absence.NOT_REPORTED)


def _setting(raw: str) -> str | None:
    """One line of it, unless it is not set or could be a path or an address."""
    if raw.strip().lower() in _UNSET or any(sign in raw for sign in ("/", "\\", "@")):
        return None
    return text(raw).value
