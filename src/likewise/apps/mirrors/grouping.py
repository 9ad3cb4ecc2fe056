"""Pairs of hosts to groups of mirrors, and the pages that are one because their hosts are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from likewise.apps.mirrors.addresses import Pages
from likewise.apps.mirrors.hosts import HostPair, Paths, hashed_paths
from likewise.arrays import Hashes, Ints, to_arrow
from likewise.kernels import graph


@dataclass(frozen=True)
class HostGroups:
    """For every host the lowest host of its group, the keeper of the group, and folders above what the group shares."""

    of: Ints
    keeper: Ints
    skip: Ints

    @classmethod
    def of_pairs(cls, hosts: int, pairs: list[HostPair], pages: Ints) -> HostGroups:
        """Join mirrors to groups; the keeper is the host with the most pages, of several the first in the list."""
        left = np.array([pair.a for pair in pairs], np.int64)
        right = np.array([pair.b for pair in pairs], np.int64)
        of = graph.components(hosts, left, right)
        order = np.lexsort((np.arange(hosts), -pages, of))
        keeper = np.empty(hosts, np.int64)
        new = np.concatenate([[True], of[order][1:] != of[order][:-1]]) if hosts else np.zeros(0, bool)
        keeper[of[order[new]]] = order[new]
        return cls(of, keeper[of], _skips(hosts, pairs, of))

    def keys(self, pages: Pages, paths: Paths) -> Hashes:
        """Return a number for each page: pages of one group with the same path, or of one host, have the same."""
        from likewise.kernels.hashing import mix_all

        keys = np.empty(len(pages), np.uint64)
        depth = self.skip[pages.host]
        for skip in np.unique(depth).tolist():
            rows = np.flatnonzero(depth == skip)
            tails, tops = hashed_paths(pages, rows, skip)
            if skip:
                own = np.array([self._top(paths, host, skip) for host in range(len(self.of))], np.uint64)
                away = np.flatnonzero(tops != own[pages.host[rows]])
                tails[away] = hashed_paths(pages, rows[away], 0)[0] ^ pages.host[rows[away]].astype(np.uint64) + 1
            keys[rows] = tails
        group = np.empty(len(pages), np.uint64)
        mix_all(self.of[pages.host].astype(np.uint64), np.uint64(0x8EBC6AF09C88C6E3), group)
        return keys ^ group

    def _top(self, paths: Paths, host: int, skip: int) -> int:
        if self.skip[host] != skip:
            return 0
        tops = paths.tails(host, skip)[1]
        return int(tops[0]) if len(tops) else 0


def _skips(hosts: int, pairs: list[HostPair], of: Ints) -> Ints:
    """Return for each host how many folders stand above what its group shares, from what each pair has found."""
    skip = np.zeros(hosts, np.int64)
    if not any(pair.skip_a or pair.skip_b for pair in pairs):
        return skip
    near: dict[int, list[tuple[int, int]]] = {}
    for pair in sorted(pairs, key=lambda one: -one.shared):
        near.setdefault(pair.a, []).append((pair.b, pair.skip_b - pair.skip_a))
        near.setdefault(pair.b, []).append((pair.a, pair.skip_a - pair.skip_b))
    seen: set[int] = set()
    for start in sorted(near):
        if start in seen:
            continue
        seen.add(start)
        group, at = [start], 0
        while at < len(group):
            for other, more in near[group[at]]:
                if other not in seen:
                    seen.add(other)
                    skip[other] = skip[group[at]] + more
                    group.append(other)
            at += 1
        skip[group] -= skip[group].min()
    return skip


def mirror_table(groups: HostGroups, pages: Pages, paths: Paths, counts: Ints) -> pa.Table:
    """List the hosts that have mirrors, by group, the keeper first."""
    hosts = len(groups.of)
    sizes = np.bincount(groups.of, minlength=hosts)
    listed = np.flatnonzero(sizes[groups.of] > 1)
    listed = listed[np.lexsort((listed, groups.keeper[listed] != listed, groups.of[listed]))]
    of = groups.of[listed]
    number = np.cumsum(np.concatenate([[False], of[1:] != of[:-1]])) if len(of) else of
    tops = [paths.top(host, int(groups.skip[host])) for host in listed.tolist()]
    return pa.table(
        {
            "host": pages.hosts.take(listed),
            "group": to_arrow(number.astype(np.int64)),
            "keeper": pages.hosts.take(groups.keeper[listed]),
            "pages": to_arrow(counts[listed]),
            "top": pa.array(tops, pa.large_string()),
            "size": to_arrow(sizes[of].astype(np.int64)),
        }
    )


def pair_table(pairs: list[HostPair], pages: Pages, paths: Paths, counts: Ints) -> dict[str, pa.Array]:
    """Return the columns that tell of pairs of hosts."""
    left = np.array([pair.a for pair in pairs], np.int64)
    right = np.array([pair.b for pair in pairs], np.int64)
    return {
        "host_a": pages.hosts.take(left),
        "host_b": pages.hosts.take(right),
        "similarity": to_arrow(np.array([pair.similarity for pair in pairs], np.float64)),
        "pages_a": to_arrow(counts[left]),
        "pages_b": to_arrow(counts[right]),
        "shared_paths": to_arrow(np.array([pair.shared for pair in pairs], np.int64)),
        "top_a": pa.array([paths.top(pair.a, pair.skip_a) for pair in pairs], pa.large_string()),
        "top_b": pa.array([paths.top(pair.b, pair.skip_b) for pair in pairs], pa.large_string()),
    }
