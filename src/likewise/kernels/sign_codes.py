"""Codes of one bit per component, by which most vectors are seen to be far from a query without reading more of them.

The difference of a vector from the centre of its cell is turned at random, and of its components the signs are kept,
with its square and a factor that makes the product with the signs, on average, that with the vector itself (RaBitQ:
Gao, Long, SIGMOD 2024). A query is rounded to four bits per component, whose places are words of their own: products
are numbers of differing bits. An estimate is off by a part of the product of both lengths; what part is a matter of
chance, and measured.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making, summing
from likewise.kernels.intrinsics import ones

PLACES = 4
"""Bits of a component of a query; that it is rounded adds little to the error of the signs."""
LEVELS = (1 << PLACES) - 1
BLOCK = 512
"""Vectors whose estimates are found at a time."""


@inner
def mix(vector, first, count):
    """Replace `count` components, a power of two, by the sums of all of them with the signs of a Hadamard matrix."""
    half = 1
    while half < count:
        for start in range(first, first + count, 2 * half):
            for j in range(start, start + half):
                a, b = vector[j], vector[j + half]
                vector[j], vector[j + half] = a + b, a - b
        half *= 2
    scale = np.float32(1.0 / math.sqrt(count))
    for j in range(first, first + count):
        vector[j] *= scale


@inner
def turn(turns, vector):
    """Turn a vector: its components change their signs as a row of `turns` says, and are mixed, for each row."""
    count = 1
    while 2 * count <= vector.size:
        count *= 2
    for round_ in range(turns.shape[0]):
        for j in range(vector.size):
            vector[j] *= np.float32(turns[round_, j])
        mix(vector, (vector.size - count) * (round_ & 1), count)


@kernel
def turn_rows(turns, rows):
    """Turn every row."""
    for i in range(rows.shape[0]):
        turn(turns, rows[i])


@summing
def both_sums(vector):
    """Return the sum of the absolute components, and of their squares."""
    total, square = np.float32(0), np.float32(0)
    for j in range(vector.size):
        total += abs(vector[j])
        square += vector[j] * vector[j]
    return total, square


@inner
def set_signs(gap, i, count, signs, squares, factors):
    """Note the signs of a difference that was turned, for vector i of the `count` of its cell."""
    width = gap.size
    total, square = both_sums(gap)
    squares[i] = square
    factors[i] = 2 * square / total if total > 0 else np.float32(0)
    for word in range((width + 63) // 64):
        bits = np.uint64(0)
        for j in range(64 * word, min(width, 64 * word + 64)):
            if gap[j] > 0:
                bits |= np.uint64(1) << np.uint64(j & 63)
        signs[word * count + i] = bits


@inner
def largest_gap(a, b):
    """Return the largest absolute difference of components: that whose bits are the largest number."""
    largest = np.int32(0)
    for j in range(a.size):
        largest = max(np.int32(largest), np.float32(abs(a[j] - b[j])).view(np.int32))
    return np.int32(largest).view(np.float32)


@inner
def set_places(here, centre, levels, places):
    """Write the four bits of each component of a query, from a centre, as four words per 64 of them; return their
    unit."""
    width = here.size
    largest = largest_gap(here, centre)
    unit = largest / np.float32(LEVELS)
    scale, half = np.float32(0.5) / unit if unit > 0 else np.float32(0), np.float32(0.5 * LEVELS + 0.5)
    for j in range(width):
        levels[j] = np.uint64(np.int32((here[j] - centre[j]) * scale + half))
    for word in range(places.shape[0]):
        a, b, c, d = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
        for j in range(64):
            level, at = levels[64 * word + j], np.uint64(j)
            a |= (level & np.uint64(1)) << at
            b |= ((level >> np.uint64(1)) & np.uint64(1)) << at
            c |= ((level >> np.uint64(2)) & np.uint64(1)) << at
            d |= ((level >> np.uint64(3)) & np.uint64(1)) << at
        places[word, 0], places[word, 1], places[word, 2], places[word, 3] = a, b, c, d
    return unit


@inner
def differing(signs, a, b, c, d, counts):
    """Add by how much words of signs differ from those of a query: a bit counts as much as its place."""
    for i in range(signs.size):
        sign = signs[i]
        counts[i] += np.int32(ones(sign ^ a) + 2 * ones(sign ^ b) + 4 * ones(sign ^ c) + 8 * ones(sign ^ d))


@summing
def put_least(counts, squares, factors, most, twice, least):
    """Write the least squares of distances, less that of the centre."""
    for i in range(counts.size):
        least[i] = squares[i] - factors[i] * (most - twice * np.float32(counts[i]))


@inner
def least_squares(signs, squares, factors, first, place, unit, width, off, room):
    """Write the least square of the distance of vectors of a cell from a query, less that of the centre.

    signs: of the cell; the first words of all its vectors come before the second ones. first: the first vector, and
    place: its place in `squares` and `factors`. off: how far products may be off.
    """
    counts, places = room.counts, room.places
    size, count = counts.size, signs.size // places.shape[0]
    counts[:] = 0
    for word in range(places.shape[0]):
        at = word * count + first
        some = signs[at : at + size]
        differing(some, places[word, 0], places[word, 1], places[word, 2], places[word, 3], counts)
    most, twice = np.float32(unit * LEVELS * width + off), np.float32(2 * unit)
    put_least(counts, squares[place : place + size], factors[place : place + size], most, twice, room.least)


class SignRoom(NamedTuple):
    """Room for the bits of a query, in numbers and in words, and for counts and estimates of some vectors."""

    levels: Any
    places: Any
    counts: Any
    least: Any


@making
def sign_room(width, size):
    """Return room for vectors of so many components, `size` at a time."""
    words = (width + 63) // 64
    return SignRoom(
        np.zeros(64 * words, np.uint64), np.empty((words, PLACES), np.uint64), np.empty(size, np.int32),
        np.empty(size, np.float32),
    )  # fmt: skip


@kernel
def estimates(turned, centre, signs, squares, factors, out):
    """Write the estimated squares of the distances of queries, turned, from vectors; each row of `signs` is one."""
    width = turned.shape[1]
    room = sign_room(width, 1)
    for i in range(turned.shape[0]):
        unit = set_places(turned[i], centre[i], room.levels, room.places)
        least_squares(signs[i], squares, factors, 0, i, unit, width, np.float32(0), room)
        gap = 0.0
        for j in range(width):
            gap += np.float64(turned[i, j] - centre[i, j]) ** 2
        out[i] = gap + np.float64(room.least[0])
