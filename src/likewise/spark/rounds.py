"""Graphs on the cluster: edges meet at their ends in rounds, each of them one packed shuffle and a step of the run.

*Keepers* are the lexicographically first maximal independent set: a node is kept if none of its earlier neighbours is.
In a round every node sees the state of its neighbours. One whose earlier neighbours are all gone is kept, one with a
kept neighbour is removed, and the others wait. In a random order the rounds grow with log n (Fischer and Noever, 2018).

*Components* are found by alternating large stars and small stars (Kiveris et al., 2014): every node links its larger
neighbours, then its smaller ones, to the least node it knows. A task first links what is connected within itself.

What is left after each round shrinks. Once it is small the driver finishes it with the kernel of the local engine: the
last rounds of a cluster would decide a handful of nodes each, and a long chain in the worst order one at a time. If the
rounds decide little while much is left, the driver decides a prefix of the order, as long as it can hold, and the
rounds go on. So their number is bounded: by a logarithm where they do much, else by a few times the edges over PREFIX.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from likewise.base.arrays import Hashes, Ints
from likewise.kernels import graph
from likewise.spark.context import share
from likewise.spark.corpus import among
from likewise.spark.exchange import (
    KIND,
    SCHEMA,
    Outbox,
    addresses,
    collected,
    nothing,
    opened,
    parcel,
    parcel_frame,
    partitions,
    shuffled,
)
from likewise.spark.steps import NOTHING, scattered
from likewise.spark.store import Checkpoints

WAITS, KEPT, ALIVE, GONE, CHOSEN, COUNT, EDGE = range(10, 17)
"""Kinds of parcels: a node and a neighbour that is undecided, or kept; a node that is undecided; one that is decided,
though neighbours may not know; one that is kept; how many entries are left; two connected nodes, the larger first."""
NAMES = ("keepers", "components")
REMAINDER = 1 << 20
"""Entries that the driver finishes by itself: 16 MB, in less than a second; any round takes longer."""
PREFIX = 1 << 22
"""Entries of a prefix that the driver decides at once."""
SLOW = 0.75
"""If two rounds leave more than this part of the entries, the driver decides a prefix."""
SAMPLED = 1024
"""Values of a task that the driver sees to choose a prefix."""


@dataclass
class Rounds:
    """The rounds of a run: where they are kept, and how many there were."""

    session: Any
    checkpoints: Checkpoints
    counts: dict[str, int] = field(default_factory=dict)

    def _step(self, name: str, make: Callable[[], Any]) -> tuple[Any, int, int]:
        """Do a round; return what it leaves, its entries, and how many nodes are not settled."""
        self.counts[name] = self.counts.get(name, 0) + 1
        frame = self.checkpoints.frame(f"{name}-{self.counts[name]}", make)
        entries, loose = collected(frame.where(f"{KIND} = {COUNT}").toArrow()).get(COUNT, nothing())
        return frame, int(entries.sum()), int(loose.sum())

    def recall(self) -> None:
        """Take over the numbers of rounds that an interrupted run has finished."""
        for name in NAMES:
            while self.checkpoints.recalled(f"{name}-{self.counts.get(name, 0) + 1}"):
                self.counts[name] = self.counts.get(name, 0) + 1

    def keepers(self, edges: Any, entries: int) -> list[Any]:
        """Return the nodes that are kept, of those that have an edge, as frames of CHOSEN parcels.

        edges: EDGE parcels, each pair of nodes once; the order of nodes is that of their numbers.
        """
        name, chosen, frame, left = NAMES[0], [], edges, [2 * entries]
        while left[-1] > REMAINDER:
            if len(left) > 2 and left[-1] > SLOW * left[-3]:
                make = partial(self._prefix, frame)
                left.clear()
            else:
                make = partial(_shuffled, frame, partitions(self.session, left[-1]), _waiting, _decided)
            frame, now, _ = self._step(name, make)
            left.append(now)
            chosen.append(frame.where(f"{KIND} = {CHOSEN}"))
        rest = collected(frame.where(f"{KIND} in ({EDGE}, {WAITS}, {KEPT}, {ALIVE}, {GONE})").toArrow())
        kept, _ = settled(rest)
        chosen.append(parcel_frame(self.session, parcel(0, CHOSEN, kept, kept.view(np.uint64))))
        return chosen

    def _prefix(self, frame: Any) -> Any:
        """Decide the first nodes on the driver, as many as it can hold the edges of, and tell the others."""
        sample = collected(frame.mapInArrow(_sampled, SCHEMA).toArrow()).get(WAITS, nothing())
        if not len(sample[0]):
            sample = np.array([-1]), np.zeros(1, np.uint64)
        order = np.argsort(sample[0], kind="stable")
        total = np.cumsum(sample[1][order].astype(np.int64))
        place = max(0, int(np.searchsorted(total, PREFIX, side="right")) - 1)
        limit = int(sample[0][order][place])
        found = collected(frame.mapInArrow(partial(_below, limit=limit), SCHEMA).toArrow())
        told = share(self.session, settled(found, limit))
        return frame.mapInArrow(partial(_informed, told=told), SCHEMA)

    def components(self, edges: Any, entries: int) -> Any:
        """Return EDGE parcels: each node that is not the least of its component, beside the least one."""
        name, frame, now = NAMES[1], edges, entries
        while now > REMAINDER:
            parts = partitions(self.session, 2 * now)
            make = partial(_shuffled, frame, parts, partial(_linked, both=True), _large_star)
            frame, now, loose = self._step(name, make)
            if not loose:
                return frame.where(f"{KIND} = {EDGE}")
            make = partial(_shuffled, frame, parts, partial(_linked, both=False), _small_star)
            frame, now, _ = self._step(name, make)
        nodes, root = connected(*collected(frame.where(f"{KIND} = {EDGE}").toArrow()).get(EDGE, nothing()))
        return parcel_frame(self.session, parcel(0, EDGE, nodes, root.view(np.uint64)))


def _shuffled(frame: Any, parts: int, send: Callable[..., Any], receive: Callable[..., Any]) -> Any:
    sent = frame.mapInArrow(partial(send, targets=addresses(parts)), SCHEMA)
    return shuffled(sent, parts).mapInArrow(receive, SCHEMA)


def _sent(outbox: Outbox, nodes: Ints, others: Hashes, targets: Any) -> Iterator[Any]:
    yield from outbox.add(scattered(nodes.view(np.uint64), len(targets)), nodes, others)


def _waiting(batches: Iterator[Any], targets: Any) -> Iterator[Any]:
    """Send entries to their nodes; an edge becomes an entry of both ends."""
    boxes = {kind: Outbox(targets, kind) for kind in (WAITS, KEPT, ALIVE, GONE)}
    for batch in batches:
        for kind, (nodes, others) in opened([batch]).items():
            if kind == EDGE:
                yield from _sent(boxes[WAITS], nodes, others, targets)
                yield from _sent(boxes[WAITS], others.view(np.int64), nodes.view(np.uint64), targets)
            elif kind in boxes:
                yield from _sent(boxes[kind], nodes, others, targets)
    for box in boxes.values():
        yield from box.sent()


def _decided(batches: Iterator[Any]) -> Iterator[Any]:
    """Decide the nodes of a task that can be decided, and say so to their neighbours."""
    found = opened(batches)
    for kind, nodes, others in decisions(found):
        yield from parcel(0, kind, nodes, others.view(np.uint64))


def decisions(found: dict[int, tuple[Ints, Hashes]]) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield the entries that follow from the entries of some nodes, all of those that the nodes have.

    A node that is decided in this round does not know which neighbours still write to it in the same round. GONE
    reminds it to pass over that, once; and ALIVE reminds one that waits that it is there, should nobody write to it.
    """
    gone = np.unique(found.get(GONE, nothing())[0])
    nodes, words = found.get(WAITS, nothing())
    fresh = ~among(nodes, gone)
    nodes, others = nodes[fresh], words.view(np.int64)[fresh]
    removed = np.setdiff1d(found.get(KEPT, nothing())[0], gone)
    alive = np.setdiff1d(np.union1d(found.get(ALIVE, nothing())[0], nodes), np.union1d(gone, removed))
    later = np.unique(nodes[others < nodes])
    kept, waiting = np.setdiff1d(alive, later), np.intersect1d(alive, later)
    of_kept, of_waiting = among(nodes, kept), among(nodes, waiting)
    yield CHOSEN, kept, kept
    yield KEPT, others[of_kept], nodes[of_kept]
    yield WAITS, others[of_waiting], nodes[of_waiting]
    yield ALIVE, waiting, waiting
    decided = np.union1d(kept, removed)
    yield GONE, decided, decided
    entries = int(of_kept.sum() + of_waiting.sum() + len(waiting))
    yield COUNT, np.array([entries]), np.zeros(1, np.int64)


