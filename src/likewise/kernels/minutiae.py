"""Minutiae of fingerprints: triples that agree vote for how one print lies on another; the vote is verified."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.sorting import sort_pairs

ODD = np.uint64(0x9E3779B1)
LOW = np.uint64(2**32 - 1)

TURN = 2 * np.pi
TURNS = 12
"""Cells of rotation that a vote may fall in."""
SHIFTS = 32
"""Cells of shift, along x and along y."""


class TripleTables(NamedTuple):
    """Triples: maybe[f, k, :counts[f, k]] are the squares, of `width` in all, that neighbour k of minutia f may be in.

    slots, keys, minutiae are the hash table of all triples, owner is the print of every minutia.
    """

    maybe: Any
    counts: Any
    width: int
    slots: Any
    keys: Any
    minutiae: Any
    owner: Any


@inner
def wrapped(angle):
    """Return an angle from −π to π."""
    return angle - TURN * np.round(angle / TURN)


def slot(keys: Any, size: int) -> Any:
    """Return the slots of keys, none negative, in a table of this size, a power of two; for arrays, outside kernels."""
    return (((keys.astype(np.uint64) * ODD) & LOW) >> np.uint64(33 - int(size).bit_length())).astype(np.int64)


@kernel
def propose(first, last, index, after, poses, cell, least, most, found, best):
    """Find which prints after number `after` a print may be of one finger with, and how they lie on each other.

    The print has the minutiae first to last; poses: of every minutia x, y and direction about the middle of its print.
    Each triple that agrees votes for a rotation and a shift; `cell` is the width of a cell of shifts. Of each print p
    where some cell has least[p] votes or more, `found` gets the number, and `best` the fullest cells: the votes, the
    rotation, and where the middle of the print comes to lie. Returns how many prints these are. No more than `most`
    votes are in memory, or those of one print.
    """
    prints = least.size
    starts = np.zeros(prints + 1, np.int64)
    none = np.empty((0, 2), np.int32)
    agreeing(first, last, index, after, prints, starts[1:], none, False)
    for p in range(prints):
        starts[p + 1] += starts[p]
    votes = np.zeros((8, TURNS, SHIFTS, SHIFTS), np.int32)
    written, low = 0, 0
    while low < prints:
        high = low + 1
        while high < prints and starts[high + 1] - starts[low] <= most:
            high += 1
        if starts[high] > starts[low]:
            hits = np.empty((starts[high] - starts[low], 2), np.int32)
            place = starts[:high] - starts[low]
            agreeing(first, last, index, max(after, low - 1), high, place, hits, True)
            for p in range(low, high):
                some = hits[starts[p] - starts[low] : starts[p + 1] - starts[low]]
                if some.shape[0] == 0 or some.shape[0] < least[p] or most_turned_alike(poses, some) < least[p]:
                    continue
                if elect(poses, some, cell, votes, best[written]) >= least[p]:
                    found[written] = p
                    written += 1
        low = high
    return written


@inner
def agreeing(first, last, index, after, until, place, hits, write):
    """Count the triples of a print that agree with one of each print after `after` and before `until`, or write them.

    place[p] is the count of print p, or where its next pair of minutiae goes.
    """
    maybe, counts, width, slots, keys, minutiae, owner = index
    bits = 0
    while (1 << bits) < slots.size - 1:
        bits += 1
    shift = np.uint64(32 - bits)
    for f in range(first, last):
        for a in range(maybe.shape[1]):
            for b in range(a + 1, maybe.shape[1]):
                for u in range(counts[f, a]):
                    for v in range(counts[f, b]):
                        low, high = maybe[f, a, u], maybe[f, b, v]
                        if low > high:
                            low, high = high, low
                        key = np.int64(low) * width + np.int64(high)
                        here = np.int64(((np.uint64(key) * ODD) & LOW) >> shift)
                        for e in range(slots[here], slots[here + 1]):
                            if keys[e] != key:
                                continue
                            p = owner[minutiae[e]]
                            if p <= after or p >= until:
                                continue
                            if write:
                                hits[place[p], 0] = f
                                hits[place[p], 1] = minutiae[e]
                            place[p] += 1


@making
def most_turned_alike(poses, hits):
    """Return how many votes there are at most in a cell of rotation, whatever their shift."""
    bins = np.zeros(2 * TURNS, np.int32)
    for h in range(hits.shape[0]):
        rotation = poses[hits[h, 1], 2] - poses[hits[h, 0], 2]
        bins[int(np.floor((rotation / TURN + 2) * 2 * TURNS)) % (2 * TURNS)] += 1
    most = 0
    for i in range(2 * TURNS):
        most = max(most, bins[i] + bins[i - 1])
    return most


@making
def elect(poses, hits, cell, votes, best):
    """Write the votes in the fullest cells, and their mean rotation and shift; `votes` is all 0 and stays so.

    Votes for a cell that was written do not count for the next one. Return the votes in the fullest cell.
    """
    n = hits.shape[0]
    lying = np.empty((n, 3))
    cells = np.empty((n, 8), np.int64)
    free = np.ones(n, np.bool_)
    flat = votes.reshape(-1)
    for h in range(n):
        lying[h, 0], lying[h, 1], lying[h, 2] = lies(poses, hits[h, 0], hits[h, 1])
        for grid in range(8):
            cells[h, grid] = vote_cell(lying[h, 0], lying[h, 1], lying[h, 2], cell, grid)
            flat[cells[h, grid]] += 1
    for k in range(best.shape[0]):
        most, winner = 0, np.int64(0)
        for h in range(n):
            for grid in range(8):
                if flat[cells[h, grid]] > most:
                    most, winner = flat[cells[h, grid]], cells[h, grid]
        best[k, 0] = most
        if most == 0:
            continue
        won = winner // (TURNS * SHIFTS * SHIFTS)
        sine, cosine, x, y = 0.0, 0.0, 0.0, 0.0
        for h in range(n):
            if free[h] and cells[h, won] == winner:
                sine += np.sin(lying[h, 0])
                cosine += np.cos(lying[h, 0])
                x += lying[h, 1]
                y += lying[h, 2]
                free[h] = False
                for grid in range(8):
                    flat[cells[h, grid]] -= 1
        best[k, 1], best[k, 2], best[k, 3] = np.arctan2(sine, cosine), x / most, y / most
    for h in range(n):
        for grid in range(8):
            flat[cells[h, grid]] = 0
    return best[0, 0]


@inner
def lies(poses, f, g):
    """Return the rotation that takes minutia f to minutia g, and where the centre of f's print then lies in g's."""
    rotation = poses[g, 2] - poses[f, 2]
    cosine, sine = np.cos(rotation), np.sin(rotation)
    x = poses[g, 0] - cosine * poses[f, 0] + sine * poses[f, 1]
    y = poses[g, 1] - sine * poses[f, 0] - cosine * poses[f, 1]
    return rotation, x, y


@inner
def vote_cell(rotation, x, y, cell, grid):
    """Return the cell of a vote in one of eight grids, each shifted by half a cell along some of the three axes."""
    r = int(np.floor((rotation / TURN + 2) * TURNS + 0.5 * (grid & 1))) % TURNS
    i = int(np.floor(x / cell + 0.5 * ((grid >> 1) & 1))) + SHIFTS // 2
    j = int(np.floor(y / cell + 0.5 * ((grid >> 2) & 1))) + SHIFTS // 2
    i, j = min(max(i, 0), SHIFTS - 1), min(max(j, 0), SHIFTS - 1)
    return ((grid * TURNS + r) * SHIFTS + i) * SHIFTS + j


@kernel
def verify(left, right, tries, poses, offsets, corners, corner_offsets, near, turned, slack, rounds, out):
    """Lay print left[i] on right[i] as the best of tries[i] says, improve that, and count what agrees.

    A try is a number of votes (0: there is no further try), a rotation, x and y. The best is the one where most
    minutiae agree. out[i] becomes: pairs of minutiae that agree, minutiae of the left print where the right one has
    some, the reverse, rotation, x, y. Minutiae agree within `near` and `turned`, one with one, the nearest first. A
    print reaches as far as the polygon around its minutiae, `slack` included.
    """
    for i in range(left.size):
        a0, a1 = offsets[left[i]], offsets[left[i] + 1]
        b0, b1 = offsets[right[i]], offsets[right[i] + 1]
        a, b = poses[a0:a1], poses[b0:b1]
        moved = np.empty((a1 - a0, 3))
        partner = np.empty(a1 - a0, np.int64)
        best = -1
        rotation, x, y = tries[i, 0, 1], tries[i, 0, 2], tries[i, 0, 3]
        for k in range(tries.shape[1]):
            if tries[i, k, 0] == 0 or tries.shape[1] == 1:
                continue
            move(a, tries[i, k, 1], tries[i, k, 2], tries[i, k, 3], moved)
            count = partners(moved, b, near, turned, partner)
            if count > best:
                best = count
                rotation, x, y = tries[i, k, 1], tries[i, k, 2], tries[i, k, 3]
        best = -1
        for _ in range(rounds + 1):
            move(a, rotation, x, y, moved)
            count = partners(moved, b, near, turned, partner)
            if count < best:
                break
            best = count
            out[i, 0] = count
            out[i, 3], out[i, 4], out[i, 5] = wrapped(rotation), x, y
            if count < 2:
                break
            rotation, x, y = fitted(a, b, partner, near / turned)
        move(a, out[i, 3], out[i, 4], out[i, 5], moved)
        c0, c1 = corner_offsets[right[i]], corner_offsets[right[i] + 1]
        out[i, 1] = max(best, within(moved, corners[c0:c1], slack))
        c0, c1 = corner_offsets[left[i]], corner_offsets[left[i] + 1]
        polygon = np.empty((c1 - c0, 2))
        cosine, sine = np.cos(out[i, 3]), np.sin(out[i, 3])
        for c in range(c1 - c0):
            u, v = corners[c0 + c, 0], corners[c0 + c, 1]
            polygon[c, 0] = cosine * u - sine * v + out[i, 4]
            polygon[c, 1] = sine * u + cosine * v + out[i, 5]
        out[i, 2] = max(best, within(b, polygon, slack))


@inner
def move(a, rotation, x, y, out):
    """Turn minutiae about the centre of their print and shift them."""
    cosine, sine = np.cos(rotation), np.sin(rotation)
    for m in range(len(a)):
        out[m, 0] = cosine * a[m, 0] - sine * a[m, 1] + x
        out[m, 1] = sine * a[m, 0] + cosine * a[m, 1] + y
        out[m, 2] = a[m, 2] + rotation


@making
def partners(moved, b, near, turned, partner):
    """Pair minutiae that agree, one with one, the best agreement first; return how many pairs there are."""
    partner[:] = -1
    far = np.empty(moved.shape[0] * b.shape[0])
    which = np.empty(far.size, np.int64)
    some = np.int64(0)
    for m in range(moved.shape[0]):
        for o in range(b.shape[0]):
            dx, dy = moved[m, 0] - b[o, 0], moved[m, 1] - b[o, 1]
            square = dx * dx + dy * dy
            if square > near * near:
                continue
            angle = abs(wrapped(moved[m, 2] - b[o, 2]))
            if angle > turned:
                continue
            far[some] = square / (near * near) + (angle / turned) ** 2
            which[some] = m * b.shape[0] + o
            some += 1
    taken = np.zeros(b.shape[0], np.bool_)
    count = 0
    sort_pairs(far, which, some, some)
    for place in range(some):
        m, o = which[place] // b.shape[0], which[place] % b.shape[0]
        if partner[m] < 0 and not taken[o]:
            partner[m] = o
            taken[o] = True
            count += 1
    return count


@inner
def fitted(a, b, partner, arm):
    """Return the rotation and shift that bring partners together best; directions count as points at arm's length."""
    n = 0
    ax, ay, bx, by = 0.0, 0.0, 0.0, 0.0
    for m in range(a.shape[0]):
        if partner[m] >= 0:
            n += 1
            ax += a[m, 0]
            ay += a[m, 1]
            bx += b[partner[m], 0]
            by += b[partner[m], 1]
    ax, ay, bx, by = ax / n, ay / n, bx / n, by / n
    cosine, sine = 0.0, 0.0
    for m in range(a.shape[0]):
        if partner[m] >= 0:
            o = partner[m]
            x, y, u, v = a[m, 0] - ax, a[m, 1] - ay, b[o, 0] - bx, b[o, 1] - by
            cosine += x * u + y * v + arm * arm * np.cos(b[o, 2] - a[m, 2])
            sine += x * v - y * u + arm * arm * np.sin(b[o, 2] - a[m, 2])
    rotation = np.arctan2(sine, cosine)
    cosine, sine = np.cos(rotation), np.sin(rotation)
    return rotation, bx - cosine * ax + sine * ay, by - sine * ax - cosine * ay


@inner
def within(points, polygon, slack):
    """Count the points in a convex polygon, or no farther than `slack` beyond any of its sides."""
    count = 0
    n = polygon.shape[0]
    for m in range(points.shape[0]):
        inside = True
        for c in range(n):
            x0, y0 = polygon[c, 0], polygon[c, 1]
            dx, dy = polygon[(c + 1) % n, 0] - x0, polygon[(c + 1) % n, 1] - y0
            length = np.sqrt(dx * dx + dy * dy)
            if length == 0:
                if (points[m, 0] - x0) ** 2 + (points[m, 1] - y0) ** 2 > slack * slack:
                    inside = False
                    break
                continue
            if (dx * (points[m, 1] - y0) - dy * (points[m, 0] - x0)) / length < -slack:
                inside = False
                break
        count += inside
    return count
