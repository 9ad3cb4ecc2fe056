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

from likewise.kernels import inner, kernel, making, summing
from likewise.kernels.cell_visits import begin_round, next_visits, visits_of
from likewise.kernels.distances import LARGE, SMALL
from likewise.kernels.intrinsics import chunk_of, floats32, floats64, prefetch
from likewise.kernels.pairs import is_worse, rise, sink
from likewise.kernels.sets import differing_bits
from likewise.kernels.sign_codes import BLOCK, SignRoom, least_squares, set_places, sign_room, turn

ANGLE, L2, L1, HAMMING = range(4)
STEPS = 127.0
"""The largest code."""
ROUNDING = 2.0**-24
"""The relative error of an operation in single precision."""
LINE = 64
"""Bytes that are read from memory at a time."""

CHUNK_FIRST, CHUNK_ROWS, CHUNK_ADDRESS = range(3)
"""What the columns of the table of chunks hold: the first row, how many, and where the vectors are."""


class CellTables(NamedTuple):
    """A segment: `frame` is the scale and then the origin; cell c has the rows order[ends[c]:ends[c + 1]], with their
    codes and the squares of the lengths of these; steps, errors: the unit of its codes, and by how much they are off.
    wide: whether the vectors of chunks are of double precision. words: the bits of all rows in this order. turns,
    turned, signs, spreads, factors: the codes of one bit per component (sign_codes.py), if there are any."""

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
    turns: Any
    turned: Any
    signs: Any
    spreads: Any
    factors: Any


class CellAim(NamedTuple):
    """What is looked for: the measure, the most answers (0: all), the largest key, and how far to go: a cell is visited
    if its centre is farther than the nearest one by no more than `reach` times the distance of the worst answer. doubt:
    how much farther than allowed signs may say that a vector is, as a part of the product of the lengths; infinite if
    they are not to be asked."""

    measure: int
    best: int
    most: float
    reach: float
    doubt: float


class CellHits(NamedTuple):
    """Room for answers, a row per query: negated keys, rows of the index, and how many."""

    scores: Any
    rows: Any
    counts: Any


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


@making
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
def limit_of(measure, radius, error, step, length, largest, width):
    """Return how far a code may be from a query, in steps: squared, but for L1. length: of the query, in steps."""
    apart = (radius + error) / step
    slack = ROUNDING * (width + 8)
    if measure == L1:
        return apart + slack * (length * math.sqrt(width) + largest * math.sqrt(width))
    return apart * apart * (1 + 4 * slack) + 4 * slack * (length + largest) * (length + largest)


class ScanRoom(NamedTuple):
    """Queries in the frame, in double precision and, turned, in single precision; and room for one of them: seen from a
    centre, the places of vectors that it may be near to, and how its signs are compared."""

    here: Any
    turned: Any
    unit: Any
    places: Any
    signs: Any


@inner
def fetch_codes(tables, places, count):
    """Begin to read some codes from memory, all of them at the same time."""
    width = tables.codes.shape[1]
    for k in range(count):
        prefetch(tables.squares, places[k])
        for j in range(0, width, LINE):
            prefetch(tables.codes, places[k] * width + j)


