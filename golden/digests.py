"""The canonical form of an answer, and its digests: one for each part, and one of the numbers in it alone.

A part is a key of a JSON document, or one side of a page: its text, its fields, its links, its charts. Two digests of a
part tell a renamed label (only the first moves) from a changed number (both move).
"""

import json
import re
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

MOVING = frozenset({"catalog_version", "calibration_version"})
"""Keys that name a state of the data files, not an answer."""
STATUS = "http"  # a key that no document has
DIGEST_LETTERS = 6  # of six bits each: by chance one difference in 7e10 would be missed
_NUMBER = re.compile(r"[-−+]?[0-9](?:[0-9.,]*[0-9])?(?:[eE][-+]?[0-9]+)?")
_INLINE = frozenset({"a", "abbr", "b", "code", "em", "i", "kbd", "mark", "small", "strong", "sub", "sup", "var"})
_SPOKEN = ("aria-label", "title", "alt", "placeholder", "data-words")
_LEADS = ("href", "action", "formaction", "hx-get", "hx-post")
_FIELDS = ("name", "value", "checked", "selected", "disabled", "min", "max", "step")


class Text(str):
    """A text whose line breaks say nothing."""

    __slots__ = ()


def numbers_of(text: str) -> list[str]:
    """Every word of digits in order."""
    return _NUMBER.findall(text)


def canonical(value: Any, *, words: bool = True) -> Any:
    """The same with every float in hexadecimal; without `words` a text is the numbers in it."""
    if isinstance(value, Mapping):
        return {key: canonical(inner, words=words) for key, inner in value.items() if key not in MOVING}
    if isinstance(value, list):
        return [canonical(inner, words=words) for inner in value]
    if isinstance(value, float):
        return f"float {value.hex()}"
    if isinstance(value, Text):
        value = " ".join(value.split())
    if isinstance(value, str) and not words:
        return numbers_of(value)
    return value


def digest(text: str) -> str:
    """The first letters of its SHA-256."""
    return urlsafe_b64encode(sha256(text.encode("utf-8", "surrogatepass")).digest()).decode()[:DIGEST_LETTERS]


def pair(value: Any) -> str:
    """Digest of a JSON value, and of its numbers: `AAAAAA.BBBBBB`."""
    both = (json.dumps(canonical(value, words=words), sort_keys=True) for words in (True, False))
    return ".".join(map(digest, both))


def parts_of_json(document: Any) -> dict[str, Any]:
    """A document by its keys; anything but an object is one part."""
    if not isinstance(document, dict):
        return {"all": document}
    return {key: value for key, value in document.items() if key not in MOVING}


def parts_of_page(html: str) -> dict[str, Any]:
    """Text, fields, links and charts of a page, without what a build puts in: assets and their fingerprints."""
    reader = _Page()
    reader.feed(html)
    reader.close()
    parts: dict[str, Any] = {"text": Text(reader.told()), "fields": reader.fields, "links": reader.links}
    return parts | ({"charts": reader.charts} if reader.charts else {})


class _Page(HTMLParser):
    """Collects the parts. Markup alone says nothing: a tag that is not of a line's flow is a line break."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.fields: list[str] = []
        self.links: list[str] = []
        self.charts: list[Any] = []
        self._script: str | None = None
        self._raw: list[str] = []

    def told(self) -> str:
        lines = (" ".join(line.split()) for line in "".join(self.pieces).split("\n"))
        return "\n".join(line for line in lines if line)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style"):
            self._script, self._raw = given.get("type") or tag, []
            return
        if tag not in _INLINE:
            self.pieces.append("\n")
        self.pieces += [f"\n{given[name]}\n" for name in _SPOKEN if given.get(name)]
        self.links += [f"{name}={value}" for name in _LEADS if (value := given.get(name)) and "/assets/" not in value]
        if tag in ("input", "select", "option", "textarea", "button"):
            kept = (f"{name}={given[name] or ''}" for name in _FIELDS if name in given)
            self.fields.append(f"{tag} {' '.join(kept)}")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            if self._script == "application/json":
                self.charts.append(json.loads("".join(self._raw)))
            self._script = None
        elif tag not in _INLINE:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self._raw.append(data)
        else:
            self.pieces.append(data.replace("\n", " "))


def digests(parts: Mapping[str, Any]) -> dict[str, str]:
    """Both digests of every part, by its name; the status as it is."""
    return {name: str(value) if name == STATUS else pair(value) for name, value in sorted(parts.items())}


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """A canonical value as lines, one for each leaf, so that two states can be laid side by side."""
    if isinstance(value, Mapping) and value:
        for key in sorted(value):
            if key not in MOVING:
                yield from leaves(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for place, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{place}]")
    elif isinstance(value, str) and "\n" in value:
        for line in value.split("\n"):
            yield f"{path}: {line}"
    elif isinstance(value, float):
        yield f"{path}: {value.hex()} = {value!r}"
    else:
        yield f"{path}: {json.dumps(value, ensure_ascii=False)}"
