"""Graph contraction: fold equal pages, relabel links and compare outlinks again, until nothing folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.clusters import keepers
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.errors import ParameterError
from likewise.kernels import contraction as kernels
from likewise.kernels.graph import components

OWNER = "contract"
SIMILAR = 0.9
"""Least similarity of outlinks: copies of a page may differ in a link or two of ten or twenty."""
LEAST = 3
"""Least number of outlinks: pages that link to their home page only are not equal for that."""
COMMON = 1000
"""Most pages compared per rare outlink that they share. It bounds the work for links on very many pages."""
TEMPLATE = 0.5
"""Links on more than this fraction of a host's pages belong to its template, not to the page."""
TEMPLATE_PAGES = 20
"""Least number of pages with links on a host for links to be recognized as part of a template."""
MOST = 2**31 - 1
"""Counts that the kernels hold in 32-bit integers."""
ROOM = 1 << 20
"""Pairs a call of the kernel has room for; the room grows if one page alone has more."""

Numbers = NDArray[np.int32]


@dataclass(frozen=True)
class Round:
    """One round of a contraction: the reason for folding, the number of nodes folded, and the number examined.

    The last is how much work it was: links that are repeated number the nodes in another way, and may change it.
    """

    by: str
    folded: int
    looked: int


@dataclass(frozen=True)
class Contraction:
    """The result of `contract`: for every node the lowest node it is folded with, and statistics.

    folded: an array, one entry per node. rounds: what each round did. links: distinct links. template_links: links
    ignored because they are on most pages of a host. compared: pairs compared by similarity. crowded: how often more
    than `common` pages shared a rare outlink.
    """

    folded: Ints
    rounds: list[Round]
    links: int
    template_links: int = 0
    compared: int = 0
    crowded: int = 0


@dataclass(frozen=True)
class FoldingRules:
    """When two pages are equal by their outlinks; `contract` says what each rule means."""

    similar: float
    least: int
    template: float
    common: int


def contract(
    source: Any,
    target: Any,
    nodes: int | None = None,
    *,
    same: Any = None,
    host: Any = None,
    similar: float = SIMILAR,
    least: int = LEAST,
    template: float = TEMPLATE,
    common: int = COMMON,
    tick: Callable[[int], None] = lambda folded: None,
) -> Contraction:
    """Fold nodes of a graph that have the same outlinks, then nodes that have become equal, until nothing folds.

    source, target: the ends of every link, numbers from 0. nodes: the number of nodes, by default one more than the
    largest number. same: one number per node; nodes with equal non-negative numbers are folded at the start. host: the
    host of every node; without it, no link is considered part of a template.

    Each round folds all nodes with equal sets of outlinks; if there are none, it folds nodes whose sets have a Jaccard
    similarity of at least `similar`, each into a node to which it is itself similar. A folded node has the outlinks of
    all its members except those to itself. Only nodes that link to a folded one are examined again.

    least: nodes with fewer outlinks are not compared. template: links on more than this fraction of a host's pages (of
    20 or more) are ignored. common: the largest number of nodes compared per rare outlink that they share. tick: called
    after each round with the number of nodes folded.

    >>> trees = contract([0, 0, 3, 3], [1, 2, 4, 5], same=[-1, 7, 8, -1, 7, 8], least=2)
    >>> trees.folded.tolist(), [(one.by, one.folded) for one in trees.rounds]
    ([0, 1, 2, 0, 1, 2], [('given', 2), ('equal outlinks', 1)])
    """
    rules = FoldingRules(
        checks.threshold(OWNER, similar, "similar"),
        checks.whole(OWNER, "least", least, most=MOST, rule="a positive whole number"),
        checks.threshold(OWNER, template, "template"),
        checks.whole(OWNER, "common", common, most=MOST, rule="a positive whole number"),
    )
    if host is None:
        checks.unused(OWNER, {"template": (template, TEMPLATE)}, "without 'host'")
    same = None if same is None else _whole_numbers("same", same, "one per node")
    host = None if host is None else _hosts(host)
    work = _build(_node_numbers("source", source), _node_numbers("target", target), nodes, host, same, rules)
    given = None if same is None else _groups_of(work, same)
    if given:
        tick(work.fold(given, "given", len(work.graph.label), unite=True))
    changed: Numbers = np.flatnonzero(work.graph.size > 0).astype(np.int32)
    dirty: list[Numbers] = []
    while True:
        fresh = work.refresh(changed)
        dirty.append(fresh)
        found, by, looked = work.equal(fresh), "equal outlinks", len(fresh)
        if not found and rules.similar < 1:
            waiting = np.unique(np.concatenate(dirty))
            dirty = []
            found, by, looked = work.similar(waiting), "similar outlinks", len(waiting)
        if not found:
            break
        unite = by != "equal outlinks"
        tick(work.fold(found, by, looked, unite))
        if unite:  # a node similar to several is in one group only and may still be similar to the others
            dirty.append(np.unique(work.graph.label[found[1]]))
        changed = work.changed
    return work.answer()