@inner
def fetch_signs(tables, c):
    """Begin to read the signs of a cell, the next one."""
    start, stop = np.int64(tables.ends[c]), np.int64(tables.ends[c + 1])
    if stop > start + BLOCK:
        stop = start + BLOCK
    width = tables.turned.shape[1]
    words = (width + 63) // 64
    for place in range(start * words, stop * words, LINE // 8):
        prefetch(tables.signs, place)
    for place in range(start, stop, LINE // 4):
        prefetch(tables.spreads, place)
        prefetch(tables.factors, place)
    for place in range(c * width, c * width + width, LINE // 4):
        prefetch(tables.turned, place)


@inner
def near_places(c, first, limit, each, off, tables, room):
    """Note which places of a cell, from the first on, have estimates by signs within a limit; return how many."""
    signs, width = room.signs, room.turned.shape[1]
    words = signs.places.shape[0]
    start, stop = np.int64(tables.ends[c]), np.int64(tables.ends[c + 1])
    size = BLOCK if stop - first > BLOCK else stop - first
    some = SignRoom(signs.levels, signs.places, signs.counts[:size], signs.least[:size])
    mine = tables.signs[start * words : stop * words]
    least_squares(mine, tables.spreads, tables.factors, first - start, first, each, width, off, some)
    least, places = some.least, room.places
    count = 0
    for k in range(size):
        if least[k] <= limit:
            places[count] = first + k
            count += 1
    fetch_codes(tables, places, count)
    return count


@inner
def scan_cell(i, query, c, gap, tables, aim, hits, room):
    """Compare a query with the vectors of a cell, by their signs first, if these are to be asked. gap: the distance of
    the centre."""
    start, stop = np.int64(tables.ends[c]), np.int64(tables.ends[c + 1])
    if start >= stop or stop > tables.order.size:
        return
    here, unit, places = room.here[i], room.unit, room.places
    scale, step, error, width = tables.frame[0], tables.steps[c], tables.errors[c], here.size
    bound = bound_of(hits, i, aim)
    radius = radius_of(aim.measure, bound, scale)
    signed = aim.doubt < np.inf and radius < np.inf
    off = each = np.float32(0)
    if signed:
        off = np.float32(aim.doubt * gap)
        each = set_places(room.turned[i], tables.turned[c], room.signs.levels, room.signs.places)
    largest = STEPS * math.sqrt(width)
    square, length, most = -1.0, 0.0, 0.0
    codes, squares, order = tables.codes, tables.squares, tables.order
    for first in range(start, stop, BLOCK):
        count = BLOCK if stop - first > BLOCK else stop - first
        if signed:
            limit = np.float32(radius * radius - gap * gap)
            count = near_places(c, first, limit, each, off, tables, room)
        if count > 0 and square < 0:
            centre, steps = tables.centres[c], 1.0 / step
            for j in range(width):
                unit[j] = np.float32((here[j] - np.float64(centre[j])) * steps)
            square = square_sum(unit)
            length = math.sqrt(square)
            most = limit_of(aim.measure, radius, error, step, length, largest, width)
        for k in range(count):
            place = places[k] if signed else first + k
            if aim.measure == L1:
                apart = np.float64(code_gap(unit, codes[place]))
            else:
                apart = square + squares[place] - 2.0 * code_product(unit, codes[place])
            if apart > most:
                continue
            row = np.int64(order[place])
            if row >= order.size or is_dead(tables.dead, row):
                continue
            key = key_at(aim.measure, query, tables.chunks, tables.wide, row)
            if key <= bound:
                before = bound
                bound = enter(hits, i, key, tables.first + row, aim, bound)
                if bound < before:
                    radius = radius_of(aim.measure, bound, scale)
                    most = limit_of(aim.measure, radius, error, step, length, largest, width)


@inner
def begin_rounds(round_, visits, scale, aim, hits):
    """Find how far each query goes in a round; tell whether any visits more cells."""
    going = False
    for i in range(visits.most.size):
        radius = radius_of(aim.measure, bound_of(hits, i, aim), scale)
        going |= begin_round(visits, round_, i, aim.reach * radius)
    return going


@kernel
def ask_numbers(queries, tables, aim, hits):
    """Add the vectors of a segment that are near to queries to the answers, and drop those that are too many."""
    count, width = queries.shape
    scale = tables.frame[0]
    placed = np.empty((count, width), np.float32)
    room = ScanRoom(
        np.empty((count, width)), placed, np.empty(width, np.float32), np.empty(BLOCK, np.int64),
        sign_room(width, BLOCK),
    )  # fmt: skip
    for i in range(count):
        for j in range(width):
            room.here[i, j] = queries[i, j] * scale - tables.frame[j + 1]
            placed[i, j] = room.here[i, j]
    visits = visits_of(placed, tables.centres)
    if aim.doubt < np.inf:
        for i in range(count):
            turn(tables.turns, placed[i])
    for round_ in range(visits.ends.shape[0]):
        if not begin_rounds(round_, visits, scale, aim, hits):
            break
        side, (c, visitors) = 0, next_visits(visits, 0, visits.waiting[0])
        while visitors > 0:
            following, coming = next_visits(visits, c + 1, visits.waiting[1 - side])
            if coming > 0 and aim.doubt < np.inf:
                fetch_signs(tables, following)
            for x in range(visitors):
                i = visits.waiting[side, x]
                scan_cell(i, queries[i], c, np.float64(visits.gaps[c, i]), tables, aim, hits, room)
            side, c, visitors = 1 - side, following, coming


@kernel
def ask_bits(queries, tables, aim, hits):
    """Like `ask_numbers`, for rows of bits: cells hold the bits themselves."""
    count, width = queries.shape[0], tables.centres.shape[1]
    placed, order = np.empty((count, width), np.float32), tables.order
    for i in range(count):
        for j in range(width):
            flag = (queries[i, j >> 6] >> np.uint64(j & 63)) & np.uint64(1)
            placed[i, j] = np.float32(1) if flag else np.float32(-1)
    visits = visits_of(placed, tables.centres)
    for round_ in range(visits.ends.shape[0]):
        if not begin_rounds(round_, visits, 1.0, aim, hits):
            break
        c, visitors = next_visits(visits, 0, visits.waiting[0])
        while visitors > 0:
            for x in range(visitors):
                i = visits.waiting[0, x]
                bound = bound_of(hits, i, aim)
                for place in range(tables.ends[c], min(np.int64(tables.ends[c + 1]), order.size)):
                    key = np.float64(differing_bits(queries[i], tables.words[place]))
                    row = np.int64(order[place])
                    if key <= bound and row < order.size and not is_dead(tables.dead, row):
                        bound = enter(hits, i, key, tables.first + row, aim, bound)
            c, visitors = next_visits(visits, c + 1, visits.waiting[0])
