"""The k best of every row, chosen from blocks of scores while these are still in a processor's cache.

A score is `terms[column] − likeness`: the lower bound of a number that increases with the distance. What the rounding
may have added is at most `slack[row] + doubt[column]`; so a column can be among the k best if its score does not exceed
the k-th smallest sum of a score and its doubt by more than the slack. All such columns are kept, in as much room as
every row has; a row whose room does not do is marked, and keeps the bound only.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, summing
from likewise.kernels.intrinsics import ones

STEP = 64
"""Scores that are compared with the bound at a time."""


class BestColumns(NamedTuple):
    """For every row the scores and the columns that may be among its k best, how many, and the bound of a score.

    certain: scores are exact; else the slack of the row and the doubt of the column say by how much they may be off.
    """

    k: int
    certain: bool
    slack: Any
    doubt: Any
    counts: Any
    bounds: Any
    crowded: Any
    lows: Any
    columns: Any


@inner
def kth_smallest(values, count, k):
    """Return the k-th smallest of the first `count` values, which are moved."""
    low = 0
    high, place = count - 1, k - 1
    while low < high:
        middle = values[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while values[i] < middle:
                i += 1
            while values[j] > middle:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            high = j
        elif place >= i:
            low = i
        else:
            break
    return values[place]


@inner
def drop_ties(kept, k, last, lows, columns, places):
    """Keep k of the entries of a row: those below the score `last`, and of those equal to it the first columns."""
    below, ties = 0, 0
    for x in range(kept):
        if lows[x] < last:
            below += 1
        else:
            places[ties] = columns[x]
            ties += 1
    final = kth_smallest(places, ties, k - below)
    count = 0
    for x in range(kept):
        if lows[x] < last or columns[x] <= final:
            lows[count], columns[count] = lows[x], columns[x]
            count += 1
    return count


@inner
def drop_crowd(kept, k, last, doubt, lows, columns):
    """Keep k of the entries of a row, those with the least sums of score and doubt."""
    ties = k
    for x in range(kept):
        if lows[x] + doubt[columns[x]] < last:
            ties -= 1
    count = 0
    for x in range(kept):
        total = lows[x] + doubt[columns[x]]
        if total < last or (total == last and ties > 0):
            if total == last:
                ties -= 1
            lows[count], columns[count] = lows[x], columns[x]
            count += 1
    return count


@inner
def shrink(i, slack, best, values, places):
    """Drop the entries of a row that cannot be among its k best; set its bound.

    Where scores are `certain`, exactly k stay, ties by column. Where so many stay that there is little room for more,
    the row is crowded: only the k with the least sums stay, which is enough to go on with the bound.
    """
    k, certain, _, doubt, counts, bounds, crowded, lows, columns = best
    count = counts[i]
    if count < k:
        return
    mine, places_of = lows[i], columns[i]
    for x in range(count):
        values[x] = mine[x] + doubt[places_of[x]]
    last = kth_smallest(values, count, k)
    bound = last + slack
    kept = 0
    for x in range(count):
        if mine[x] <= bound:
            mine[kept], places_of[kept] = mine[x], places_of[x]
            kept += 1
    bounds[i] = bound
    if certain:
        kept = drop_ties(kept, k, last, mine, places_of, places)
    elif crowded[i] or kept > k + ((mine.size - k) >> 1):
        crowded[i] = True
        kept = drop_crowd(kept, k, last, doubt, mine, places_of)
        bounds[i] = np.nextafter(last, last - abs(last) - 1)  # only a smaller sum changes the k-th
    counts[i] = kept


@inner
def any_within(base, near, bound):
    """Tell whether any of some scores is within the bound, without a branch for each."""
    found = False
    for j in range(near.size):
        found |= base[j] - near[j] <= bound
    return found


@summing
def product(a, b):
    """Return the sum of the products of components."""
    total = a[0] * b[0]
    for j in range(1, a.size):
        total += a[j] * b[j]
    return total


@kernel
def choose(likeness, every, base, names, rows, at, best):
    """Enter the columns of a block that may be among the k best of their row; row r is not its own neighbour.

    likeness: a row for each of `at`, which are places of `rows`. base, names: the terms and the numbers of the columns.
    every: the vectors of all rows and columns if `likeness` is only as large as theirs may be, so that the likeness of
    what may do is computed; else none.
    """
    slack, counts, bounds, lows, columns = best.slack, best.counts, best.bounds, best.lows, best.columns
    room = lows.shape[1]
    values, places = np.empty(room, lows.dtype), np.empty(room, columns.dtype)
    promised = every.shape[0] > 0
    for x in range(at.size):
        i = at[x]
        row = rows[i]
        spare, bound, count = slack[row], bounds[i], counts[i]
        for start in range(0, base.size, STEP):
            near = likeness[x, start : start + STEP]
            some = base[start : start + STEP]
            if not any_within(some, near, bound):
                continue
            for j in range(near.size):
                low = some[j] - near[j]
                if low <= bound and names[start + j] != row:
                    if promised:
                        low = some[j] - product(every[row], every[names[start + j]])
                        if low > bound:
                            continue
                    if count == room:
                        counts[i] = count
                        shrink(i, spare, best, values, places)
                        bound, count = bounds[i], counts[i]
                        if low > bound:
                            continue
                    lows[i, count] = low
                    columns[i, count] = names[start + j]
                    count += 1
        counts[i] = count


@kernel
def choose_both(likeness, terms, first, high, best):
    """Enter every pair of a block in both its rows; the rows are numbered from `high`, the columns from `first`.

    A block on the diagonal is symmetric, and each of its rows sees all of its columns.
    """
    slack, counts, bounds, lows, columns = best.slack, best.counts, best.bounds, best.lows, best.columns
    room = lows.shape[1]
    values, places = np.empty(room, lows.dtype), np.empty(room, columns.dtype)
    some, theirs = terms[first : first + likeness.shape[1]], bounds[first : first + likeness.shape[1]]
    apart = high != first
    for i in range(likeness.shape[0]):
        row = high + i
        mine = terms[row]
        for start in range(0, some.size, STEP):
            near = likeness[i, start : start + STEP]
            base, others = some[start : start + STEP], theirs[start : start + STEP]
            bound = bounds[row]
            found = False
            for j in range(near.size):
                found |= (base[j] - near[j] <= bound) | (mine - near[j] <= others[j])
            if not found:
                continue
            for j in range(near.size):
                column = first + start + j
                low = base[j] - near[j]
                if low <= bounds[row] and column != row:
                    if counts[row] == room:
                        shrink(row, slack[row], best, values, places)
                    if low <= bounds[row]:
                        lows[row, counts[row]], columns[row, counts[row]] = low, column
                        counts[row] += 1
                low = mine - near[j]
                if apart and low <= others[j]:
                    if counts[column] == room:
                        shrink(column, slack[column], best, values, places)
                    if low <= others[j]:
                        lows[column, counts[column]], columns[column, counts[column]] = low, row
                        counts[column] += 1


@kernel
def bound_by(every, terms, rows, k, slack, doubt, counts, columns, bounds):
    """Set the bounds of rows by the likeness of some columns of each, among which most of the k best may be."""
    values = np.empty(columns.shape[1], bounds.dtype)
    for i in range(rows.size):
        if counts[i] < k:
            continue
        mine = every[rows[i]]
        for x in range(counts[i]):
            column = columns[i, x]
            values[x] = terms[column] - product(mine, every[column]) + doubt[column]
        bounds[i] = kth_smallest(values, counts[i], k) + slack[rows[i]]


@kernel
def settle(rows, best):
    """Drop what cannot be among the k best of every row, now that all is seen; give crowded rows their full bounds."""
    bounds, lows = best.bounds, best.lows
    values, places = np.empty(lows.shape[1], lows.dtype), np.empty(lows.shape[1], best.columns.dtype)
    for i in range(rows.size):
        spare = best.slack[rows[i]]
        shrink(i, spare, best, values, places)
        if best.crowded[i]:
            bounds[i] = np.nextafter(bounds[i], bounds[i] + abs(bounds[i]) + 1) + spare


@kernel
def list_within(likeness, terms, first, bounds, begins, place, left, right):
    """Write the places of a block whose scores are within the bounds of their rows; return how many.

    begins[i]: the first place that row i is compared with. Goes on at place[0], a row, and stops when another row may
    not fit.
    """
    some = terms[first : first + likeness.shape[1]]
    count = 0
    for i in range(place[0], likeness.shape[0]):
        if count + some.size > left.size:
            place[0] = i
            return count
        bound = bounds[i]
        for start in range(begins[i], some.size, STEP):
            near = likeness[i, start : start + STEP]
            base = some[start : start + STEP]
            if any_within(base, near, bound):
                for j in range(near.size):
                    if base[j] - near[j] <= bound:
                        left[count] = i
                        right[count] = start + j
                        count += 1
    place[0] = likeness.shape[0]
    return count


@kernel
def sums_apart(a, b, out):
    """Write the negated Manhattan distance of every row of a from every column of b."""
    whole = a.shape[1] - a.shape[1] % 4
    for i in range(a.shape[0]):
        row = out[i]
        row[:] = 0
        for w in range(0, whole, 4):
            p, q, r, s = a[i, w], a[i, w + 1], a[i, w + 2], a[i, w + 3]
            first, second, third, fourth = b[w], b[w + 1], b[w + 2], b[w + 3]
            for j in range(row.size):
                row[j] -= (abs(p - first[j]) + abs(q - second[j])) + (abs(r - third[j]) + abs(s - fourth[j]))
        for w in range(whole, a.shape[1]):
            p = a[i, w]
            only = b[w]
            for j in range(row.size):
                row[j] -= abs(p - only[j])


@kernel
def bits_apart(a, b, out):
    """Write, negated, in how many bits every row of a differs from every column of b."""
    apart = np.empty(b.shape[1], np.int64)
    for i in range(a.shape[0]):
        apart[:] = 0
        for w in range(a.shape[1]):
            mine = a[i, w]
            words = b[w]
            for j in range(words.size):
                apart[j] += ones(mine ^ words[j])
        row = out[i]
        for j in range(row.size):
            row[j] = -apart[j]
