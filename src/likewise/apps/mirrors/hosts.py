"""Mirrors by their URLs alone: hosts as sets of positional bigrams, the paths that two hosts share, clusters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.apps.clusters import cluster_columns, keepers
from likewise.apps.mirrors.addresses import OWNER, Pages
from likewise.base import checks
from likewise.base.arrays import Hashes, Ints, Sets, concatenate, to_arrow
from likewise.base.runlog import RunLog
from likewise.jobs.pairs import PairsRequest
from likewise.jobs.pairs import pairs as similar_pairs
from likewise.kernels.hashing import mix_all
from likewise.kernels.urls import count_shared, count_tokens, path_hashes
from likewise.measures import batch
from likewise.search.prepare import METHODS
from likewise.shingle import Shingler, parse_shingler
from likewise.shingle.urls import Urls

DEEPEST = 3
"""Most folders above the shared pages of a mirror, such as /pub/linux. Every one more adds combinations to try."""
SHARE = 0.1
"""Least fraction of the smaller host's paths that two mirrors share: large sites share a few by chance."""
BATCH = 1 << 17
"""Pages turned into shingles at a time; it bounds memory."""


@dataclass(frozen=True)
class MirrorSettings:
    """The parameters of a search for mirrors, validated; `mirrors` says what each of them means."""

    threshold: float
    recall: float
    method: str
    seed: int
    least: int
    position: str | None
    stop: Iterable[str]
    shingle: str | Shingler
    similar_text: float
    confirmed: float

    def __post_init__(self) -> None:
        for name in ("threshold", "similar_text", "confirmed"):
            object.__setattr__(self, name, checks.threshold(OWNER, getattr(self, name), name))
        object.__setattr__(self, "recall", checks.recall(OWNER, self.recall))
        checks.choice(OWNER, "method", self.method, METHODS)
        checks.seed(OWNER, self.seed)
        checks.whole(OWNER, "least", self.least)
        if self.position is not None:
            checks.choice(OWNER, "position", self.position, ("start", "end"))
        object.__setattr__(self, "stop", tuple(checks.listed(OWNER, "stop", self.stop, "a list of components")))
        self.urls, self.texts  # noqa: B018  raises if the stop components or the shingles are invalid

    @property
    def urls(self) -> Urls:
        """The shingler that turns the paths of a host into a set."""
        return Urls(stop=self.stop, host=False, position=self.position)

    @property
    def texts(self) -> Shingler:
        """The shingler that turns the text of a page into a set."""
        return parse_shingler(self.shingle, owner="mirrors")

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        names = ("threshold", "recall", "method", "seed", "least", "position", "similar_text", "confirmed")
        asked = {name: getattr(self, name) for name in names}
        return {**asked, "stop": list(self.urls.stop), "shingle": str(self.texts)}


@dataclass(frozen=True)
class HostPairs:
    """Pairs of hosts, `left` before `right`, their similarity and what they share.

    skip_left, skip_right: number of folders above the shared paths on either host; shared: number of shared paths.
    """

    left: Ints
    right: Ints
    similarity: NDArray[np.float64]
    shared: Ints
    skip_left: Ints
    skip_right: Ints

    def __len__(self) -> int:
        return len(self.left)

    def where(self, flags: NDArray[np.bool_]) -> HostPairs:
        """Return the pairs with a true flag."""
        return HostPairs(*(column[flags] for column in vars(self).values()))

    def columns(self, paths: Paths, counts: Ints) -> dict[str, pa.Array]:
        """Return the columns of the table of pairs that the URLs alone determine; counts: the pages of each host."""
        left, right, ids = self.left, self.right, paths.pages.hosts.take
        columns = {"id_a": ids(left), "id_b": ids(right), "similarity": to_arrow(self.similarity)}
        columns |= {"pages_a": to_arrow(counts[left]), "pages_b": to_arrow(counts[right])}
        columns["shared_paths"] = to_arrow(self.shared)
        return {**columns, "top_a": paths.tops(left, self.skip_left), "top_b": paths.tops(right, self.skip_right)}


@dataclass(frozen=True)
class Tails:
    """The distinct paths of each host without the first folders, as ascending hashes; their pages; those folders."""

    values: Hashes
    offsets: Ints
    pages: Ints
    tops: Hashes


