"""Content: do pages with the same path on two hosts have similar texts, and which pages are similar anyway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.mirrors.hosts import HostPairs, Paths
from likewise.apps.mirrors.reading import Reader
from likewise.apps.mirrors.settings import Settings
from likewise.base.arrays import Ints, Sets, concatenate, to_arrow
from likewise.search.verify import similarities

LEAST, SAMPLE, ALL = 5, 100, 4_000_000
"""Pages that two hosts share of which the texts are compared, at most: fewer where there are very many pairs."""


@dataclass(frozen=True)
class Confirmed:
    """For every pair of hosts, how many shared pages were compared, and how many of them are similar."""

    compared: Ints
    similar: Ints

    def fraction(self) -> NDArray[np.float64]:
        """Return the confirmed fraction of each pair; not a number where nothing was compared."""
        fraction = np.full(len(self.compared), np.nan)
        np.divide(self.similar, self.compared, fraction, where=self.compared > 0)
        return fraction


def sampled(paths: Paths, pairs: HostPairs, known: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Choose, for each pair of hosts, shared pages with known texts: the number of the pair, and both pages.

    Pages come by the hash of their path, so that many pairs of one group of mirrors choose the same pages.
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
    paths: Paths, pairs: HostPairs, reader: Reader, source: Any, columns: tuple[str, str], has_text: Ints,
    settings: Settings, threads: int, tick: Callable[[int], None],
) -> Confirmed:  # fmt: skip
    """Compare the texts of pages with the same path on two hosts; the pages are read once, few are kept."""
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
    first[order[::-1]] = np.arange(len(order))[::-1]  # of a page that is there twice, the first text counts
    left, right = first[place[left]], first[place[right]]
    full = (sets.sizes[left] > 0) | (sets.sizes[right] > 0)  # two pages without words say nothing
    number, left, right = number[full], left[full], right[full]
    order = np.argsort(left, kind="stable")
    scores = similarities(left[order], right[order], sets, settings.similar_text, threads)
    similar = np.bincount(number[order][scores >= 0], minlength=len(pairs))
    return Confirmed(np.bincount(number, minlength=len(pairs)), similar)
