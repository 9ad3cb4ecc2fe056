"""How good is a tool's answer? Recall and precision against the exact truth.

A pair of documents stands for the pair of their sets, so that copies do not count many times over: recall and
precision are shares of pairs of distinct sets. Copies (documents with the same set) are scored apart: the share of
pairs of copies that ended up in one cluster. Pairs of two documents without words are nobody's business. Of a tool that
only says of a document that a similar one came before, recall and precision are shares of documents, and those of
copies are among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from truth import Integers, Truth


@dataclass(frozen=True)
class Score:
    """Shares between 0 and 1, and the number of pairs of distinct sets a tool named."""

    recall: float
    precision: float
    copies: float
    pairs: int


def score(truth: Truth, folder: Path) -> Score:
    """Score the pairs in a folder; the clusters where there are only these."""
    pairs_file, clusters_file = folder / "pairs.parquet", folder / "clusters.parquet"
    rows = len(truth.sets)
    if (folder / "flags.parquet").exists():
        return _of_flags(truth, pq.read_table(folder / "flags.parquet").column("row").to_numpy())
    if clusters_file.exists():
        table = pq.read_table(clusters_file)
        clusters = np.arange(rows, rows * 2)
        clusters[table.column("row").to_numpy()] = table.column("cluster").to_numpy()
    if pairs_file.exists():
        table = pq.read_table(pairs_file)
        i, j = table.column("i").to_numpy(), table.column("j").to_numpy()
        found = _distinct_pairs(truth.sets[i], truth.sets[j])
        if not clusters_file.exists():
            clusters = components(i, j, rows)
    else:
        found = _pairs_inside(clusters, truth.sets)
    true = _keys(truth.first, truth.second)
    hits = len(np.intersect1d(found, true, assume_unique=True))
    return Score(
        recall=hits / len(true) if len(true) else 1.0,
        precision=hits / len(found) if len(found) else 1.0,
        copies=_copies_together(truth.sets, clusters),
        pairs=len(found),
    )


def _of_flags(truth: Truth, flagged: Integers) -> Score:
    """Score the documents of which a tool says that a similar one came before."""
    wordy = np.flatnonzero(truth.sets >= 0)
    _, first = np.unique(truth.sets[wordy], return_index=True)
    begin = np.full(int(truth.sets.max(initial=-1)) + 1, len(truth.sets))
    begin[truth.sets[wordy[first]]] = wordy[first]
    earliest = begin.copy()
    np.minimum.at(earliest, truth.first, begin[truth.second])
    np.minimum.at(earliest, truth.second, begin[truth.first])
    true = wordy[earliest[truth.sets[wordy]] < wordy]
    copies = wordy[begin[truth.sets[wordy]] < wordy]
    hits = len(np.intersect1d(true, flagged))
    shares = (len(np.intersect1d(copies, flagged)), len(copies))
    return Score(
        recall=hits / len(true) if len(true) else 1.0,
        precision=hits / len(flagged) if len(flagged) else 1.0,
        copies=shares[0] / shares[1] if shares[1] else 1.0,
        pairs=len(flagged),
    )


def components(i: Integers, j: Integers, rows: int) -> Integers:
    """The smallest row each row is connected with."""
    label = np.arange(rows)
    while True:
        low = np.minimum(label[i], label[j])
        before = label.copy()
        np.minimum.at(label, i, low)
        np.minimum.at(label, j, low)
        label = label[label]
        if np.array_equal(label, before):
            return label


def _keys(first: Integers, second: Integers) -> Integers:
    """One number for each pair of sets; -1, no words, becomes 0."""
    keys: Integers = (np.minimum(first, second) + 1) << 32 | (np.maximum(first, second) + 1)
    return keys


def _distinct_pairs(first: Integers, second: Integers) -> Integers:
    different = first != second
    return np.unique(_keys(first[different], second[different]))


def _pairs_inside(clusters: Integers, sets: Integers) -> Integers:
    """All pairs of distinct sets inside the same cluster."""
    order = np.lexsort((sets, clusters))
    starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    parts = [np.empty(0, np.int64)]
    for members in np.split(sets[order], starts[1:]):
        distinct = np.unique(members)
        if len(distinct) > 1:
            first, second = np.triu_indices(len(distinct), 1)
            parts.append(_keys(distinct[first], distinct[second]))
    return np.unique(np.concatenate(parts))


def _copies_together(sets: Integers, clusters: Integers) -> float:
    words = sets >= 0
    _, copies = np.unique(sets[words], return_counts=True)
    _, together = np.unique(np.stack((sets[words], clusters[words])), axis=1, return_counts=True)
    pairs = int((copies * (copies - 1) // 2).sum())
    return int((together * (together - 1) // 2).sum()) / pairs if pairs else 1.0
