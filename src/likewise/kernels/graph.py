"""Pairs to clusters, keepers, and the best one-to-one assignment."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

import numpy as np

from likewise.kernels import kernel


@kernel
def components(n, left, right):
    """Label every node with the lowest node of its connected component."""
    parent = np.empty(n, np.int64)
    for a in range(n):
        parent[a] = a
    for p in range(left.size):
        a, b = left[p], right[p]
        while parent[a] != a:
            parent[a] = parent[parent[a]]
            a = parent[a]
        while parent[b] != b:
            parent[b] = parent[parent[b]]
            b = parent[b]
        if a < b:
            parent[b] = a
        else:
            parent[a] = b
    for a in range(n):
        parent[a] = parent[parent[a]]
    return parent


@kernel
def keepers(order, left, right):
    """Walk the nodes in `order`; a node not removed yet is kept, and its remaining neighbours are removed.

    Return for each node the number of the pair that removed it, or -1 if it is kept. Kept nodes share no pair, and
    every removed node shares one with its keeper: the other end of the pair returned.
    """
    n = order.size
    start = np.zeros(n + 1, np.int64)
    for p in range(left.size):
        start[left[p] + 1] += 1
        start[right[p] + 1] += 1
    for i in range(n):
        start[i + 1] += start[i]
    place = start[:-1].copy()
    pair = np.empty(2 * left.size, np.int64)
    for p in range(left.size):
        pair[place[left[p]]] = p
        place[left[p]] += 1
        pair[place[right[p]]] = p
        place[right[p]] += 1
    removed_by = np.full(n, -1)
    for node in order:
        if removed_by[node] >= 0:
            continue
        for e in range(start[node], start[node + 1]):
            p = pair[e]
            other = left[p] + right[p] - node
            if removed_by[other] < 0:
                removed_by[other] = p
    return removed_by


@kernel
def absorbers(ranks, left, right, mutual):
    """Choose the nodes to keep of those that point to others: left to right. Pairs are sorted by left.

    A node that points to a kept one is removed, and no kept one points to another (a kernel of the graph). A pair that
    is not `mutual`, there in one direction only, leads to what has to be decided before; these must make no circle. Of
    the nodes for which nothing is left to wait for, the one of lowest rank is decided next: it is kept unless it points
    to a kept one. Return for each node the number of the pair that removed it, or -1 if it is kept.
    """
    n = ranks.size
    start = np.zeros(n + 1, np.int64)
    begin = np.zeros(n + 1, np.int64)
    waiting = np.zeros(n, np.int64)
    for p in range(left.size):
        start[left[p] + 1] += 1
        if not mutual[p]:
            begin[right[p] + 1] += 1
            waiting[left[p]] += 1
    for i in range(n):
        start[i + 1] += start[i]
        begin[i + 1] += begin[i]
    place = begin[:-1].copy()
    after = np.empty(begin[n], np.int64)
    for p in range(left.size):
        if not mutual[p]:
            after[place[right[p]]] = left[p]
            place[right[p]] += 1
    node_at = np.empty(n, np.int64)
    ready = [np.int64(0) for _ in range(0)]
    for node in range(n):
        node_at[ranks[node]] = node
        if waiting[node] == 0:
            ready.append(ranks[node])
    heapify(ready)
    removed_by = np.full(n, -1)
    kept = np.zeros(n, np.bool_)
    while len(ready) > 0:
        node = node_at[heappop(ready)]
        best = -1
        for p in range(start[node], start[node + 1]):
            if kept[right[p]] and (best < 0 or ranks[right[p]] < ranks[right[best]]):
                best = p
        removed_by[node] = best
        kept[node] = best < 0
        for e in range(begin[node], begin[node + 1]):
            other = after[e]
            waiting[other] -= 1
            if waiting[other] == 0:
                heappush(ready, ranks[other])
    return removed_by


@kernel
def auction(starts, columns, values, wide, step):
    """Return for each row the place of its pair in the best assignment, or -1: rows bid for columns (Bertsekas 1979).

    A row may stay alone at value 0. The total is within `step` times the number of rows of the greatest possible.
    """
    n = starts.size - 1
    price = np.zeros(wide, np.float64)
    owner, chosen = np.full(wide, -1, np.int64), np.full(n, -1, np.int64)
    queue = np.arange(n)
    waiting = n
    while waiting:
        waiting -= 1
        row = queue[waiting]
        best, second, place = 0.0, 0.0, -1
        for t in range(starts[row], starts[row + 1]):
            gain = values[t] - price[columns[t]]
            if gain > best:
                second, best, place = best, gain, t
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
        owner[column], chosen[row] = row, place
    return chosen
