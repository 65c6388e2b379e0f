"""Published measurements of served models: what expected times are fitted to and judged by."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.catalog.rows import CatalogError, Fault

DATA_FILE = Path(__file__).resolve().parent / "data" / "measurements.csv"


class Metric(StrEnum):
    """What was measured; seconds, or tokens a second. `DECODE` is a sequence's pace in a batch that only decodes."""

    TTFT = "ttft_s"
    TPOT = "tpot_s"
    OUTPUT = "output_tokens_per_s"
    PER_USER = "output_tokens_per_s_per_user"
    TOTAL = "total_tokens_per_s"
    PREFILL = "prefill_tokens_per_s"
    DECODE = "decode_tokens_per_s_a_sequence"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One published figure. Names are catalog ids, or the source's own where `left_out` says why it is not compared.

    `family` is model and accelerator: whole families are held out together when the fit is judged. Cells that the
    source leaves open are empty; `concurrency` is empty where as many requests ran as fit.
    """

    id: str
    source: str
    engine: str
    version: str
    model: str
    weights: str
    kv_cache: str
    accelerator: str
    gpus: str
    tensor: str
    pipeline: str
    expert: str
    data: str
    prompt_tokens: str
    cached_tokens: str
    output_tokens: str
    concurrency: str
    metric: Metric
    value: float
    speculation: str
    left_out: str
    stated_model: str
    note: str

    @property
    def family(self) -> str:
        """Model and accelerator: the id without its number."""
        return self.id.rpartition("/")[0]

    @property
    def is_compared(self) -> bool:
        """Whether a scenario can say it."""
        return not self.left_out

    @property
    def is_scored(self) -> bool:
        """Whether it counts in error tables: compared, and said to be without speculative decoding."""
        return self.is_compared and not self.speculation


def load_measurements(file: Path = DATA_FILE) -> Sequence[Measurement]:
    """Every row, in the order of the file.

    Raises:
        CatalogError: a row is not to be trusted; names the row and the field.
    """
    found: list[Measurement] = []
    seen: set[str] = set()
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), start=2):
            where = row.get("id") or f"line {number}"
            try:
                value = float(row.pop("value"))
                found.append(Measurement(value=value, metric=Metric(row.pop("metric")), **row))
            except (KeyError, TypeError, ValueError) as error:
                raise CatalogError(Fault(file, where, "-", str(error))) from error
            if not 0 < value < 1e12:
                raise CatalogError(Fault(file, where, "value", f"{value} is no measurement"))
            if not found[-1].source:
                raise CatalogError(Fault(file, where, "source", "no number without a source"))
            if where in seen:
                raise CatalogError(Fault(file, where, "id", "an earlier row has this id"))
            seen.add(where)
    if not found:
        raise CatalogError(Fault(file, "-", "-", "no rows found"))
    return tuple(found)
