"""Distances of vectors and overlaps of sets, row by row. Sums are of doubles, from left to right.

`y` has a row for every row of `x` (step = 1), or one for all of them (step = 0).
"""

from __future__ import annotations

import math

import numpy as np

from likewise.kernels import inner, kernel
from likewise.kernels.hashtable import NOBODY, enter_set, largest_set, owned_table, spared
from likewise.kernels.sets import differing_bits

SMALL = 1e-280
LARGE = 1e280
STAMPS = np.int64(2**31 - 1)
"""Owners of slots have 31 bits: after this many sets the table is cleared and the stamps begin again."""


@inner
def angle_between(a, b):
    """Return the angle of two vectors in degrees; NaN if a square of a length is out of reach of doubles, or nearly so.

    By the diagonals of the rhombus that the unit vectors span: exact near 0° and 180° too, as an arc cosine is not.
    """
    square_a, square_b = 0.0, 0.0
    for j in range(a.size):
        p, q = np.float64(a[j]), np.float64(b[j])
        square_a += p * p
        square_b += q * q
    if not (SMALL < square_a < LARGE and SMALL < square_b < LARGE):
        return np.nan
    scale_a = 1.0 / math.sqrt(square_a)
    scale_b = 1.0 / math.sqrt(square_b)
    apart, along = 0.0, 0.0
    for j in range(a.size):
        p, q = np.float64(a[j]) * scale_a, np.float64(b[j]) * scale_b
        apart += (p - q) * (p - q)
        along += (p + q) * (p + q)
    return math.degrees(2.0 * math.atan2(math.sqrt(apart), math.sqrt(along)))


@inner
def rescale(row, out):
    """Divide a vector by its largest component; return whether it has a direction: is finite, and not zero."""
    largest = 0.0
    for j in range(row.size):
        size = abs(np.float64(row[j]))
        if not size < np.inf:
            return False
        largest = max(largest, size)
    if largest == 0.0:
        return False
    for j in range(row.size):
        out[j] = np.float64(row[j]) / largest
    return True


@kernel
def angles(x, y, step, out):
    """out[i] = the angle of two vectors in degrees; NaN if one of them has no direction."""
    u, v = np.empty(x.shape[1]), np.empty(x.shape[1])
    for i in range(out.size):
        out[i] = angle_between(x[i], y[i * step])
        if np.isnan(out[i]) and rescale(x[i], u) and rescale(y[i * step], v):
            out[i] = angle_between(u, v)


@inner
def greatest_gap(a, b):
    """Return the greatest difference of two components; NaN if there is one among the differences."""
    greatest = 0.0
    for j in range(a.size):
        gap = abs(np.float64(a[j]) - np.float64(b[j]))
        if gap > greatest or np.isnan(gap):
            greatest = gap
    return greatest


@inner
def sum_of_gaps(a, b):
    """Return the sum of the differences."""
    total = 0.0
    for j in range(a.size):
        total += abs(np.float64(a[j]) - np.float64(b[j]))
    return total


@inner
def root_of_squares(a, b):
    """Return the root of the sum of the squares of the differences; NaN if the sum is out of reach, or 0."""
    total = 0.0
    for j in range(a.size):
        gap = np.float64(a[j]) - np.float64(b[j])
        total += gap * gap
    return math.sqrt(total) if SMALL < total < LARGE else np.nan


@inner
def root_of_powers(a, b, r):
    """Return the r-th root of the sum of r-th powers; of parts of the greatest difference, so that none overflows."""
    greatest = greatest_gap(a, b)
    if not 0.0 < greatest < np.inf:
        return greatest
    total = 0.0
    for j in range(a.size):
        total += (abs(np.float64(a[j]) - np.float64(b[j])) / greatest) ** r
    return greatest * total ** (1.0 / r)


@kernel
def norms(x, y, step, r, out):
    """out[i] = the distance of two points by the Lr norm; neither finite nor sure if a component is not finite."""
    for i in range(out.size):
        a = x[i]
        b = y[i * step]
        if r == 1.0:
            out[i] = sum_of_gaps(a, b)
        elif r == np.inf:
            out[i] = greatest_gap(a, b)
        else:
            out[i] = root_of_squares(a, b) if r == 2.0 else np.nan
            if np.isnan(out[i]):
                out[i] = root_of_powers(a, b, r)


@kernel
def bit_distances(x, y, step, out):
    """out[i] = in how many bits two rows of words differ."""
    for i in range(out.size):
        out[i] = differing_bits(x[i], y[i * step])


@kernel
def overlaps(values_a, offsets_a, values_b, offsets_b, out):
    """out[i] = how many elements the i-th set of one ragged array shares with the i-th of the other.

    The first set is put in a hash table, in which an entry counts only if its owner is i: it needs no clearing.
    """
    table, owner = owned_table(largest_set(offsets_a))
    for i in range(out.size):
        stamp = i % STAMPS
        if stamp == 0:
            owner[:] = NOBODY
        down, mask = enter_set(values_a, offsets_a[i], offsets_a[i + 1], stamp, table, owner)
        size_b = offsets_b[i + 1] - offsets_b[i]
        out[i] = spared(values_b, offsets_b[i], offsets_b[i + 1], stamp, table, owner, down, mask, size_b)
