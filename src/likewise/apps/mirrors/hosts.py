"""Hosts as sets of positional bigrams, candidate pairs of them, and the paths that two hosts share (S4, A3)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from likewise.apps.mirrors.addresses import Pages
from likewise.apps.mirrors.settings import Settings
from likewise.arrays import Hashes, Ints, Sets, concatenate
from likewise.pipeline import pairs as similar_pairs
from likewise.record import Record

DEEPEST = 3
"""Folders that one mirror may have above the other's pages."""
BATCH = 1 << 20


@dataclass(frozen=True)
class HostPair:
    """Two hosts, a before b, how similar they are, and what they share.

    skip_a, skip_b: folders that stand above the shared paths on each; shared: paths, without those folders.
    """

    a: int
    b: int
    similarity: float
    shared: int
    skip_a: int = 0
    skip_b: int = 0


class Paths:
    """The paths of each host's pages, as hashes, without the first folders or with them."""

    def __init__(self, pages: Pages, listed: Ints, settings: Settings) -> None:
        from likewise.kernels.urls import count_tokens

        chunk = pages.urls.chunk()
        tokens = np.empty(len(listed), np.int64)
        count_tokens(chunk.data, chunk.offsets, pages.path, settings.urls.stop_table(), listed, tokens)
        self.pages = pages
        self.order, self.begins = pages.by_host(listed[tokens > 0])
        self.sizes = np.diff(self.begins)
        self._known: dict[tuple[int, int], tuple[Hashes, Hashes, Ints]] = {}

    def of(self, host: int) -> Ints:
        """Return the pages of a host."""
        return self.order[self.begins[host] : self.begins[host + 1]]

    def tails(self, host: int, skip: int) -> tuple[Hashes, Hashes, Ints]:
        """Return the different paths of a host without `skip` folders, ascending, those folders, and the pages."""
        if (host, skip) not in self._known:
            rows = self.of(host)
            tails, tops = hashed_paths(self.pages, rows, skip)
            values, places = np.unique(tails, return_index=True)
            if skip:
                good = tails != 0
                tops_there, counts = np.unique(tops[good], return_counts=True)
                if len(counts):  # the folder above must be one and the same
                    keep = (tops == tops_there[counts.argmax()]) & good
                    values, places = np.unique(tails[keep], return_index=True)
                    rows = rows[keep]
                    tops = tops[keep]
            self._known[host, skip] = values, tops[places], rows[places]
        return self._known[host, skip]

    def match(self, a: int, b: int, similarity: float, least: int) -> HostPair:
        """Find what two hosts share: first as the paths are, then without up to three folders on either side."""
        from likewise.kernels.urls import shared_sorted

        best = HostPair(a, b, similarity, 0)
        few = min(self.sizes[a], self.sizes[b])
        for skip_a, skip_b in SKIPS:
            shared = int(shared_sorted(self.tails(a, skip_a)[0], self.tails(b, skip_b)[0]))
            if shared > best.shared:
                best = HostPair(a, b, similarity, shared, skip_a, skip_b)
            if best.shared >= max(least, few / 4):
                break
        return best

    def common(self, pair: HostPair) -> tuple[Ints, Ints]:
        """Return the pages of both hosts that have the same path, ordered by its hash."""
        mine, theirs = self.tails(pair.a, pair.skip_a), self.tails(pair.b, pair.skip_b)
        _, left, right = np.intersect1d(mine[0], theirs[0], assume_unique=True, return_indices=True)
        return mine[2][left], theirs[2][right]

    def top(self, host: int, skip: int) -> str:
        """Return the folders above the shared paths of a host, as text."""
        rows = self.tails(host, skip)[2]
        if not skip or not len(rows):
            return ""
        url = self.pages.urls.text(int(rows[0]))
        path = url[int(self.pages.path[rows[0]] - self.pages.urls.offsets[rows[0]]) :]
        return "/".join(path.split("/")[: skip + 1])


SKIPS = sorted(product(range(DEEPEST + 1), repeat=2), key=lambda skips: (sum(skips), max(skips), skips))


def hashed_paths(pages: Pages, rows: Ints, skip: int) -> tuple[Hashes, Hashes]:
    """Hash the paths of these pages without `skip` folders, and those folders; 0 where there are not so many."""
    from likewise.kernels.urls import path_hashes

    chunk = pages.urls.chunk()
    tails, tops = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
    path_hashes(chunk.data, chunk.offsets, pages.path, np.ascontiguousarray(rows), skip, tails, tops)
    return tails, tops


def host_sets(paths: Paths, hosts: Ints, settings: Settings) -> Sets:
    """Return each host as the set of the positional bigrams of its paths; many pages at a time, not all."""
    chunk, shingler = paths.pages.urls.chunk(), settings.urls
    parts, begin = [], 0
    totals = np.concatenate([[0], np.cumsum(paths.sizes[hosts])])
    while begin < len(hosts):
        end = max(begin + 1, int(np.searchsorted(totals, totals[begin] + BATCH, side="right")) - 1)
        rows = np.concatenate([paths.of(int(host)) for host in hosts[begin:end]])
        parts.append(shingler.united(chunk, rows, (totals[begin + 1 : end + 1] - totals[begin]).astype(np.int64)))
        begin = end
    return concatenate(parts)


def host_pairs(paths: Paths, settings: Settings, record: Record, **search: Any) -> list[HostPair]:
    """Find the pairs of hosts that are similar as sets, and what they share; those that share little are left out."""
    hosts = np.flatnonzero(paths.sizes >= settings.least)
    record.counts["hosts_compared"] = len(hosts)
    with record.stage("sets"):
        sets = host_sets(paths, hosts, settings)
    if len(hosts) < 2:
        return []
    with record.stage("join"):
        found = similar_pairs(sets, threshold=settings.threshold, recall=settings.recall, **search)
    stats = json.loads(found.schema.metadata[b"likewise"])
    if "abridged" in stats:
        record.notes["abridged"] = stats["abridged"]
    record.counts["candidates"] = len(found)
    left, right = (hosts[found[name].to_numpy()] for name in ("id_a", "id_b"))
    with record.stage("verify", len(found)) as tick:
        pairs = []
        for a, b, similarity in zip(left.tolist(), right.tolist(), found["similarity"].to_pylist(), strict=True):
            pairs.append(paths.match(min(a, b), max(a, b), similarity, settings.least))
            tick(1)
    return [pair for pair in pairs if pair.shared >= settings.least]
