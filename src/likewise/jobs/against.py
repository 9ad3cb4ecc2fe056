"""New documents against those that are known: an earlier run kept them, or an index holds them.

The documents of a run are sketched already, and are read again only for a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Hashes, Ints, Sets, TextChunk, part_at, to_arrow
from likewise.base.copies import chunk_digests
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog
from likewise.errors import IncompatibleError
from likewise.io.publish import MANIFEST
from likewise.io.read import Files, ReadOptions, open_source
from likewise.io.seals import checksum
from likewise.io.upload import named
from likewise.io.workspace import Workspace
from likewise.jobs.reference_items import (
    KnownItems,
    ReferenceItems,
    ReferencePart,
    marks,
)
from likewise.jobs.settings import Settings
from likewise.jobs.state import State
from likewise.search.common_shingles import value_table
from likewise.search.items import BYTES_A_BYTE, Items, TextItems
from likewise.search.sketch import SketchPlan
from likewise.shingle import Shingler, shingler_of

SETTINGS = ("threshold", "seed", "sketch", "ignore_common")
"""Settings that change which pairs are similar or which of them are found; those of all runs must be the same."""

Asked = TypeVar("Asked", bound=Settings)


class KeptItems(Items):
    """The documents that a finished run kept, with their band keys from its state."""

    def __init__(self, state: State, shingler: Shingler) -> None:
        self.state = state
        self.shingler = shingler
        self.common = value_table(state.common) if len(state.common) else None
        self._count = len(state.kept)
        self._mean = int(state.run["counts"].get("bytes", 0) / max(1, state.run["counts"]["items"]))

    def __len__(self) -> int:
        return self._count

    @property
    def lengths(self) -> Ints:
        """Unknown, and not needed: kept documents stay kept."""
        return np.zeros(self._count, np.int64)

    def digests(self, threads: int) -> Hashes:
        """Return fingerprints that are all different: no two kept documents are copies."""
        return marks(str(self.state.directory), np.arange(self._count))

    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Copy the keys from the state of the run."""
        keys = self.state.keys
        for band in range(plan.banding.b):
            plan.out.put_column(slice(0, len(rows)), band, keys.column(band)[rows])
        plan.tick(len(rows))
        return self.state.units[rows]

    def chunks(self, rows: Ints, threads: int) -> Iterator[tuple[TextChunk, Ints, slice]]:
        """Yield (documents, rows among them, their places in `rows`), reading the kept files once."""
        parameters = self.state.run["parameters"]
        options = ReadOptions(
            text=parameters["text"],
            lines=parameters["lines"],
            sets=parameters.get("sets", False),
            html=parameters.get("html", False),
            plain=parameters.get("plain", False),
            encoding_errors=parameters["encoding_errors"],
            id=parameters.get("group"),
            group=parameters.get("group"),
        )
        start = 0
        for batch in open_source(Files(self.state.kept_files(threads)), options).batches(threads):
            low, high = np.searchsorted(rows, [start, start + batch.num_rows])
            if high > low:
                yield TextChunk.from_arrow(batch.column("text")), rows[low:high] - start, slice(int(low), int(high))
            start += batch.num_rows
        if start != self._count:
            raise IncompatibleError(
                f"{self.state.directory}: kept/ has {start} documents and the run kept {self._count};"
                " the folder has changed since; run it again"
            )

    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Shingle these documents."""
        if not len(rows):
            return iter(())
        return in_order(
            lambda task: (task[2], self.shingler.chunk_sets(task[0], task[1], self.common)),
            self.chunks(rows, threads),
            threads,
        )

    def set_bytes(self, rows: Ints) -> Ints:
        """Estimate each by the mean."""
        return np.full(len(rows), self._mean * BYTES_A_BYTE[self.shingler.name] + 64)

    def ignoring(self, common: Hashes) -> KeptItems:
        """Return itself: the run that kept these documents has settled which shingles are common."""
        return self


class Joined(Items):
    """Several collections, one after another."""

    def __init__(self, parts: list[Items]) -> None:
        self.parts = parts
        self.starts: Ints = np.cumsum([0, *map(len, parts)]).astype(np.int64)

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def lengths(self) -> Ints:
        """The lengths of all items."""
        return np.concatenate([part.lengths for part in self.parts])

    def digests(self, threads: int) -> Hashes:
        """Return the fingerprints of all items."""
        return np.concatenate([part.digests(threads) for part in self.parts])

    def _split(self, rows: Ints) -> Iterator[tuple[Items, Ints, int]]:
        cuts = np.searchsorted(rows, self.starts).tolist()
        for part, start, (low, high) in zip(self.parts, self.starts.tolist(), pairwise(cuts), strict=False):
            if high > low:
                yield part, rows[low:high] - start, low

    def keys(self, rows: Ints, plan: SketchPlan) -> Hashes:
        """Write the keys of all parts."""
        digests = [np.zeros((0, 2), np.uint64)]
        for part, inner, low in self._split(rows):
            digests.append(part.keys(inner, plan.shifted(low, len(inner))))
        return np.concatenate(digests)

    def set_batches(self, rows: Ints, threads: int) -> Iterator[tuple[slice, Sets]]:
        """Yield the sets of all parts."""
        for part, inner, low in self._split(rows):
            for place, sets in part.set_batches(inner, threads):
                yield slice(place.start + low, place.stop + low), sets

    def set_bytes(self, rows: Ints) -> Ints:
        """Ask each part; the rows may come in any order."""
        order = np.argsort(rows, kind="stable")
        out = np.zeros(len(rows), np.int64)
        for part, inner, low in self._split(rows[order]):
            out[order[low : low + len(inner)]] = part.set_bytes(inner)
        return out

    def ignoring(self, common: Hashes) -> Joined:
        """Ask each part."""
        return Joined([part.ignoring(common) for part in self.parts])


class EarlierRun(ReferenceItems):
    """A finished run: the documents that it kept."""

    def __init__(self, directory: str | Path) -> None:
        self.state = State.load(directory)
        check_runs([self.state])
        self.where = named(str(self.state.directory))
        self.settings = run_settings(self.state)
        self.items = KeptItems(self.state, self.settings["shingle"])

    @property
    def common(self) -> Hashes:
        """The shingles that the run left out."""
        return self.state.common

    @property
    def place(self) -> str:
        """The folder."""
        return named(str(self.state.directory.absolute()))

    @property
    def identity(self) -> list[Any]:
        """The folder, and the checksum of run.json."""
        return [self.place, checksum(self.state.directory / MANIFEST)]

    def part(self, items: Items, space: Workspace, log: RunLog, threads: int, step: str) -> ReferencePart:
        """Return all documents: their band keys are known."""
        return ReferencePart(self.where, kept_ids(self.state), len(self.items), self.items, self._digests)

    def document(self, row: int) -> str:
        """Return one of the kept documents."""
        chunk, local, _ = next(self.items.chunks(np.array([row]), 1))
        return chunk.text(int(local[0]))

    def _digests(self, rows: Ints, threads: int) -> Hashes:
        digests = np.zeros((len(rows), 2), np.uint64)
        for chunk, inner, place in self.items.chunks(rows, threads):
            digests[place] = chunk_digests(chunk, inner)
        return digests


class Against(KnownItems[ReferenceItems, ReferencePart]):
    """The finished runs and the indexes that new documents are compared with."""

    def check_together(self) -> None:
        """Raise if new documents cannot be compared with all of these in one way."""
        check_runs([one.state for one in self.known if isinstance(one, EarlierRun)])
        for one in self.known[1:]:
            check_settings(self.known[0], one)

    @property
    def where(self) -> str:
        """The first of them, for error messages."""
        return self.known[0].where

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that new documents must share."""
        return self.known[0].settings

    @property
    def common(self) -> Hashes:
        """The shingles that are left out as too common."""
        return self.known[0].common

    def agreed(self, settings: Asked) -> Asked:
        """Return these settings with the shingler, the banding and the method of what is known.

        Raise if other ones were asked for: new documents are compared in the same way as the earlier ones.
        """
        chosen = self.settings
        known, asked = chosen["shingle"].to_dict(), settings.shingler.to_dict()
        compared = {name: (known.get(name), asked.get(name)) for name in known | asked}
        for name in (*SETTINGS, "bands", "rows", "method"):
            value = getattr(settings, name)
            if value is not None and (name, value) != ("method", "auto"):
                compared[name] = chosen[name], value
        for name, (before, now) in compared.items():
            if before != now:
                raise IncompatibleError(
                    f"{self.where} was made with {name} {before!r} and this run has {now!r};"
                    " new documents are compared in the same way"
                )
        same = {name: chosen[name] for name in ("shingle", "bands", "rows", "method")}
        return replace(settings, **same)

    def document(self, row: int) -> str:
        """Return one of the known documents that take part in the search."""
        number, inner = part_at((len(part.ids) for part in self.parts), row)
        return self.known[number].document(inner)

    def ask(self, items: Items, space: Workspace, log: RunLog, threads: int) -> None:
        """Find out which known items take part in the search for these new ones."""
        if len(self.common):
            items = items.ignoring(value_table(self.common))
        for number, one in enumerate(self.known, 1):
            self.parts.append(one.part(items, space, log, threads, f"known-{number}"))

    def same_bytes(self, old: Ints, new: Ints, items: TextItems, threads: int) -> NDArray[np.bool_]:
        """Return which pairs of a known and a new document are identical, byte for byte."""
        first = np.unique(old)
        digests = np.zeros((len(first), 2), np.uint64)
        starts = self._starts
        for part, start, (low, high) in zip(self.parts, starts, pairwise(np.searchsorted(first, starts)), strict=False):
            if high > low:
                digests[low:high] = part.digests(first[low:high] - start, threads)
        second = np.unique(new)
        fresh = np.zeros((len(second), 2), np.uint64)
        for stored, inner, place in items.texts.split(second):
            fresh[place] = chunk_digests(stored.load(), inner)
        same: NDArray[np.bool_] = (digests[np.searchsorted(first, old)] == fresh[np.searchsorted(second, new)]).all(
            axis=1
        )
        return same


