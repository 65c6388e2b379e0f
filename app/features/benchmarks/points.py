"""One run of a benchmark tool, in SI units, and nothing of who ran it where.

A file of results as text, and the JSON values in it, one after the other, however they were put together.

Fields of a result: numbers that are checked by name, and names without folders.
"""

import codecs
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from app.checkpoint.text import StrictJsonError, clean_text, loads

MOST_POINTS = 500
TOO_MANY = f"It holds more than the {MOST_POINTS} runs that are read at a time."


class BenchError(ValueError):
    """What is wrong with a file of results, in words fit for the person who brought it. Never repeats a value."""


class Tool(StrEnum):
    """Whose results are read."""

    VLLM = "vllm bench serve"
    SGLANG = "SGLang bench_serving"
    GUIDELLM = "GuideLLM"
    AIPERF = "AIPerf"
    GENAI_PERF = "GenAI-Perf"
    LLAMA_BENCH = "llama-bench"


@dataclass(frozen=True, slots=True)
class Spread:
    """A time over the requests of a run, in seconds; None where the tool did not say."""

    mean_s: float | None = None
    median_s: float | None = None
    p99_s: float | None = None

    @property
    def typical_s(self) -> float | None:
        """The median, else the mean: a few slow requests at the start of a run move the one less than the other."""
        return self.mean_s if self.median_s is None else self.median_s

    @property
    def average_s(self) -> float | None:
        """The mean, else the median: what Little's law is about."""
        return self.median_s if self.mean_s is None else self.mean_s


NOT_TOLD = Spread()


@dataclass(frozen=True, slots=True)
class BarePass:
    """What llama-bench times: a prompt of `prompt_tokens`, or `generated_tokens` one after the other, or both, behind
    `depth_tokens` that the cache holds already. One sequence, no server; `tokens_per_s` is of both together.
    `gpu_layers` is how many layers were asked to lie on the GPU; None where all, or it is not told.
    """

    prompt_tokens: int
    generated_tokens: int
    depth_tokens: int
    tokens_per_s: float
    batch_tokens: int | None = None
    gpu_layers: int | None = None


@dataclass(frozen=True, slots=True)
class BenchPoint:
    """One run. Times are of requests that were completed; a rate is of the whole deployment.

    Attributes:
        tool: whose result it is.
        model: as the tool names it, without folders.
        backend: kind of endpoint or of build, as the tool names it.
        concurrency: requests that the tool kept running, where it was told how many.
        mean_concurrency: requests that ran on average, where the tool counted them.
        request_rate_per_s: at which requests were sent, where they were sent at a rate.
        requests: those that were completed.
        failed: those that were not, where the tool counted them.
        requests_per_s: completed in a second.
        duration_s: of the run.
        prompt_tokens: of a prompt, on average.
        output_tokens: of an answer, on average.
        ttft: time to the first token.
        tpot: time per output token after the first, of a request as a whole.
        itl: time between two chunks of a stream.
        latency: from sending to the last token.
        output_tokens_per_s: generated.
        total_tokens_per_s: read and generated.
        step_tokens: that a step gave on average, where the server drafted ahead (speculative decoding).
        bare: what llama-bench timed; it serves nobody, and the rest is empty.
        unusable: why the run is compared with nothing; None where it is.
    """

    tool: Tool
    model: str | None = None
    backend: str | None = None
    concurrency: int | None = None
    mean_concurrency: float | None = None
    request_rate_per_s: float | None = None
    requests: int | None = None
    failed: int | None = None
    requests_per_s: float | None = None
    duration_s: float | None = None
    prompt_tokens: float | None = None
    output_tokens: float | None = None
    ttft: Spread = NOT_TOLD
    tpot: Spread = NOT_TOLD
    itl: Spread = NOT_TOLD
    latency: Spread = NOT_TOLD
    output_tokens_per_s: float | None = None
    total_tokens_per_s: float | None = None
    step_tokens: float | None = None
    bare: BarePass | None = None
    unusable: str | None = None


MOST_BYTES = 2 * 1024 * 1024
_PACKED = (b"\x1f\x8b", b"PK\x03\x04", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
# A text that is not closed is a token too, to the end of the file: sought again from each of its marks, it would take
# the square of its length.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.|\\\Z)*+"?|[{}\[\]]', re.DOTALL)


def as_text(given: bytes) -> str:
    """`given` as text: UTF-8, or UTF-16 where it says so, as a redirection in PowerShell writes.

    Raises:
        BenchError: empty, too large, packed, or no text.
    """
    if len(given) > MOST_BYTES:
        raise BenchError("The file is larger than 2 MiB. Save the results without the single requests.")
    if given.startswith(_PACKED):
        raise BenchError("This is a packed file: unpack it, and bring the results in it.")
    wide = given.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = given.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BenchError("This is no text in UTF-8.") from error
    if "\0" in text:
        raise BenchError("This is no text: it holds zero bytes.")
    if not text.strip():
        raise BenchError("There is nothing in it.")
    return text


def json_values(text: str) -> Iterator[object]:
    """The values of a text of JSON, JSON lines, or several files one after the other.

    Raises:
        BenchError: it ends in the middle of a value, or one is not JSON as the standard has it.
    """
    for number, piece in enumerate(_pieces(text), start=1):
        if number > MOST_POINTS:
            raise BenchError(TOO_MANY)
        try:
            yield loads(piece, constants_are_text=True)
        except StrictJsonError as error:
            raise BenchError(f"value {number} of the file: {error}") from error


def _pieces(text: str) -> Iterator[str]:
    """The text cut where an outermost object or list ends."""
    depth = start = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "{[":
            depth += 1
        elif token[0] in "}]":
            depth -= 1
            if depth == 0:
                yield text[start : token.end()].strip()
                start = token.end()
    rest = text[start:].strip()
    if depth > 0:
        raise BenchError("The file ends in the middle of its JSON: it was cut off, or the run was.")
    if rest:
        yield rest


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
