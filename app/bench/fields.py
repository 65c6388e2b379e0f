"""Fields of a result: numbers that are checked by name, and names without folders."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.bench.points import BenchError, Spread
from app.text import clean_text

MOST = 1e12
MOST_NAME = 120
MILLI = 1e-3
_NUMBER = re.compile(r"[+-]?([0-9]{1,15}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")
_NOT_TOLD = {"", "n/a", "na", "none", "null", "-"}
_UNBOUNDED = {"inf", "infinity", "trace"}
_KIND = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _.,+-]{0,39}")
_HUB_FOLDER = re.compile(r"models--([A-Za-z0-9._-]+?)--([A-Za-z0-9._-]+)")
_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
_WEIGHTS_FILE = re.compile(r"\.(gguf|safetensors|bin)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one result. `where` says in a message which it is: "run 2"."""

    values: Mapping[str, object] = field(repr=False)
    where: str

    def number(self, key: str, scale: float = 1.0) -> float | None:
        """A positive number, times `scale`; None where it is missing, empty or 0, which tools write for "not timed".

        Raises:
            BenchError: no number, not finite, negative, or beyond 10^12.
        """
        given = self.values.get(key)
        if given is None or (isinstance(given, str) and given.strip().lower() in _NOT_TOLD):
            return None
        value = self._number(key, given)
        if value < 0:
            raise BenchError(f"{self.where}: {key} is negative.")
        if value > MOST:
            raise BenchError(f"{self.where}: {key} is beyond 10^12, which nobody measured.")
        return value * scale if value else None

    def whole(self, key: str) -> int | None:
        """A positive whole number, or None as above.

        Raises:
            BenchError: as above, or it is not whole.
        """
        value = self.number(key)
        if value is not None and value != int(value):
            raise BenchError(f"{self.where}: {key} is not a whole number.")
        return None if value is None else int(value)

    def rate(self, key: str) -> float | None:
        """A rate at which requests are sent; None where it has no bound, for then it is none.

        Raises:
            BenchError: as above.
        """
        given = self.values.get(key)
        if isinstance(given, str) and given.strip().lower() in _UNBOUNDED:
            return None
        return self.number(key)

    def part(self, key: str) -> "Fields":
        """The fields below a key; none where there is no object."""
        below = self.values.get(key)
        return Fields(below if isinstance(below, dict) else {}, f"{self.where}, {key}")

    def text(self, key: str) -> str | None:
        """A text, or None."""
        given = self.values.get(key)
        return given if isinstance(given, str) and given else None

    def spread(self, mean: str, median: str, p99: str, scale: float = MILLI) -> Spread:
        """A time from the names of its three figures, milliseconds unless `scale` says otherwise."""
        return Spread(self.number(mean, scale), self.number(median, scale), self.number(p99, scale))

    def _number(self, key: str, given: object) -> float:
        if isinstance(given, str):
            return self._written(key, given.strip())
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise BenchError(f"{self.where}: {key} is no number.")
        try:
            value = float(given)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise BenchError(f"{self.where}: {key} is not finite.")
        return value

    def _written(self, key: str, text: str) -> float:
        if _NUMBER.fullmatch(text):
            return float(text)
        if _THOUSANDS.fullmatch(text):
            return float(text.replace(",", ""))
        if text.lstrip("+-").lower() in ("nan", "inf", "infinity"):
            raise BenchError(f"{self.where}: {key} is {text.lstrip('+-')}: the run gave no number there.")
        raise BenchError(f"{self.where}: {key} is no number.")


def per(total: float | None, count: float | None) -> float | None:
    """A total shared out, or None where either is not told."""
    return total / count if total is not None and count else None


def model_name(given: object) -> str | None:
    """What a model is called, without the folders of a machine: `owner/name` as a hub writes it, else the last part."""
    if not isinstance(given, str):
        return None
    path = given.strip().replace("\\", "/").rstrip("/")
    cached = _HUB_FOLDER.search(path)
    name = f"{cached[1]}/{cached[2]}" if cached else path
    if not _HUB_NAME.fullmatch(name) or _WEIGHTS_FILE.search(name):
        name = name.rpartition("/")[2]
    try:
        return clean_text(name)[:MOST_NAME]
    except ValueError:
        return None


def kind_name(given: object) -> str | None:
    """A short name of a kind of endpoint or build; None for what could be an address."""
    return given if isinstance(given, str) and _KIND.fullmatch(given) else None


def first(found: Iterable[object]) -> object:
    """The first that is something."""
    return next((one for one in found if one), None)