def check_runs(states: Sequence[State]) -> None:
    """Raise if new documents cannot be compared with all of these runs in one way."""
    for state in states:
        if state.run["parameters"].get("estimate"):
            raise IncompatibleError(
                f"{state.directory}: the similarities of that run are estimates, and new documents cannot be"
                " compared with it; run it again without estimate"
            )
        if state.run["parameters"].get("measure", "jaccard") != "jaccard":
            raise IncompatibleError(
                f"{state.directory}: that run compared by {state.run['parameters']['measure']}, and new documents are"
                " compared with earlier ones by Jaccard similarity"
            )
    for state in states[1:]:
        first = states[0]
        difference = _difference(first, state)
        if difference:
            raise IncompatibleError(
                f"{first.directory} and {state.directory} were made with different settings: {difference}"
            )


def shingler_of_run(state: State) -> Shingler:
    """Return the shingler of a run."""
    try:
        return shingler_of(state.run["parameters"])
    except KeyError as error:
        name = state.run["parameters"].get("shingle")
        raise IncompatibleError(f"{state.directory}: a run with the shingler {name!r} cannot be built upon") from error


def run_settings(state: State) -> dict[str, Any]:
    """Return the settings of a run that new documents must share."""
    chosen = {name: state.run["parameters"][name] for name in SETTINGS}
    bands, rows = state.about["bands"], state.about["rows"]
    method = "lsh" if bands else "exact"
    shingler = shingler_of_run(state)
    return {**chosen, "shingle": shingler, "bands": bands or None, "rows": rows or None, "method": method}


