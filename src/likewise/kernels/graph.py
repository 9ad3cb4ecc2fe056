"""Pairs to clusters and keepers."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel


@kernel
def components(n, left, right):
    """Label every node with the lowest node of its connected component."""
    parent = np.empty(n, np.int64)
    for a in range(n):
        parent[a] = a
    for p in range(left.size):
        a = left[p]
        b = right[p]
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
