"""Record linkage: the best one-to-one assignment of records."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel


@kernel
def auction(starts, columns, values, wide, step):
    """Return for each row the place of its pair in the best assignment, or -1: rows bid for columns (Bertsekas 1979).

    A row may stay alone at value 0. The total is within `step` times the number of rows of the greatest possible.
    """
    n = starts.size - 1
    price = np.zeros(wide, np.float64)
    owner = np.full(wide, -1, np.int64)
    chosen = np.full(n, -1, np.int64)
    queue = np.arange(n)
    waiting = n
    while waiting:
        waiting -= 1
        row = queue[waiting]
        best = 0.0
        second = 0.0
        place = -1
        for t in range(starts[row], starts[row + 1]):
            gain = values[t] - price[columns[t]]
            if gain > best:
                second = best
                best = gain
                place = t
            elif gain > second:
                second = gain
        if place < 0:
            continue
        column = columns[place]
        price[column] += best - second + step
        previous = owner[column]
        if previous >= 0:
            chosen[previous] = -1
            queue[waiting] = previous
            waiting += 1
        owner[column] = row
        chosen[row] = place
    return chosen
