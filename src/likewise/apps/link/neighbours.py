"""Neighbours inside each of two tables: what pairs look like that are alike and yet no matches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from likewise.apps.link.blocking import block
from likewise.apps.link.mutual_best import ChancePartners
from likewise.apps.link.records import RecordTable
from likewise.base.arrays import Ints

SAMPLE = 4_000
"""Records of each table whose neighbours are searched, among themselves: enough for rates that err by a percent."""


def neighbours(records: RecordTable, seed: int, threads: int) -> ChancePartners:
    """Return pairs of neighbours inside each table, found as candidates are."""
    lefts, rights = [], []
    for start, stop in ((0, records.border), (records.border, records.count)):
        rows = _some(start, stop, seed)
        inside = []
        for one in records.fields:
            codes = one.codes[rows]
            counts = np.bincount(codes[codes >= 0], minlength=len(one.texts)).astype(np.int64)
            inside.append(replace(one, codes=codes, counts=counts))
        pairs, _ = block(inside, 0, seed, threads)
        lefts.append(rows[pairs.left])
        rights.append(rows[pairs.right])
    return ChancePartners(np.concatenate(lefts), np.concatenate(rights), records.border, records.count, seed)


def _some(start: int, stop: int, seed: int) -> Ints:
    if stop - start <= SAMPLE:
        return np.arange(start, stop)
    return np.sort(np.random.default_rng(seed).choice(stop - start, SAMPLE, replace=False)) + start
