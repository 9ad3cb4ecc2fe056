"""Record linkage: the nearest records by the weights of shared terms."""

from __future__ import annotations

import numpy as np

from likewise.kernels import inner, kernel


@inner
def cut_of(scores, n, size):
    """Return the score of the last of the `size` best of the first n scores."""
    heap = np.full(size, -1.0)
    for t in range(n):
        s = scores[t]
        if s > heap[0]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= size:
                    break
                if child + 1 < size and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= s:
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = s
    return heap[0]


@kernel
def nearest(
    rows, row_offsets, row_terms, row_weights, starts, posted, posted_weights, size, first, k, cap, enough, visits
):
    """Return pairs (row, other) of each row and the records nearest to it by the products of shared terms' weights.

    These are the k best, and all from `enough` up to `cap`. Terms are numbered from the rarest on, and no more than
    `visits` records are looked at for a row. `first` is added to a posted number to make it a record's number; a record
    is not paired with itself. The pairs have room for all from the start: arrays that are replaced inside the loop
    would make all of it several times slower.
    """
    scores = np.zeros(size, np.float64)
    touched = np.empty(size, np.int64)
    reached = np.empty(size, np.float64)
    left = np.empty(rows.size * min(size, cap + k), np.int64)
    right = np.empty(rows.size * min(size, cap + k), np.int64)
    count = 0
    for r in range(rows.size):
        row = rows[r]
        n = np.int64(0)
        seen = 0
        for t in range(row_offsets[row], row_offsets[row + 1]):
            term = row_terms[t]
            length = starts[term + 1] - starts[term]
            if seen and seen + length > visits:
                break
            seen += length
            weight = row_weights[t]
            for p in range(starts[term], starts[term + 1]):
                other = posted[p]
                s = scores[other]
                if s == 0.0:
                    touched[n] = other
                    n += 1
                scores[other] = s + weight * posted_weights[p]
        others = 0
        plenty = 0
        for t in range(n):
            other = touched[t]
            s = scores[other]
            scores[other] = 0.0
            if other + first != row:
                touched[others] = other
                reached[others] = s
                others += 1
                plenty += s >= enough
        if others:
            cut = cut_of(reached, others, min(max(k, min(plenty, cap)), others))
            taken = 0
            for t in range(others):
                if reached[t] >= cut and taken < cap + k:
                    left[count] = row
                    right[count] = touched[t] + first
                    count += 1
                    taken += 1
    return left[:count], right[:count]