class KnownSettings(Protocol):
    """What is known of how documents were compared."""

    @property
    def where(self) -> str:
        """What the user calls them."""

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that new documents must share."""

    @property
    def common(self) -> Hashes:
        """The shingles that are left out."""


def check_settings(first: KnownSettings, other: KnownSettings) -> None:
    """Raise if new documents cannot be compared with both, one of which is an index, in one way."""
    before, now = ({**one.settings, **one.settings["shingle"].to_dict()} for one in (first, other))
    for name in {"method": "", **before, **now}:
        if before.get(name) != now.get(name) and name != "ignore_common":
            raise IncompatibleError(
                f"{first.where} and {other.where} were made with different settings: "
                f"{name} is {before.get(name)!r} and {now.get(name)!r}"
            )
    if not np.array_equal(first.common, other.common):
        raise IncompatibleError(
            f"{first.where} and {other.where} were made with different settings: they ignore different common shingles"
        )


def _difference(a: State, b: State) -> str:
    if (a.about["bands"], a.about["rows"]) != (b.about["bands"], b.about["rows"]):
        return "their bands and rows differ, or one is exact; make the second one with --against the first"
    shinglers = shingler_of_run(a).to_dict(), shingler_of_run(b).to_dict()
    before = {**{name: a.run["parameters"].get(name) for name in SETTINGS}, **shinglers[0]}
    now = {**{name: b.run["parameters"].get(name) for name in SETTINGS}, **shinglers[1]}
    for name in before | now:
        if before.get(name) != now.get(name):
            return f"{name} is {before.get(name)!r} and {now.get(name)!r}"
    if not np.array_equal(a.common, b.common):
        return "they ignore different common shingles; make the second one with --against the first"
    return ""


def kept_ids(state: State) -> Any:
    """Return the ids of the documents that a run kept."""
    return state.ids.take(to_arrow(state.kept))
