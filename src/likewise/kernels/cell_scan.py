"""Queries of stored vectors: cells in the order of their centres, codes of one byte per component, exact distances.

Vectors are placed in a frame: scaled and shifted, or, compared by angle, of length 1 and shifted. A cell holds what is
nearest to its centre; of each vector there is a code, the difference from the centre in whole steps. By how much codes
are off is known for every cell, so that a vector whose code is too far away is too far away itself. All others are
compared in double precision.

A distance is a *key* here: the square of an L2 distance or of the chord of an angle, an L1 distance, or a number of
bits. Numbers of a damaged file that point outside of its arrays are passed over.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, summing
from likewise.kernels.distances import LARGE, SMALL
from likewise.kernels.intrinsics import chunk_of, floats32, floats64
from likewise.kernels.pairs import is_worse, rise, sink
from likewise.kernels.sets import differing_bits

ANGLE, L2, L1, HAMMING = range(4)
STEPS = 127.0
"""The largest code."""
ROUNDING = 2.0**-24
"""The relative error of an operation in single precision."""
LOOSE = 1e-5
"""What is added to the reach of a query, relative to the distance of its nearest centre, for rounding."""

CHUNK_FIRST, CHUNK_ROWS, CHUNK_ADDRESS = range(3)
"""What the columns of the table of chunks hold: the first row, how many, and where the vectors are."""


class CellTables(NamedTuple):
    """A segment: `frame` is the scale and then the origin; cell c has the rows order[ends[c]:ends[c + 1]], with their
    codes and the squares of the lengths of these; steps, errors: the unit of its codes, and by how much they are off.
    wide: whether the vectors of chunks are of double precision. words: the bits of all rows in this order."""

    frame: Any
    centres: Any
    ends: Any
    order: Any
    codes: Any
    squares: Any
    steps: Any
    errors: Any
    words: Any
    chunks: Any
    wide: bool
    dead: Any
    first: int


class CellAim(NamedTuple):
    """What is looked for: the measure, the most answers (0: all), the largest key, and how far to go: a cell is visited
    if its centre is farther than the nearest one by no more than `reach` times the distance of the worst answer."""

    measure: int
    best: int
    most: float
    reach: float


class CellHits(NamedTuple):
    """Room for answers, a row per query: negated keys, rows of the index, and how many."""

    scores: Any
    rows: Any
    counts: Any


@summing
def squared_gap(a, b):
    """Return the square of the distance of two vectors of single precision."""
    total = np.float32(0)
    for j in range(a.size):
        gap = a[j] - b[j]
        total += gap * gap
    return total


@summing
def code_product(a, code):
    """Return the product of a vector and a code."""
    total = np.float32(0)
    for j in range(a.size):
        total += a[j] * np.float32(code[j])
    return total


@summing
def code_gap(a, code):
    """Return the L1 distance of a vector and a code."""
    total = np.float32(0)
    for j in range(a.size):
        total += abs(a[j] - np.float32(code[j]))
    return total


@summing
def square_sum(a):
    """Return the sum of the squares of components, in double precision."""
    total = 0.0
    for j in range(a.size):
        total += np.float64(a[j]) * np.float64(a[j])
    return total


@summing
def square_gaps(a, b, scale):
    """Return the sum of (a − scale · b)², in double precision."""
    total = 0.0
    for j in range(a.size):
        gap = a[j] - scale * np.float64(b[j])
        total += gap * gap
    return total


@summing
def gaps_of(a, b):
    """Return the sum of |a − b|, in double precision."""
    total = 0.0
    for j in range(a.size):
        total += abs(a[j] - np.float64(b[j]))
    return total


@inner
def largest_of(a):
    """Return the largest component."""
    largest = 0.0
    for j in range(a.size):
        largest = max(largest, abs(np.float64(a[j])))
    return largest


@inner
def key_of(measure, query, vector):
    """Return the key of a query, of length 1 if angles are measured, and a vector."""
    if measure == L1:
        return gaps_of(query, vector)
    if measure == L2:
        return square_gaps(query, vector, 1.0)
    square = square_sum(vector)
    if SMALL < square < LARGE:
        return square_gaps(query, vector, 1.0 / math.sqrt(square))
    largest = largest_of(vector)
    square = 0.0
    for j in range(vector.size):
        part = np.float64(vector[j]) / largest
        square += part * part
    total = 0.0
    for j in range(vector.size):
        gap = query[j] - np.float64(vector[j]) / largest / math.sqrt(square)
        total += gap * gap
    return total


@inner
def radius_of(measure, key, scale):
    """Return a distance in the frame, given its key."""
    if measure == L1:
        return key * scale
    if measure == L2:
        return math.sqrt(key) * scale
    if measure == ANGLE:
        return math.sqrt(key)
    return 2.0 * math.sqrt(key)


@inner
def key_at(measure, query, chunks, wide, row):
    """Return the key of a query and a stored row; infinity if there is no such row."""
    low = chunk_of(chunks, row)
    place = row - chunks[low, CHUNK_FIRST]
    if place >= chunks[low, CHUNK_ROWS]:
        return np.inf
    n = query.size
    if wide:
        return key_of(measure, query, floats64(chunks[low, CHUNK_ADDRESS] + 8 * n * place, n))
    return key_of(measure, query, floats32(chunks[low, CHUNK_ADDRESS] + 4 * n * place, n))


@inner
def is_dead(dead, row):
    """Tell whether a row was removed."""
    return dead.size > 0 and (dead[row >> 3] >> np.uint8(row & 7)) & np.uint8(1) != 0


@inner
def enter(hits, i, key, row, aim, bound):
    """Note an answer to query i; return the largest key that another may have."""
    count = hits.counts[i]
    if aim.best == 0:
        if count < hits.rows.shape[1]:
            hits.scores[i, count] = -key
            hits.rows[i, count] = row
        hits.counts[i] = count + 1
        return bound
    scores, rows = hits.scores[i], hits.rows[i]
    if count < aim.best:
        scores[count] = -key
        rows[count] = row
        rise(scores, rows, count)
        hits.counts[i] = count + 1
        return min(bound, -scores[0]) if count + 1 == aim.best else bound
    if is_worse(scores[0], rows[0], -key, row):
        scores[0] = -key
        rows[0] = row
        sink(scores, rows, count)
    return min(bound, -scores[0])


@inner
def bound_of(hits, i, aim):
    """Return the largest key that an answer to query i may have."""
    return -hits.scores[i, 0] if aim.best > 0 and hits.counts[i] == aim.best else aim.most


@inner
def push_down(keys, names, place, count):
    """Move an entry of a heap down, below every smaller one."""
    key, name = keys[place], names[place]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and keys[child + 1] < keys[child]:
            child += 1
        if not keys[child] < key:
            break
        keys[place], names[place] = keys[child], names[child]
        place = child
    keys[place], names[place] = key, name


@inner
def rank_cells(single, centres, gaps, cells):
    """Make a heap of the cells, the one with the nearest centre on top; gaps: the distances of the centres."""
    count = centres.shape[0]
    for c in range(count):
        gaps[c] = math.sqrt(squared_gap(single, centres[c]))
        cells[c] = c
    for place in range(count // 2 - 1, -1, -1):
        push_down(gaps, cells, place, count)


@inner
def limit_of(measure, radius, error, step, length, largest, width):
    """Return how far a code may be from a query, in steps: squared, but for L1. length: of the query, in steps."""
    apart = (radius + error) / step
    slack = ROUNDING * (width + 8)
    if measure == L1:
        return apart + slack * (length * math.sqrt(width) + largest * math.sqrt(width))
    return apart * apart * (1 + 4 * slack) + 4 * slack * (length + largest) * (length + largest)


@inner
def scan_cell(i, query, here, c, tables, aim, hits, bound, unit):
    """Compare a query with the vectors of a cell; return the largest key that another answer may have."""
    scale = tables.frame[0]
    step = tables.steps[c]
    width = here.size
    for j in range(width):
        unit[j] = np.float32((here[j] - np.float64(tables.centres[c, j])) / step)
    square = square_sum(unit)
    length = math.sqrt(square)
    largest = STEPS * math.sqrt(width)
    most = limit_of(aim.measure, radius_of(aim.measure, bound, scale), tables.errors[c], step, length, largest, width)
    for place in range(tables.ends[c], min(np.int64(tables.ends[c + 1]), tables.order.size)):
        if aim.measure == L1:
            apart = np.float64(code_gap(unit, tables.codes[place]))
        else:
            apart = square + tables.squares[place] - 2.0 * code_product(unit, tables.codes[place])
        if apart > most:
            continue
        row = np.int64(tables.order[place])
        if row >= tables.order.size or is_dead(tables.dead, row):
            continue
        key = key_at(aim.measure, query, tables.chunks, tables.wide, row)
        if key <= bound:
            before = bound
            bound = enter(hits, i, key, tables.first + row, aim, bound)
            if bound < before:
                radius = radius_of(aim.measure, bound, scale)
                most = limit_of(aim.measure, radius, tables.errors[c], step, length, largest, width)
    return bound


@kernel
def ask_numbers(queries, tables, aim, hits):
    """Add the vectors of a segment that are near to queries to the answers, and drop those that are too many."""
    count = tables.centres.shape[0]
    width = queries.shape[1]
    scale = tables.frame[0]
    gaps = np.empty(count)
    cells = np.empty(count, np.int64)
    here = np.empty(width)
    single, unit = np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(queries.shape[0]):
        query = queries[i]
        for j in range(width):
            here[j] = query[j] * scale - tables.frame[j + 1]
            single[j] = here[j]
        rank_cells(single, tables.centres, gaps, cells)
        nearest = gaps[0]
        bound = bound_of(hits, i, aim)
        left = count
        while left > 0:
            radius = radius_of(aim.measure, bound, scale)
            if gaps[0] - nearest > aim.reach * radius + LOOSE * nearest:
                break
            bound = scan_cell(i, query, here, cells[0], tables, aim, hits, bound, unit)
            left -= 1
            gaps[0], cells[0] = gaps[left], cells[left]
            push_down(gaps, cells, 0, left)


@kernel
def ask_bits(queries, tables, aim, hits):
    """Like `ask_numbers`, for rows of bits: cells hold the bits themselves."""
    count, width = tables.centres.shape
    gaps = np.empty(count)
    cells = np.empty(count, np.int64)
    single = np.empty(width, np.float32)
    for i in range(queries.shape[0]):
        query = queries[i]
        for j in range(width):
            single[j] = np.float32(1) if (query[j >> 6] >> np.uint64(j & 63)) & np.uint64(1) else np.float32(-1)
        rank_cells(single, tables.centres, gaps, cells)
        nearest = gaps[0]
        bound = bound_of(hits, i, aim)
        left = count
        while left > 0:
            if gaps[0] - nearest > aim.reach * radius_of(HAMMING, bound, 1.0) + LOOSE * nearest:
                break
            c = cells[0]
            for place in range(tables.ends[c], min(np.int64(tables.ends[c + 1]), tables.order.size)):
                key = np.float64(differing_bits(query, tables.words[place]))
                row = np.int64(tables.order[place])
                if key <= bound and row < tables.order.size and not is_dead(tables.dead, row):
                    bound = enter(hits, i, key, tables.first + row, aim, bound)
            left -= 1
            gaps[0], cells[0] = gaps[left], cells[left]
            push_down(gaps, cells, 0, left)


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
