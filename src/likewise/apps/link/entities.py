"""Clusters of records that are one entity, and the record of each cluster to keep."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.fields import Floats
from likewise.base.arrays import Ints
from likewise.kernels.graph import components

CLIP = 6.0
"""Scores are clipped this far from the threshold, so that one pair does not outweigh many."""

ABSENT = -3.0
"""Score, relative to the threshold, of a pair of one cluster that was not compared: a match would be a candidate."""


LARGE = 1_000
"""Records that matches connect, directly or not, from which on average linkage, quadratic in the worst case, gives way
to clusters around the record with most matches."""


MOST_ABSENT = 1_000_000
"""Pairs that were no candidates and are compared to form clusters, over all clusters, the smallest ones first."""

Score = Callable[[Ints, Ints], Floats]
"""Compares pairs of records, the lower number first, and returns their scores."""


def cluster(
    records: int, left: Ints, right: Ints, scores: Floats, threshold: float = 0.0, score: Score | None = None
) -> Ints:
    """Return the cluster of every record, as the number of its first record: average linkage of the scores.

    Two clusters are merged, best first, while the pairs between them score above the threshold on average, so that one
    false match does not join two entities. Pairs that were not compared are now, by `score`, as frequent values do not
    make candidates; without it, or beyond MOST_ABSENT of them, they count as `ABSENT`. Where matches connect more than
    LARGE records, each cluster is a record and its direct matches.

    >>> cluster(4, np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5.0, 1.0, -4.0])).tolist()
    [0, 0, 2, 3]
    """
    value = np.clip(scores - threshold, -CLIP, CLIP)
    joined = value > 0
    labels = np.asarray(components(records, left[joined], right[joined]))
    sizes = np.bincount(labels, minlength=records)
    held = np.bincount(labels[left[joined]], minlength=records)
    doubtful = (sizes > 2) & (held < sizes * (sizes - 1) // 2)
    inside = np.flatnonzero((labels[left] == labels[right]) & doubtful[labels[left]])
    left, right, value = left[inside], right[inside], value[inside]
    if score is not None:
        more = _absent(labels, doubtful, left, right)
        left, right = np.concatenate([left, more // records]), np.concatenate([right, more % records])
        value = np.append(value, np.clip(score(more // records, more % records) - threshold, -CLIP, CLIP))
    order = np.argsort(labels[left], kind="stable")
    home = labels[left[order]]
    borders = np.flatnonzero(np.append(True, home[1:] != home[:-1])) if len(home) else np.zeros(0, np.int64)
    for start, stop in zip(borders, np.append(borders, len(home))[1:], strict=True):
        part = order[start:stop]
        nodes, ends = np.unique(np.concatenate([left[part], right[part]]), return_inverse=True)
        half = len(part)
        link = _average_linkage if len(nodes) <= LARGE else _by_centres
        labels[nodes] = nodes[link(len(nodes), ends[:half], ends[half:], value[part])]
    return labels


def _absent(labels: Ints, doubtful: NDArray[np.bool_], left: Ints, right: Ints) -> Ints:
    """Return the pairs of doubtful components that are not among the given ones, as left · records + right."""
    records = len(labels)
    sizes = np.bincount(labels, minlength=records)
    lacking = sizes * (sizes - 1) // 2 - np.bincount(labels[left], minlength=records)
    chosen = np.flatnonzero(doubtful & (lacking > 0) & (sizes <= LARGE))
    chosen = chosen[np.lexsort((chosen, sizes[chosen]))]
    chosen = chosen[np.cumsum(lacking[chosen]) <= MOST_ABSENT]
    members = np.argsort(labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    every = [np.zeros(0, np.int64)]
    for home in chosen.tolist():
        nodes = members[starts[home] : starts[home] + sizes[home]]
        one, other = np.triu_indices(len(nodes), 1)
        every.append(nodes[one] * records + nodes[other])
    return np.setdiff1d(np.concatenate(every), left * records + right)


def _by_centres(n: int, left: Ints, right: Ints, value: Floats) -> Ints:
    """Return for each node the first node of its cluster: the node with most matches takes those not yet taken.

    >>> _by_centres(5, np.array([0, 1, 1, 3]), np.array([1, 2, 3, 4]), np.array([1.0, 1, 1, 1])).tolist()
    [0, 0, 0, 0, 4]
    """
    match = value > 0
    ends, others = np.concatenate([left[match], right[match]]), np.concatenate([right[match], left[match]])
    order = np.argsort(ends, kind="stable")
    others = others[order]
    starts = np.searchsorted(ends[order], np.arange(n + 1))
    labels = np.full(n, -1, np.int64)
    for node in np.argsort(-np.diff(starts), kind="stable").tolist():
        if labels[node] < 0:
            near = others[starts[node] : starts[node + 1]]
            members = np.append(near[labels[near] < 0], node)
            labels[members] = members.min()
    return labels


def _average_linkage(n: int, left: Ints, right: Ints, value: Floats) -> Ints:
    near: list[dict[int, tuple[float, int]]] = [{} for _ in range(n)]
    for a, b, score in zip(left.tolist(), right.tolist(), value.tolist(), strict=True):
        near[a][b] = near[b][a] = (score, 1)
    members = [[node] for node in range(n)]
    version = [0] * n
    heap = [(-s, a, b, 0, 0) for a, b, s in zip(left.tolist(), right.tolist(), value.tolist(), strict=True) if s > 0]
    heapq.heapify(heap)
    while heap:
        _, a, b, seen_a, seen_b = heapq.heappop(heap)
        if version[a] != seen_a or version[b] != seen_b:
            continue
        if len(near[a]) < len(near[b]):
            a, b = b, a
        version[a] += 1
        version[b] = -1
        del near[a][b], near[b][a]
        for other, (score, pairs) in near[b].items():
            more, count = near[a].get(other, (0.0, 0))
            near[a][other] = near[other][a] = (score + more, pairs + count)
            del near[other][b]
        members[a] += members[b]
        members[b], near[b] = [], {}
        for other, (score, pairs) in near[a].items():
            whole = len(members[a]) * len(members[other])
            mean = (score + ABSENT * (whole - pairs)) / whole
            if mean > 0:
                heapq.heappush(heap, (-mean, a, other, version[a], version[other]))
    labels = np.empty(n, np.int64)
    for group in members:
        if group:
            labels[group] = min(group)
    return labels


def keepers(labels: Ints, completeness: Ints) -> Ints:
    """Return the keeper of every record's cluster: the record with the most values, the first one if several have them.

    >>> keepers(np.array([0, 0, 2]), np.array([3, 5, 1])).tolist()
    [1, 1, 2]
    """
    order = np.lexsort((np.arange(len(labels)), -completeness, labels))
    first = np.append(True, labels[order][1:] != labels[order][:-1]) if len(order) else np.zeros(0, bool)
    keeper = np.empty(len(labels), np.int64)
    keeper[labels[order[first]]] = order[first]
    return keeper[labels]
