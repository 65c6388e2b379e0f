"""Predictions where the fit has not looked: folds of families, and whole families of accelerators."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from calibration.fit import fit, folds
from calibration.parameters import Parameters, Vector
from calibration.rows import Row
from calibration.stack import Stack

FOLDS = 6


def cross_validated(stack: Stack, rows: Sequence[Row], parameters: Parameters) -> tuple[Vector, NDArray[np.float64]]:
    """Predictions of each row by a fit that has not seen its family, and the moves of each fold's fit."""
    fold = folds(rows, FOLDS)
    moves = _fits_without(stack, rows, parameters, [fold == number for number in range(FOLDS)])
    predicted = np.zeros(len(rows))
    for number, found in enumerate(moves):
        predicted = np.where(fold == number, stack.predict(found), predicted)
    return predicted, np.array(moves)


def unseen(stack: Stack, rows: Sequence[Row], parameters: Parameters) -> Vector:
    """Predictions of each row by a fit without its accelerator's family, under a name that the tables do not know."""
    names = np.array([f"{row.keys.stack} {row.keys.family}" for row in rows])
    families = sorted(set(names))
    moves = _fits_without(stack, rows, parameters, [names == family for family in families])
    stranger = Stack([replace(row, keys=replace(row.keys, family="")) for row in rows], parameters)
    predicted = np.zeros(len(rows))
    for family, found in zip(families, moves, strict=True):
        predicted = np.where(names == family, stranger.predict(found), predicted)
    return predicted


def _fits_without(
    stack: Stack, rows: Sequence[Row], parameters: Parameters, left_out: Sequence[NDArray[np.bool_]]
) -> list[Vector]:
    """Fits side by side. The workers are forks: they inherit the rows, which hold what cannot be sent."""
    _INHERITED[:] = [lambda mask: fit(stack, rows, parameters.deviations, ~mask)]
    with get_context("fork").Pool(os.cpu_count()) as pool:
        return pool.map(_work, left_out, chunksize=1)


def _work(left_out: NDArray[np.bool_]) -> Vector:
    return _INHERITED[0](left_out)


_INHERITED: list[Callable[[NDArray[np.bool_]], Vector]] = []
