"""Entities: clusters of records, and the pairs that are listed of each."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.fields import Floats
from likewise.apps.link.scored_records import ScoredRecords
from likewise.apps.link.scoring import Scorer
from likewise.base.arrays import Ints
from likewise.kernels.graph import components
from likewise.kernels.linking import two_best

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
    records: int,
    left: Ints,
    right: Ints,
    scores: Floats,
    threshold: float = 0.0,
    score: Score | None = None,
    entities: Ints | None = None,
) -> Ints:
    """Return the cluster of every record, as the number of its first record: average linkage of the scores.

    Two clusters are merged, best first, while the pairs between them score above the threshold on average, so that one
    false match does not join two entities. Pairs that were not compared are now, by `score`, as frequent values do not
    make candidates; without it, or beyond MOST_ABSENT of them, they count as `ABSENT`. Where matches connect more than
    LARGE records, each cluster is a record and its direct matches.

    entities: the first record of the entity of each, if that is known of some: these are clusters from the beginning,
    and are not taken apart.

    >>> left, right, scores = np.array([0, 0, 1]), np.array([1, 2, 2]), np.array([5.0, 1.0, -4.0])
    >>> cluster(4, left, right, scores).tolist()
    [0, 0, 2, 3]
    >>> cluster(4, left, right, scores, entities=np.array([0, 1, 0, 3])).tolist()
    [0, 0, 0, 3]
    """
    home = np.arange(records) if entities is None else entities
    if entities is not None:
        apart = np.flatnonzero(home[left] != home[right])
        left, right, scores = left[apart], right[apart], scores[apart]
    joined = scores > threshold
    labels = np.asarray(components(records, home[left[joined]], home[right[joined]]))[home]
    sizes = np.bincount(labels, minlength=records)
    held = np.bincount(labels[left[joined]], minlength=records)
    members = np.bincount(home, minlength=records)
    settled = np.bincount(labels, members * (members - 1) // 2, records)
    doubtful = (sizes > 2) & (held < sizes * (sizes - 1) // 2 - settled)
    inside = np.flatnonzero(doubtful[labels][left])
    inside = inside[labels[left[inside]] == labels[right[inside]]]
    left, right, value = left[inside], right[inside], np.clip(scores[inside] - threshold, -CLIP, CLIP)
    if score is not None:
        more = _absent(labels, doubtful, left, right, home)
        left, right = np.concatenate([left, more // records]), np.concatenate([right, more % records])
        value = np.append(value, np.clip(score(more // records, more % records) - threshold, -CLIP, CLIP))
    order = np.argsort(labels[left], kind="stable")
    part_of = labels[left[order]]
    borders = np.flatnonzero(np.append(True, part_of[1:] != part_of[:-1])) if len(order) else np.zeros(0, np.int64)
    for start, stop in zip(borders, np.append(borders, len(order))[1:], strict=True):
        part = order[start:stop]
        nodes, ends = np.unique(home[np.concatenate([left[part], right[part]])], return_inverse=True)
        half, n = len(part), len(nodes)
        if n <= LARGE:
            joint = _average_linkage(ends[:half], ends[half:], value[part], members[nodes].tolist())
        else:
            joint = _by_centres(n, ends[:half], ends[half:], value[part])
        labels[nodes] = nodes[joint]
    return labels[home]


def _absent(labels: Ints, doubtful: NDArray[np.bool_], left: Ints, right: Ints, entities: Ints) -> Ints:
    """Return the pairs of doubtful components that are not among the given ones, as left · records + right.

    Pairs within one of the `entities` are left out.
    """
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
        one, other = (nodes[side] for side in np.triu_indices(len(nodes), 1))
        every.append((one * records + other)[entities[one] != entities[other]])
    return _lacking(np.concatenate(every), left * records + right)


def _lacking(wanted: Ints, known: Ints) -> Ints:
    """Return those of the wanted numbers that are not among the known ones, which ascend, in order."""
    wanted = np.sort(wanted)
    there: NDArray[np.bool_] = np.append(known, -1)[np.searchsorted(known, wanted)] == wanted
    return wanted[~there]


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


def _average_linkage(left: Ints, right: Ints, value: Floats, sizes: list[int]) -> Ints:
    """Return for each node the first node of its cluster, given pairs of their records, and how many each has."""
    n = len(sizes)
    near: list[dict[int, tuple[float, int]]] = [{} for _ in range(n)]
    for a, b, score in zip(left.tolist(), right.tolist(), value.tolist(), strict=True):
        more, count = near[a].get(b, (0.0, 0))
        near[a][b] = near[b][a] = (score + more, count + 1)
    members, sizes = [[node] for node in range(n)], list(sizes)
    version = [0] * n

    def mean(a: int, b: int) -> float:
        score, pairs = near[a][b]
        whole = sizes[a] * sizes[b]
        return (score + ABSENT * (whole - pairs)) / whole

    heap = [(-mean(a, b), a, b, 0, 0) for a in range(n) for b in near[a] if a < b and mean(a, b) > 0]
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
        sizes[a] += sizes[b]
        members[b], near[b] = [], {}
        for other in near[a]:
            if (least := mean(a, other)) > 0:
                heapq.heappush(heap, (-least, a, other, version[a], version[other]))
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
    keeper: Ints = two_best(labels, completeness.astype(np.float64), len(labels))[0]
    return keeper[labels]


MOST_LISTED, LISTED_PER_RECORD = 1_000_000, 10
"""Pairs of clusters that are always listed in full: a million, or ten per record."""


@dataclass(frozen=True)
class MatchedPairs:
    """Matches: two columns of records, their scores, probabilities (NaN: unknown), and the points of every field."""

    pairs: Ints
    scores: Floats
    probable: Floats
    points: dict[str, Floats]


def chosen_pairs(candidates: RecordPairs, scored: ScoredRecords, probable: Floats, chosen: Ints) -> MatchedPairs:
    """Return some of the candidates as matches."""
    pairs = np.stack([candidates.left[chosen], candidates.right[chosen]], axis=1)
    return MatchedPairs(pairs, scored.value[chosen], probable[chosen], scored.points(chosen))


def pairs_within(
    candidates: RecordPairs, scored: ScoredRecords, probable: Floats, scorer: Scorer, groups: Ints, since: int = 0
) -> MatchedPairs:
    """Return all pairs inside clusters, with scores; those that were no candidates are compared now.

    Pairs of two records before `since` are left out.

    All pairs are listed up to MOST_LISTED, or LISTED_PER_RECORD times the records. If there are more, those of the
    largest clusters are the pairs with one record of the cluster only, the first of those compared.
    """
    n = len(groups)
    sizes = np.bincount(groups, minlength=n)
    if since:
        listed = np.zeros(n, bool)
        listed[groups[since:]] = True
        sizes[~listed] = 0
    cap = _largest_listed(sizes[sizes > 1], max(MOST_LISTED, LISTED_PER_RECORD * n))
    same = np.flatnonzero(groups[candidates.left] == groups[candidates.right])
    home = groups[candidates.left[same]]
    same = same[(sizes[home] <= cap) | (home == candidates.left[same])]
    known = chosen_pairs(candidates, scored, probable, same)
    rows = np.flatnonzero(sizes[groups])
    order = rows[np.argsort(groups[rows], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    every = [_listed(order, starts[sizes == size], size, cap) for size in np.unique(sizes[sizes > 2]).tolist()]
    if not every:
        return known
    inside = np.concatenate(every)
    inside = inside[inside[:, 1] >= since]
    missed = _lacking(inside[:, 0] * n + inside[:, 1], known.pairs[:, 0] * n + known.pairs[:, 1])
    if not len(missed):
        return known
    others = scorer.others(missed // n, missed % n, scored)
    points = others.points(np.arange(len(missed)))
    return MatchedPairs(
        np.concatenate([known.pairs, np.stack([missed // n, missed % n], axis=1)]),
        np.concatenate([known.scores, others.value]),
        np.concatenate([known.probable, others.probable]),
        {name: np.concatenate([some, points[name]]) for name, some in known.points.items()},
    )


def _largest_listed(sizes: Ints, most: int) -> int:
    """Return the size up to which clusters are listed in full, so that there are at most about `most` pairs.

    >>> _largest_listed(np.array([2, 3, 3, 100]), most=10), _largest_listed(np.array([2, 3]), most=10)
    (3, 3)
    """
    ordered = np.sort(sizes)
    listed = np.searchsorted(np.cumsum(ordered * (ordered - 1) // 2), most, side="right")
    if listed == len(ordered):
        return int(ordered[-1]) if len(ordered) else 2
    return int(max(2, ordered[ordered < ordered[listed]].max(initial=2)))


def _listed(order: Ints, starts: Ints, size: int, cap: int) -> Ints:
    """Return the pairs inside clusters of one size, whose records are in `order` from each of the `starts` on."""
    first, second = np.triu_indices(size, 1) if size <= cap else (np.zeros(size - 1, np.int64), np.arange(1, size))
    return np.stack([order[starts[:, None] + side].ravel() for side in (first, second)], axis=1)