class Paths:
    """The paths of each host that contain a token, as hashes, with or without their first folders."""

    def __init__(self, pages: Pages, listed: Ints, settings: MirrorSettings) -> None:
        chunk = pages.urls.chunk()
        tokens = np.empty(len(listed), np.int64)
        count_tokens(chunk.data, chunk.offsets, pages.path, settings.urls.stop_table(), listed, tokens)
        self.pages = pages
        self.order, self.begins = pages.by_host(listed[tokens > 0])
        self.sizes = np.diff(self.begins)
        self.paired = np.zeros(len(self.sizes), bool)
        self._tails: dict[int, Tails] = {}
        self._tops: dict[tuple[int, int], str] = {}

    def of(self, host: int) -> Ints:
        """Return the pages of a host."""
        return self.order[self.begins[host] : self.begins[host + 1]]

    def tails(self, skip: int) -> Tails:
        """Return the paths of every paired host without `skip` folders, those below its most common top folders."""
        if skip not in self._tails:
            rows = self.order[np.repeat(self.paired, self.sizes)]
            values, tops = hashed_paths(self.pages, rows, skip)
            hosts = self.pages.host[rows]
            keep = values != 0
            if skip:
                common = most_common(hosts[keep], tops[keep], len(self.sizes))
                keep &= tops == common[hosts]
            rows, values, hosts, tops = rows[keep], values[keep], hosts[keep], tops[keep]
            order = np.lexsort((rows, values, hosts))
            rows, values, hosts, tops = rows[order], values[order], hosts[order], tops[order]
            new = np.ones(len(rows), bool)
            new[1:] = (values[1:] != values[:-1]) | (hosts[1:] != hosts[:-1])
            counts = np.bincount(hosts[new], minlength=len(self.sizes))
            offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            self._tails[skip] = Tails(values[new], offsets, rows[new], tops[new])
        return self._tails[skip]

    def match(self, left: Ints, right: Ints, similarity: NDArray[np.float64], least: int) -> HostPairs:
        """Count the paths that hosts share: first whole paths, then without up to three folders on either side."""
        self.paired[left] = self.paired[right] = True
        none = np.zeros(len(left), np.int64)
        best = HostPairs(left, right, similarity, none, none.copy(), none.copy())
        enough = np.maximum(least, np.minimum(self.sizes[left], self.sizes[right]) / 4)
        for skip_left, skip_right in SKIPS:
            open_still = np.flatnonzero(best.shared < enough)
            if not len(open_still):
                break
            mine, theirs = self.tails(skip_left), self.tails(skip_right)
            shared = np.empty(len(open_still), np.int64)
            ends = left[open_still], right[open_still]
            count_shared(mine.values, mine.offsets, theirs.values, theirs.offsets, *ends, shared)
            better = shared > best.shared[open_still]
            rows = open_still[better]
            best.shared[rows], best.skip_left[rows], best.skip_right[rows] = shared[better], skip_left, skip_right
        return best

    def tops(self, hosts: Ints, skips: Ints) -> pa.Array:
        """Return the folders above the shared paths of hosts, this many of each."""
        several = zip(hosts.tolist(), skips.tolist(), strict=True)
        return pa.array([self._top(host, skip) for host, skip in several], pa.large_string())

    def _top(self, host: int, skip: int) -> str:
        if not skip:
            return ""
        if (host, skip) not in self._tops:
            tails = self.tails(skip)
            first = int(tails.offsets[host])
            page = int(tails.pages[first]) if first < tails.offsets[host + 1] else -1
            begins = 0 if page < 0 else int(self.pages.path[page] - self.pages.urls.offsets[page])
            path = "" if page < 0 else self.pages.urls.text(page)[begins:]
            self._tops[host, skip] = "/".join(path.split("/")[: skip + 1])
        return self._tops[host, skip]


SKIPS = sorted(product(range(DEEPEST + 1), repeat=2), key=lambda skips: (sum(skips), max(skips), skips))


def most_common(hosts: Ints, tops: Hashes, count: int) -> Hashes:
    """Return the most common value of each host, 0 for a host without any.

    >>> most_common(np.array([0, 0, 0, 2]), np.array([7, 9, 9, 5], np.uint64), 3).tolist()
    [9, 0, 5]
    """
    common = np.zeros(count, np.uint64)
    if len(hosts):
        order = np.lexsort((tops, hosts))
        hosts, tops = hosts[order], tops[order]
        new = np.flatnonzero(np.concatenate([[True], (hosts[1:] != hosts[:-1]) | (tops[1:] != tops[:-1])]))
        sizes = np.diff(np.append(new, len(hosts)))
        by_size = np.argsort(sizes, kind="stable")
        common[hosts[new[by_size]]] = tops[new[by_size]]
    return common


def hashed_paths(pages: Pages, rows: Ints, skip: int) -> tuple[Hashes, Hashes]:
    """Hash the paths of these pages without `skip` folders, and those folders; 0 for paths with fewer folders."""
    chunk = pages.urls.chunk()
    tails, tops = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
    path_hashes(chunk.data, chunk.offsets, pages.path, np.ascontiguousarray(rows), skip, tails, tops)
    return tails, tops


