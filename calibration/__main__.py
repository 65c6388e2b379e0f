"""`make calibrate`: fit, judge, write. About ten minutes on two cores."""

import hashlib
import time

import numpy as np

from app.catalog.catalog import load_catalog
from app.catalog.measurements import DATA_FILE as MEASUREMENTS
from calibration.fit import fit
from calibration.judge import cross_validated, unseen
from calibration.parameters import PRIORS, read_parameters
from calibration.residuals import errors, intervals
from calibration.rows import read_rows
from calibration.stack import Stack
from calibration.write import write_calibration, write_cross_validated

DIGITS = 8


def main() -> None:
    """Write the calibration and the cross-validated predictions; print the error tables."""
    started = time.monotonic()
    rows, parameters = read_rows(load_catalog()), read_parameters()
    stack = Stack(rows, parameters)
    moves = fit(stack, rows, parameters.deviations, np.ones(len(rows), dtype=bool))
    predicted, by_fold = cross_validated(stack, rows, parameters)
    strange = unseen(stack, rows, parameters)
    version = hashlib.sha256(PRIORS.read_bytes() + MEASUREMENTS.read_bytes() + moves.round(4).tobytes()).hexdigest()
    write_calibration(
        version[:DIGITS], parameters, moves, by_fold, rows, intervals(rows, predicted), intervals(rows, strange)
    )
    write_cross_validated(rows, predicted, strange)
    for title, values in (
        ("in-sample", stack.predict(moves)),
        ("families held out", predicted),
        ("accelerator families held out", strange),
        ("priors alone", stack.predict(np.zeros(len(moves)))),
    ):
        print(f"\n{title}: rows, median, mean, p90 of the error; within 20 %; within a factor of 2")
        for regime, (n, median, mean, p90, near, twice) in errors(rows, values).items():
            print(f"  {regime:22s} {n:5d} {median:6.1%} {mean:7.1%} {p90:7.1%} {near:5.0%} {twice:5.0%}")
    print(f"\n{len(parameters.entries)} entries, {len(rows)} rows, {time.monotonic() - started:.0f} s")


if __name__ == "__main__":
    main()
