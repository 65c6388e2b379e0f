"""The calibration as the product reads it: every value with what stands behind it."""

import csv
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.catalog.calibration import CROSS_VALIDATED_DATA_FILE as CROSS_VALIDATED_FILE
from app.catalog.calibration import DATA_FILE
from calibration.parameters import Entry, Parameters, Vector
from calibration.rows import Row

Intervals = Mapping[str, tuple[float, float, int]]
ROUNDING = 5


def write_calibration(
    version: str,
    parameters: Parameters,
    moves: Vector,
    by_fold: NDArray[np.float64],
    rows: Sequence[Row],
    seen: Intervals,
    unseen: Intervals,
    file: Path = DATA_FILE,
) -> None:
    """The tables with n (rows that touch a value), sources, and how far the value moves from fold to fold."""
    stated = [row for row in rows if row.measurement.concurrency]
    lines = [
        "# Written by `make calibrate` from calibration/priors.toml and measurements.csv; not by hand.",
        "# value = prior, moved by n measurements of so many sources; spread: how far folds differ, in shares.",
        "",
        "[calibration]",
        f'version = "{version}"',
        f"measurements = {len(rows)}",
        f"families = {_quoted({f'{row.keys.stack} {row.keys.family}' for row in rows})}",
        f"engines = {_quoted({row.keys.engine for row in rows})}",
        f"longest_request_tokens = {max(row.deployment.workload.total_tokens for row in rows)}",
        f"largest_batch = {max(-(-row.batch // row.deployment.split.data) for row in stated)}",
        "",
    ]
    touching = [_touching(parameters, entry, rows) for entry in parameters.entries]
    places = range(len(parameters.entries))

    def table(place: int) -> tuple[str, str, str]:
        entry = parameters.entries[place]
        return entry.stack, entry.law, entry.axis

    for (stack, law, axis), group in groupby(places, table):
        lines.append(f'["{stack}".{law}.{axis}]')
        for place in group:
            entry, found = parameters.entries[place], touching[place]
            value = entry.value * float(np.exp(moves[place]))
            spread = float(np.std(by_fold[:, place]))
            sources = len({row.measurement.source for row in found})
            lines.append(
                f'"{entry.key}" = {{ value = {value:.{ROUNDING}g}, prior = {entry.value:.{ROUNDING}g}, n = {len(found)}'
                f", sources = {sources}, spread = {spread:.3f} }}"
            )
        lines.append("")
    for name, found_intervals in (("interval", seen), ("interval_unseen", unseen)):
        for regime, (low, high, n) in found_intervals.items():
            lines += [f'[{name}."{regime}"]', f"low = {low:.3f}", f"high = {high:.3f}", f"n = {n}", ""]
    file.write_text("\n".join(lines), encoding="utf-8")


def write_cross_validated(
    rows: Sequence[Row], predicted: Vector, unseen: Vector, file: Path = CROSS_VALIDATED_FILE
) -> None:
    """What each measurement was predicted as by a fit without its family, and without its accelerator's family."""
    with file.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerow(("id", "predicted", "unseen"))
        for row, one, other in zip(rows, predicted, unseen, strict=True):
            writer.writerow((row.measurement.id, f"{one:.5g}", f"{other:.5g}"))


def _touching(parameters: Parameters, entry: Entry, rows: Sequence[Row]) -> list[Row]:
    """Rows whose prediction reads the entry."""
    found = []
    for row in rows:
        if row.keys.stack != entry.stack:
            continue
        formats = {piece.format for piece in (*row.decode, *row.prompt)}
        if any(_read(parameters, entry, row, form) for form in formats):
            found.append(row)
    return found


def _read(parameters: Parameters, entry: Entry, row: Row, form: object) -> bool:
    there = parameters.keys_of(entry.stack, entry.law, entry.axis)
    tried = row.keys.of(entry.axis, form)  # type: ignore[arg-type]
    return next((key for key in tried if key in there), None) == entry.key


def _quoted(names: set[str]) -> str:
    return "[" + ", ".join(f'"{name}"' for name in sorted(names)) + "]"
