"""Clusters of mirrors from pairs of hosts, and the pages that are equal because their hosts are mirrors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from likewise.apps.mirrors.addresses import Pages
from likewise.apps.mirrors.hosts import HostPairs, Paths, hashed_paths
from likewise.base.arrays import Hashes, Ints, to_arrow
from likewise.kernels import graph


@dataclass(frozen=True)
class HostGroups:
    """The keeper of every host, itself if it has no mirrors, and the number of folders above what its cluster shares.

    Each host is itself a mirror of its keeper; there are no chains.
    """

    of: Ints
    skip: Ints

    @classmethod
    def of_pairs(cls, hosts: int, pairs: HostPairs, pages: Ints, abridged: bool = False) -> HostGroups:
        """Choose as keepers the hosts with the most pages, the first in the list in case of a tie.

        abridged: of identical hosts, only the pairs with the first are listed; then hosts in the most pairs are first.
        """
        left, right = pairs.left, pairs.right
        degree = np.bincount(np.concatenate([left, right]), minlength=hosts) if abridged else np.zeros(hosts)
        by = graph.keepers(np.lexsort((np.arange(hosts), -pages, -degree)), left, right)
        gone = np.flatnonzero(by >= 0)
        pair = by[gone]
        of = np.arange(hosts)
        of[gone] = left[pair] + right[pair] - gone
        first = left[pair] == gone
        above = pairs.skip_left[pair], pairs.skip_right[pair]
        mine, theirs = np.where(first, above[0], above[1]), np.where(first, above[1], above[0])
        skip = np.zeros(hosts, np.int64)
        np.maximum.at(skip, of[gone], theirs)
        skip[gone] = mine + skip[of[gone]] - theirs
        return cls(of, skip)

    def widened(self, hosts: int) -> HostGroups:
        """Return the same clusters with more hosts, each alone."""
        more = np.arange(len(self.of), hosts)
        return HostGroups(np.concatenate([self.of, more]), np.concatenate([self.skip, np.zeros_like(more)]))

    def keys(self, pages: Pages, paths: Paths) -> Hashes:
        """Return a key for each page, equal for pages with the same path on one host or on hosts of one cluster."""
        from likewise.kernels.hashing import mix_all

        keys = np.empty(len(pages), np.uint64)
        depth = self.skip[pages.host]
        for skip in np.unique(depth).tolist():
            rows = np.flatnonzero(depth == skip)
            tails, tops = hashed_paths(pages, rows, skip)
            if skip:
                known = paths.tails(skip)
                own = np.zeros(len(self.of), np.uint64)
                filled = np.flatnonzero(np.diff(known.offsets))
                own[filled] = known.tops[known.offsets[filled]]
                away = np.flatnonzero(tops != own[pages.host[rows]])
                tails[away] = hashed_paths(pages, rows[away], 0)[0] ^ (pages.host[rows[away]].astype(np.uint64) + 1)
            keys[rows] = tails
        group = np.empty(len(pages), np.uint64)
        mix_all(self.of[pages.host].astype(np.uint64), np.uint64(0x8EBC6AF09C88C6E3), group)
        return keys ^ group


def mirror_table(groups: HostGroups, pages: Pages, paths: Paths, counts: Ints) -> pa.Table:
    """Return one row per host that has mirrors, by cluster, the keeper first."""
    sizes = np.bincount(groups.of, minlength=len(groups.of))
    listed = np.flatnonzero(sizes[groups.of] > 1)
    listed = listed[np.lexsort((listed, groups.of[listed] != listed, groups.of[listed]))]
    of = groups.of[listed]
    tops = [paths.top(host, int(groups.skip[host])) for host in listed.tolist()]
    return pa.table(
        {
            "id": pages.hosts.take(listed),
            "cluster": pages.hosts.take(of),
            "size": to_arrow(sizes[of].astype(np.int64)),
            "keeper": pages.hosts.take(of),
            "pages": to_arrow(counts[listed]),
            "top": pa.array(tops, pa.large_string()),
        }
    )


def pair_columns(pairs: HostPairs, pages: Pages, paths: Paths, counts: Ints) -> dict[str, pa.Array]:
    """Return the columns of the table of pairs that the URLs alone determine."""
    left, right = pairs.left, pairs.right
    tops = [
        [paths.top(host, skip) for host, skip in zip(hosts.tolist(), skips.tolist(), strict=True)]
        for hosts, skips in ((left, pairs.skip_left), (right, pairs.skip_right))
    ]
    return {
        "id_a": pages.hosts.take(left),
        "id_b": pages.hosts.take(right),
        "similarity": to_arrow(pairs.similarity),
        "pages_a": to_arrow(counts[left]),
        "pages_b": to_arrow(counts[right]),
        "shared_paths": to_arrow(pairs.shared),
        "top_a": pa.array(tops[0], pa.large_string()),
        "top_b": pa.array(tops[1], pa.large_string()),
    }
