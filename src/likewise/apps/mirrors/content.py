"""Confirmation by content: whether pages with the same path on two hosts have similar texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.mirrors.hosts import HostPairs, Paths
from likewise.apps.mirrors.inputs import UrlReader
from likewise.apps.mirrors.settings import MirrorSettings
from likewise.base.arrays import Ints, Sets, concatenate, to_arrow
from likewise.search.verify import similarities

SAMPLE = 100
"""Most shared pages of two hosts whose texts are compared: the standard error of the fraction is then 0.05 or less."""
ALL = 4_000_000
"""Most pages compared over all pairs of hosts; with more pairs, each has a smaller sample."""
LEAST = 5
"""Sample of a pair of hosts however many pairs there are."""


@dataclass(frozen=True)
class Confirmed:
    """For every pair of hosts, the number of shared pages compared and the number of them with similar texts."""

    compared: Ints
    similar: Ints

    def fraction(self) -> NDArray[np.float64]:
        """Return the confirmed fraction of each pair; NaN where nothing was compared."""
        fraction = np.full(len(self.compared), np.nan)
        np.divide(self.similar, self.compared, fraction, where=self.compared > 0)
        return fraction


def sampled(paths: Paths, pairs: HostPairs, known: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Choose shared pages with known texts for each pair of hosts; return the number of the pair and both pages.

    Pages are chosen by the hash of their path, so that many pairs of one cluster choose the same pages.
    """
    from likewise.kernels.urls import list_shared

    most = max(LEAST, min(SAMPLE, ALL // max(1, len(pairs))))
    parts = [np.empty((0, 3), np.int64)]
    skips = np.stack([pairs.skip_left, pairs.skip_right], axis=1)
    for skip_left, skip_right in np.unique(skips, axis=0).tolist():
        rows = np.flatnonzero((skips == (skip_left, skip_right)).all(axis=1))
        mine, theirs = paths.tails(skip_left), paths.tails(skip_right)
        out = np.empty((len(rows) * most, 3), np.int64)
        sides = (mine.values, mine.offsets, mine.pages, theirs.values, theirs.offsets, theirs.pages)
        count = list_shared(*sides, pairs.left[rows], pairs.right[rows], known, most, out)
        out[:count, 0] = rows[out[:count, 0]]
        parts.append(out[:count])
    chosen = np.concatenate(parts)
    return chosen[:, 0], chosen[:, 1], chosen[:, 2]


def confirm(
    paths: Paths, pairs: HostPairs, reader: UrlReader, source: Any, columns: tuple[str, str], has_text: Ints,
    settings: MirrorSettings, threads: int, tick: Callable[[int], None],
) -> Confirmed:  # fmt: skip
    """Compare the texts of pages with the same path on two hosts; texts are read once, and only the sample is kept."""
    known = np.zeros(len(paths.pages), bool)
    known[has_text[has_text >= 0]] = True
    number, left, right = sampled(paths, pairs, known)
    needed = np.unique(np.concatenate([left, right]))
    place = np.full(len(paths.pages), -1, np.int64)
    place[needed] = np.arange(len(needed))
    parts: list[Sets] = []
    rows: list[Ints] = []
    for pages, texts in reader.texts(source, *columns, tick):
        wanted = np.flatnonzero(place[pages] >= 0)
        if len(wanted):
            parts.append(settings.texts.sets(texts.take(to_arrow(wanted))))
            rows.append(place[pages[wanted]])
    sets, order = concatenate(parts), np.concatenate([np.zeros(0, np.int64), *rows])
    first = np.full(len(needed), -1, np.int64)
    first[order[::-1]] = np.arange(len(order))[::-1]  # the first text of a page that occurs twice
    left, right = first[place[left]], first[place[right]]
    there = (left >= 0) & (right >= 0)  # a damaged file may have lost a text since it was counted
    number, left, right = number[there], left[there], right[there]
    full = (sets.sizes[left] > 0) | (sets.sizes[right] > 0)  # two pages without words are no evidence
    number, left, right = number[full], left[full], right[full]
    order = np.argsort(left, kind="stable")
    scores = similarities(left[order], right[order], sets, settings.similar_text, threads)
    similar = np.bincount(number[order][scores >= 0], minlength=len(pairs))
    return Confirmed(np.bincount(number, minlength=len(pairs)), similar)