def host_sets(paths: Paths, hosts: Ints, settings: MirrorSettings) -> Sets:
    """Return each host as the set of positional bigrams of its paths, a limited number of pages at a time."""
    chunk, shingler = paths.pages.urls.chunk(), settings.urls
    parts, begin = [], 0
    totals = np.concatenate([[0], np.cumsum(paths.sizes[hosts])])
    while begin < len(hosts):
        end = max(begin + 1, int(np.searchsorted(totals, totals[begin] + BATCH, side="right")) - 1)
        rows = np.concatenate([paths.of(int(host)) for host in hosts[begin:end]])
        parts.append(shingler.united(chunk, rows, (totals[begin + 1 : end + 1] - totals[begin]).astype(np.int64)))
        begin = end
    return concatenate(parts)


def host_pairs(
    paths: Paths, settings: MirrorSettings, log: RunLog, suspects: tuple[Ints, Ints] | None = None, **search: Any
) -> HostPairs:
    """Find the pairs of hosts that are similar as sets and share enough paths; and suspects that share any."""
    hosts = np.flatnonzero(paths.sizes >= settings.least)
    log.counts["hosts_compared"] = len(hosts)
    with log.stage("sets"):
        sets = host_sets(paths, hosts, settings)
    with log.stage("join"):
        request = PairsRequest(source=sets, threshold=settings.threshold, recall=settings.recall, **search)
        result = similar_pairs(request)
    found, details = result.table, result.stats["details"]
    log.method, log.certificate = result.stats["method"], result.stats["certificate"]
    if "abridged" in details:
        log.details["abridged"] = details["abridged"]
    log.counts["candidates"] = len(found)
    left, right = (hosts[found[name].to_numpy()] for name in ("id_a", "id_b"))
    similarity, least = found["similarity"].to_numpy(), np.full(len(found), settings.least)
    if suspects is not None:
        more = _suspected(paths, settings, suspects, left, right)
        left, right, similarity = (np.concatenate(both) for both in zip((left, right, similarity), more, strict=True))
        first = np.isin(left * len(paths.sizes) + right, suspects[0] * len(paths.sizes) + suspects[1])
        least = np.where(first, 1, settings.least)
        order = np.lexsort((right, left))
        left, right, similarity, least = left[order], right[order], similarity[order], least[order]
    with log.stage("verify"):
        pairs = paths.match(left, right, similarity, settings.least)
    few = np.minimum(paths.sizes[left], paths.sizes[right])
    return pairs.where(pairs.shared >= np.maximum(least, SHARE * few))


def _suspected(
    paths: Paths, settings: MirrorSettings, suspects: tuple[Ints, Ints], left: Ints, right: Ints
) -> tuple[Ints, Ints, NDArray[np.float64]]:
    """Return the suspects that are not found yet and share a shingle, and their similarities.

    Without a shared shingle, equal names of files in different folders would be enough.
    """
    n = len(paths.sizes)
    new = ~np.isin(suspects[0] * n + suspects[1], left * n + right)
    new &= (paths.sizes[suspects[0]] > 0) & (paths.sizes[suspects[1]] > 0)
    first, second = suspects[0][new], suspects[1][new]
    if not len(first):
        return first, second, np.zeros(0)
    hosts, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    sets = host_sets(paths, hosts, settings)
    similarity = np.asarray(batch.jaccard(sets.take(places[: len(first)]), sets.take(places[len(first) :])), np.float64)
    alike = similarity > 0
    return first[alike], second[alike], similarity[alike]


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
        of, pair = keepers(np.lexsort((np.arange(hosts), -pages, -degree)), left, right)
        gone = np.flatnonzero(pair >= 0)
        pair = pair[gone]
        above = np.stack([pairs.skip_left[pair], pairs.skip_right[pair]])
        mine, theirs = np.where(left[pair] == gone, above, above[::-1])
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

    def table(self, paths: Paths, counts: Ints) -> pa.Table:
        """Return one row per host that has mirrors, by cluster, the keeper first; counts: the pages of each host."""
        listed = np.flatnonzero(np.bincount(self.of, minlength=len(self.of))[self.of] > 1)
        listed = listed[np.lexsort((listed, self.of[listed] != listed, self.of[listed]))]
        columns = cluster_columns(paths.pages.hosts.take, listed, self.of, self.of)
        return pa.table({**columns, "pages": to_arrow(counts[listed]), "top": paths.tops(listed, self.skip[listed])})
