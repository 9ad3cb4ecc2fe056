"""Codes of the vectors of a cell: the frame in which they are, one byte per component, and one bit (sign_codes.py)."""

from __future__ import annotations

import math

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.cell_scan import ANGLE, L1, STEPS, largest_of
from likewise.kernels.sign_codes import set_signs, turn


@inner
def put_in_frame(measure, vector, frame, out):
    """Write a vector as it lies in the frame."""
    scale = frame[0]
    if measure == ANGLE:
        largest = largest_of(vector)
        square = 0.0
        for j in range(vector.size):
            part = np.float64(vector[j]) / largest
            square += part * part
        scale = 1.0 / math.sqrt(square)
        for j in range(vector.size):
            out[j] = np.float64(vector[j]) / largest * scale - frame[j + 1]
    else:
        for j in range(vector.size):
            out[j] = np.float64(vector[j]) * scale - frame[j + 1]


@kernel
def frame_rows(measure, vectors, frame, out):
    """Write vectors as they lie in the frame, in the precision of `out`."""
    here = np.empty(vectors.shape[1])
    for i in range(vectors.shape[0]):
        put_in_frame(measure, vectors[i], frame, here)
        for j in range(here.size):
            out[i, j] = here[j]


@kernel
def encode_cell(measure, vectors, frame, centre, codes, squares):
    """Write the codes of the vectors of a cell; return their step, and the largest error of one."""
    count, width = vectors.shape
    here = np.empty((count, width))
    largest = 0.0
    for i in range(count):
        put_in_frame(measure, vectors[i], frame, here[i])
        for j in range(width):
            here[i, j] -= np.float64(centre[j])
            largest = max(largest, abs(here[i, j]))
    step = largest / STEPS
    if not step > 0.0:
        step = 1.0
    worst = 0.0
    for i in range(count):
        square, error = 0.0, 0.0
        for j in range(width):
            code = min(max(np.rint(here[i, j] / step), -STEPS), STEPS)
            codes[i, j] = np.int8(code)
            square += code * code
            off = abs(here[i, j] - code * step)
            error += off if measure == L1 else off * off
        squares[i] = square
        worst = max(worst, error if measure == L1 else math.sqrt(error))
    return step, worst * (1 + 1e-9)


@kernel
def encode_signs(measure, vectors, frame, centre, turns, signs, squares, factors):
    """Write the signs of the vectors of a cell, turned, and their squares and factors."""
    count, width = vectors.shape
    here, gap = np.empty(width), np.empty(width, np.float32)
    for i in range(count):
        put_in_frame(measure, vectors[i], frame, here)
        for j in range(width):
            gap[j] = here[j] - np.float64(centre[j])
        turn(turns, gap)
        set_signs(gap, i, count, signs, squares, factors)