@dataclass
class GraphState:
    """The state of a contraction. Nodes are numbered by ascending in-degree; `known` has the user's numbers."""

    graph: kernels.Graph
    arena: Numbers
    end: int
    known: Numbers
    rules: FoldingRules
    links: int
    template_links: int
    rounds: list[Round] = field(default_factory=list)
    counters: Ints = field(default_factory=lambda: np.zeros(3, np.int64))
    index: kernels.PrefixLists | None = None
    entries: int = 0
    table: Numbers = field(default_factory=lambda: np.zeros(0, np.int32))
    filled: int = 0
    changed: Numbers = field(default_factory=lambda: np.zeros(0, np.int32))

    def refresh(self, classes: Numbers) -> Numbers:
        """Relabel the outlinks of these classes; return those whose outlinks changed."""
        fresh = np.empty(len(classes), np.int32)
        return fresh[: kernels.refresh(self.graph, self.arena, classes, fresh)]

    def equal(self, classes: Numbers) -> tuple[Ints, Numbers] | None:
        """Return groups of classes with equal outlinks."""
        if not len(classes):
            return None
        if 2 * (self.filled + len(classes)) > len(self.table):
            live = int((self.graph.size >= self.rules.least).sum())
            self.table = np.zeros(1 << max(4, (4 * max(live, len(classes))).bit_length()), np.int32)
            self.filled = 0  # these classes are added below, all others now
            mask = np.ones(len(self.graph.label), np.uint8)
            mask[classes] = 0
            self.filled = kernels.refill(self.graph, self.rules.least, mask, self.table)
        left, right = np.empty(len(classes), np.int32), np.empty(len(classes), np.int32)
        count, added = kernels.find_equal(self.graph, self.arena, classes, self.rules.least, self.table, left, right)
        self.filled += added
        # a class that was in the table before others with the same outlinks is an end of several pairs
        nodes, ends = np.unique(np.concatenate([left[:count], right[:count]]), return_inverse=True)
        lowest = components(len(nodes), ends[:count], ends[count:])
        gone = lowest != np.arange(len(nodes))
        return _stars(nodes[lowest[gone]], nodes[gone])

    def similar(self, classes: Numbers) -> tuple[Ints, Numbers] | None:
        """Return groups of classes with similar outlinks: a class and those similar to it."""
        pairs = self._similar_pairs(classes)
        if not len(pairs):
            return None
        keys = np.unique(np.sort(pairs, axis=1).astype(np.int64) @ np.array([1 << 32, 1]))
        nodes, ends = np.unique(np.concatenate([keys >> 32, keys & 0xFFFFFFFF]), return_inverse=True)
        left, right = ends[: len(keys)], ends[len(keys) :]
        keeper, pair = keepers(np.argsort(self.graph.first[nodes]), left, right)
        gone = pair >= 0
        return _stars(nodes[keeper[gone]].astype(np.int32), nodes[gone].astype(np.int32))

    def _similar_pairs(self, classes: Numbers) -> Numbers:
        n = len(self.graph.label)
        if self.index is None:
            following, owner = (np.empty(max(16, 2 * len(classes)), np.int32) for _ in range(2))
            self.index = kernels.PrefixLists(np.full(n, -1, np.int32), following, owner, np.zeros(n, np.int64))
        parts, begin, room = [], 0, ROOM
        while begin < len(classes):
            left, right = np.empty(room, np.int32), np.empty(room, np.int32)
            rules = (self.rules.least, self.rules.similar, self.rules.common)
            done, self.entries, count = kernels.find_similar(
                self.graph, self.arena, classes, begin, *rules, self.index, self.entries, left, right, self.counters
            )
            parts.append(np.stack([left[:count], right[:count]], axis=1))
            if done == begin:
                room *= 2
            begin = done
            if begin < len(classes):
                more = self.entries // 2 + int(self.graph.size[classes[begin]])
                following, owner = (np.concatenate([part, np.empty(more, np.int32)]) for part in self.index[1:3])
                self.index = self.index._replace(following=following, owner=owner)
        return np.concatenate(parts) if parts else np.empty((0, 2), np.int32)

    def fold(self, groups: tuple[Ints, Numbers], by: str, looked: int, unite: bool) -> int:
        """Fold groups of classes; afterwards `changed` has the classes to examine again."""
        offsets, members = groups
        if unite:
            need = int(self.graph.size[members].sum(dtype=np.int64))
            if self.end + need > len(self.arena):
                live = self.graph.label == np.arange(len(self.graph.label))
                room = int(self.graph.size[live].sum(dtype=np.int64)) + need
                out = np.empty(room + room // 8, np.int32)
                self.end = kernels.compact(self.graph, self.arena, out)
                self.arena = out
        changed = np.empty(len(self.graph.label), np.int32)
        count, self.end = kernels.fold(self.graph, self.arena, self.end, offsets, members, unite, changed)
        self.changed = changed[:count].copy()
        folded = len(members) - (len(offsets) - 1)
        self.rounds.append(Round(by, folded, looked))
        return folded

    def answer(self) -> Contraction:
        """Return the contraction in the user's numbers."""
        folded = np.empty(len(self.known), np.int64)
        folded[self.known] = self.graph.first[self.graph.label]
        crowded, compared, _ = self.counters.tolist()
        return Contraction(folded, self.rounds, self.links, self.template_links, compared, crowded)


def _stars(keeper: Numbers, gone: Numbers) -> tuple[Ints, Numbers] | None:
    """Group pairs by keeper: each keeper, followed by the nodes folded into it."""
    if not len(gone):
        return None
    order = np.argsort(keeper, kind="stable")
    different, firsts = np.unique(keeper[order], return_index=True)
    members = np.insert(gone[order], firsts, different)
    return np.append(firsts + np.arange(len(firsts)), len(members)), members


def _groups_of(work: GraphState, same: NDArray[Any]) -> tuple[Ints, Numbers] | None:
    """Return the groups of nodes that are folded at the start."""
    numbers = same[work.known]
    nodes = np.flatnonzero(numbers >= 0)
    nodes = nodes[np.argsort(numbers[nodes], kind="stable")]
    sizes = np.unique(numbers[nodes], return_counts=True)[1]
    several = sizes[sizes > 1]
    if not len(several):
        return None
    offsets = np.concatenate([[0], np.cumsum(several)]).astype(np.int64)
    return offsets, nodes[np.repeat(sizes > 1, sizes)].astype(np.int32)


def _whole_numbers(name: str, given: Any, each: str) -> NDArray[Any]:
    """Return a list of integers as an array; fractions are an error, not cut off."""
    rule = f"a list of whole numbers, {each}"
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise ParameterError.of(OWNER, name, rule, given) from error
    if array.ndim == 1 and not array.size:
        return np.zeros(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ParameterError.of(OWNER, name, rule, given)
    return array


def _node_numbers(name: str, given: Any) -> Numbers:
    array = _whole_numbers(name, given, "one per link")
    for end in (array.min(initial=0), array.max(initial=0)):
        if not 0 <= int(end) < MOST:
            raise ParameterError.of(OWNER, name, f"node numbers from 0 to {MOST - 1:,}", int(end))
    return array.astype(np.int32)


def _hosts(given: Any) -> Ints:
    array = _whole_numbers("host", given, "one per node")
    if array.min(initial=0) < 0:
        raise ParameterError.of(OWNER, "host", "numbers of 0 or more", int(array.min()))
    if int(array.max(initial=0)) > 4 * len(array):  # the numbers are places in an array
        array = np.unique(array, return_inverse=True)[1]
    return array.astype(np.int64)


def _build(
    source: Numbers, target: Numbers, nodes: int | None, host: Any, same: Any, rules: FoldingRules
) -> GraphState:
    """Number the nodes by ascending in-degree, and sort the links by source and by target."""
    if len(source) != len(target):
        raise ParameterError.of(OWNER, "target", f"as long as 'source', {len(source)}", len(target))
    highest = max(int(source.max(initial=-1)), int(target.max(initial=-1)), len(same) - 1 if same is not None else -1)
    n = highest + 1 if nodes is None else checks.whole(OWNER, "nodes", nodes, 0, MOST)
    for name, ends in (("source", source), ("target", target)):
        if int(ends.max(initial=-1)) >= n:
            raise ParameterError.of(OWNER, name, f"node numbers from 0 to {n - 1}", int(ends.max()))
    for name, given in (("same", same), ("host", host)):
        if given is not None and len(given) != n:
            raise ParameterError.of(OWNER, name, f"one entry per node, {n}", len(given))
    start = np.empty(n + 1, np.int64)
    kernels.count_ends(target, start)
    known = np.argsort(np.diff(start), kind="stable").astype(np.int32)
    rank = np.empty(n, np.int32)
    rank[known] = np.arange(n, dtype=np.int32)
    source, target = rank[source], rank[target]
    kernels.count_ends(target, start)
    sources = np.empty(len(source), np.int32)
    kernels.group_by_end(target, source, start, sources)
    del source, target
    out_start, targets = _turned(start, sources)
    links = kernels.without_repetition(out_start, targets)
    start, sources = _turned(out_start, targets[:links])
    template_links = 0
    if host is not None and links:
        hosts = host[known]
        pages = np.bincount(hosts[np.diff(out_start) > 0], minlength=int(hosts.max(initial=0)) + 1)
        limit = np.where(pages >= TEMPLATE_PAGES, rules.template * pages, np.inf)
        last = np.full(len(pages), -1, np.int64)
        left = kernels.without_common(start, sources, hosts, limit, np.zeros(len(pages), np.int64), last)
        template_links = links - left
        sources = sources[:left]
        out_start, targets = _turned(start, sources)
        start, sources = _turned(out_start, targets)
    else:
        targets = targets[:links]
    sizes = np.diff(out_start).astype(np.int32)
    empty = np.zeros(n, np.uint64)
    label = np.arange(n, dtype=np.int32)
    graph = kernels.Graph(
        start, sources, label, label.copy(), np.diff(start), known.astype(np.int64), out_start[:-1].copy(), sizes,
        empty, empty.copy(), np.zeros(n, np.uint8),
    )  # fmt: skip
    return GraphState(graph, targets, len(targets), known, rules, links, template_links)


def _turned(start: Ints, ends: Numbers) -> tuple[Ints, Numbers]:
    out_start, out = np.empty(len(start), np.int64), np.empty(len(ends), np.int32)
    kernels.turned(start, ends, out_start, out)
    return out_start, out