def settled(found: dict[int, tuple[Ints, Hashes]], limit: int = (1 << 63) - 1) -> tuple[Ints, Ints]:
    """Decide all nodes up to a limit from their entries with each other; return those kept and those removed."""
    gone = np.unique(found.get(GONE, nothing())[0])
    removed = np.setdiff1d(found.get(KEPT, nothing())[0], gone)
    parts = [(nodes, others.view(np.int64)) for kind in (WAITS, EDGE) for nodes, others in [found.get(kind, nothing())]]
    ends = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    nodes = np.concatenate([*ends, found.get(ALIVE, nothing())[0]])
    out = np.union1d(gone, removed)
    nodes = np.setdiff1d(nodes[nodes <= limit], out)
    inner = ~(among(ends[0], out) | among(ends[1], out)) & (np.maximum(*ends) <= limit)
    left, right = (np.searchsorted(nodes, end[inner]) for end in ends)
    kept = graph.keepers(np.arange(len(nodes)), left, right) < 0
    return nodes[kept], np.concatenate([nodes[~kept], removed[removed <= limit]])


def _sampled(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield values of the larger end of a task's entries, evenly spaced, with the entries that each stands for."""
    values = np.sort(np.concatenate([NOTHING, *_larger_ends(batches)]))
    if len(values):
        step = max(1, len(values) // SAMPLED)
        chosen = values[step - 1 :: step]
        yield from parcel(0, WAITS, chosen, np.full(len(chosen), step, np.uint64))


def _larger_ends(batches: Iterator[Any]) -> Iterator[Ints]:
    for batch in batches:
        found = opened([batch])
        for kind in (WAITS, EDGE):
            nodes, others = found.get(kind, nothing())
            yield np.maximum(nodes, others.view(np.int64))


def _below(batches: Iterator[Any], limit: int) -> Iterator[Any]:
    """Yield the entries of nodes up to a limit with each other."""
    for batch in batches:
        for kind, (nodes, others) in opened([batch]).items():
            if kind in (EDGE, WAITS, KEPT, ALIVE, GONE):
                inner = (nodes <= limit) & (others.view(np.int64) <= limit)
                yield from parcel(0, kind, nodes[inner], others[inner])


def _informed(batches: Iterator[Any], told: Any) -> Iterator[Any]:
    """Bring the entries of a task up to date with what is decided. Nodes are all below or all above what is known."""
    kept, removed = told.value
    removed = np.sort(removed)
    count = 0
    for batch in batches:
        for kind, (nodes, words) in opened([batch]).items():
            others = words.view(np.int64)
            if kind == GONE:
                yield from parcel(0, GONE, nodes, nodes.view(np.uint64))
            if kind == EDGE:
                nodes, others = np.concatenate([nodes, others]), np.concatenate([others, nodes])
            if kind not in (EDGE, WAITS, KEPT, ALIVE):
                continue
            own = np.unique(nodes[among(nodes, kept)])
            yield from parcel(0, CHOSEN, own, own.view(np.uint64))
            undecided = ~(among(nodes, kept) | among(nodes, removed))
            if kind in (EDGE, WAITS):
                undecided &= ~among(others, removed)
                now = undecided & among(others, kept)
                yield from parcel(0, KEPT, nodes[now], others[now].view(np.uint64))
                seen = np.unique(nodes[~among(nodes, kept) & ~among(nodes, removed)])
                yield from parcel(0, ALIVE, seen, seen.view(np.uint64))
                count += int(now.sum()) + len(seen)
                kind, undecided = WAITS, undecided & ~now
            yield from parcel(0, kind, nodes[undecided], others[undecided].view(np.uint64))
            count += int(undecided.sum())
    yield from parcel(0, COUNT, np.array([count]), np.zeros(1, np.uint64))


def _linked(batches: Iterator[Any], targets: Any, both: bool) -> Iterator[Any]:
    """Send edges to their larger ends, or to both, after linking what a task knows to be connected."""
    found = opened(batches).get(EDGE, nothing())
    nodes, root = connected(*found)
    outbox = Outbox(targets, EDGE)
    yield from _sent(outbox, nodes, root.view(np.uint64), targets)
    if both:
        yield from _sent(outbox, root, nodes.view(np.uint64), targets)
    yield from outbox.sent()


def connected(nodes: Ints, others: Hashes) -> tuple[Ints, Ints]:
    """Return each node but the least of its component, and the least."""
    known, place = np.unique(np.concatenate([nodes, others.view(np.int64)]), return_inverse=True)
    label = graph.components(len(known), place[: len(nodes)], place[len(nodes) :])
    linked = label != np.arange(len(known))
    return known[linked], known[label[linked]]


def _small_star(batches: Iterator[Any]) -> Iterator[Any]:
    """Link every node and its smaller neighbours to the least of them."""
    nodes, others = opened(batches).get(EDGE, nothing())
    yield from _edges(*small_star(nodes, others.view(np.int64)), 0)


def small_star(nodes: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Return the edges of a small star operation; every node has all its smaller neighbours here."""
    known, place = np.unique(nodes, return_inverse=True)
    least = np.full(len(known), (1 << 63) - 1)
    np.minimum.at(least, place, others)
    return np.concatenate([others, known]), np.concatenate([least[place], least])


def _large_star(batches: Iterator[Any]) -> Iterator[Any]:
    """Link the larger neighbours of every node to the least one that it knows; count what is not a star yet."""
    nodes, others = opened(batches).get(EDGE, nothing())
    yield from _edges(*large_star(nodes, others.view(np.int64)))


def large_star(nodes: Ints, others: Ints) -> tuple[Ints, Ints, int]:
    """Return the edges of a large star operation, every node with all its neighbours here; and how many nodes have two
    smaller neighbours, or smaller and larger ones: if nowhere one has, all edges lead to the least of a component."""
    pairs = _unique(nodes, others)
    known, place = np.unique(pairs[0], return_inverse=True)
    least = known.copy()
    np.minimum.at(least, place, pairs[1])
    up = pairs[1] > pairs[0]
    smaller = np.bincount(place[~up], minlength=len(known))
    larger = np.bincount(place[up], minlength=len(known))
    loose = int(((smaller > 1) | ((smaller > 0) & (larger > 0))).sum())
    return pairs[1][up], least[place[up]], loose


def _edges(nodes: Ints, others: Ints, loose: int) -> Iterator[Any]:
    """Yield edges, each once, and their number."""
    differ = nodes != others
    pairs = _unique(nodes[differ], others[differ])
    yield from parcel(0, EDGE, pairs[0], pairs[1].view(np.uint64))
    yield from parcel(0, COUNT, np.array([len(pairs[0])]), np.array([loose], np.uint64))


def _unique(nodes: Ints, others: Ints) -> tuple[Ints, Ints]:
    """Return each pair once, sorted."""
    order = np.lexsort((others, nodes))
    nodes, others = nodes[order], others[order]
    new = np.ones(len(nodes), bool)
    new[1:] = (nodes[1:] != nodes[:-1]) | (others[1:] != others[:-1])
    return nodes[new], others[new]
