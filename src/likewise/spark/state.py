"""The state of a finished run on Spark in `state/`: what `rethreshold` builds on, as partitioned Parquet.

state.json has a checksum of itself, which run.json repeats; Parquet files have those of their pages.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.base.arrays import Hashes, Ints
from likewise.base.runlog import SCHEMA
from likewise.errors import DamagedError, IncompatibleError, MissingInput
from likewise.io.publish import MANIFEST
from likewise.io.seals import read_sealed, write_sealed
from likewise.jobs.state import FOLDER
from likewise.search.prepare import NO_ROWS
from likewise.search.scored import ScoredPairs
from likewise.spark.copies import LINK, Repeated, RowLinks
from likewise.spark.corpus import Corpus
from likewise.spark.exchange import KIND, PARCELS, collected, nothing, parcel, parcel_frame, parcel_rows
from likewise.spark.folder import RunFolder
from likewise.spark.large_pairs import opened_pairs, pair_parcels, sorted_pairs
from likewise.spark.output import write_arrow, write_frame
from likewise.spark.rowset import RowSet
from likewise.spark.store import check_room

FORMAT = "spark-1"
"""Version of the files in `state/` of a run on Spark."""
ABOUT, ENTRIES = "state.json", "entries"
COPIES, GROUPS, PAIRS, GONE, BROKEN, LAYOUT = range(20, 26)
"""Kinds of parcels: links of copies and of equal sets; pairs; the rows removed, and those set aside, as bits; where the
rows of kept/ are."""
AGAIN = "run dedup again"


@dataclass(frozen=True)
class KeptState:
    """What a run leaves to later ones: links of copies and of equal sets, pairs of first rows, and how it was made."""

    copied: Any
    grouped: Any
    pairs: Any
    about: dict[str, Any]

    @classmethod
    def of(cls, copied: Repeated, grouped: Repeated, pairs: ScoredPairs, about: dict[str, Any]) -> KeptState:
        """Return the state of a run whose rows with duplicates are on the driver."""
        copies, groups = (
            pa.Table.from_batches(parcel(0, LINK, one.rows, one.first.view(np.uint64)), PARCELS)
            for one in (copied, grouped)
        )
        return cls(copies, groups, pa.Table.from_batches(pair_parcels(PAIRS, pairs), PARCELS), about)

    def save(
        self, folder: RunFolder, gone: RowSet, broken: RowSet | None, layout: dict[int, tuple[Ints, Hashes]]
    ) -> str:
        """Write everything, the rows that are removed and those set aside too; return the checksum of state.json.

        layout: for each file of kept/, the places at which rows begin that do not follow those before, and the places
        of these among all that are kept; and, under -1 minus its number, how many rows it has.
        """
        begins, places, start = [NO_ROWS], [NO_ROWS], 0
        for number in sorted(one for one in layout if one >= 0):
            begins.append(layout[number][0] + start)
            places.append(layout[number][1].view(np.int64))
            start += int(layout[-1 - number][0][0])
        order = np.concatenate(begins), np.concatenate(places).view(np.uint64)
        here = [*_bits(GONE, gone), *([] if broken is None else _bits(BROKEN, broken)), *parcel(0, LAYOUT, *order)]
        parts = {COPIES: self.copied, GROUPS: self.grouped, PAIRS: self.pairs}
        if all(isinstance(one, pa.Table) for one in parts.values()):
            tables = [one.set_column(1, KIND, pa.array([kind] * len(one), pa.int32())) for kind, one in parts.items()]
            write_arrow(pa.concat_tables([pa.Table.from_batches(here, PARCELS), *tables]), folder / ENTRIES)
        else:
            frame = parcel_frame(folder.session, pa.Table.from_batches(here, PARCELS))
            for kind, other in parts.items():
                known = parcel_frame(folder.session, other) if isinstance(other, pa.Table) else other
                frame = frame.unionAll(known.withColumn(KIND, _literal(kind)))
            write_frame(frame, folder / ENTRIES)
        self.about["items"], self.about["lines"] = gone.total, None if broken is None else broken.total
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / ABOUT
            checksum = write_sealed({"format": FORMAT, **self.about}, path)
            (folder / ABOUT).write(path.read_text(encoding="utf-8"))
        return checksum


@dataclass(frozen=True)
class SparkState:
    """The state of a finished run, as it is read."""

    folder: RunFolder
    about: dict[str, Any]
    run: dict[str, Any]

    @classmethod
    def load(cls, folder: RunFolder) -> SparkState:
        """Read run.json and state.json; raise if there is no state that this version can use."""
        run, _ = _sealed(folder / MANIFEST, f"{folder.path}: there is no finished run in this folder; {AGAIN}")
        if run.get("schema") != SCHEMA:
            raise IncompatibleError(f"{folder.path}: the run was made by another version of likewise; run it again")
        known = run["details"].get("state")
        if known is None:
            raise MissingInput(
                f"{folder.path}: the run left no state (it was made with --no-state, or from a DataFrame); run it again"
            )
        about, checksum = _sealed(folder / FOLDER / ABOUT, f"{folder.path}/{FOLDER}/{ABOUT} is missing; {AGAIN}")
        if checksum != known:
            raise DamagedError(f"{folder.path}/{FOLDER} belongs to another run than {MANIFEST}; {AGAIN}")
        if about["format"] != FORMAT:
            raise IncompatibleError(f"{folder.path}: the run was made by another version of likewise; run it again")
        return cls(folder, about, run)

    def frame(self, kind: int) -> Any:
        """Return parcels of the state."""
        whole = self.folder.session.read.parquet((self.folder / FOLDER / ENTRIES).path)
        return whole.where(f"{KIND} = {kind}")

    def entries(self, kind: int) -> tuple[Ints, Hashes]:
        """Return parcels of the state, brought to the driver."""
        return collected(self.frame(kind).toArrow()).get(kind, nothing())

    def links(self, kind: int, corpus: Corpus) -> RowLinks:
        """Return the rows that repeat another one."""
        frame, empty = self.frame(kind).withColumn(KIND, _literal(LINK)), np.array(self.about["empty"], np.int64)
        if corpus.large:
            return RowLinks(RowSet(len(corpus), parcel_rows(frame)), None, frame, empty)
        rows, first = collected(frame.toArrow()).get(LINK, nothing())
        here = Repeated.of(rows, first.view(np.int64))
        return RowLinks(RowSet(len(corpus), [here.rows]), here, None, empty)

    def pairs(self, threshold: float, memory: int) -> ScoredPairs:
        """Return the pairs that reach a threshold, sorted; raise if they need more memory than the driver may use."""
        check_room("pairs", self.folder / FOLDER / ENTRIES, memory)
        left, right, similarity = opened_pairs(*self.entries(PAIRS))
        high = similarity >= threshold
        return sorted_pairs((left[high], right[high], similarity[high]))

    @cached_property
    def gone(self) -> RowSet:
        """The rows that were removed."""
        return RowSet.from_words(self.about["items"], self.entries(GONE)[0])

    @property
    def missing(self) -> list[RowSet]:
        """The rows that were removed and, of the input, those that were set aside, if any."""
        lines = self.about["lines"]
        return [self.gone, *([] if lines is None else [RowSet.from_words(lines, self.entries(BROKEN)[0])])]

    def names(self, places: Ints) -> Ints:
        """Return the numbers of rows in the input by their places among those kept: ids of rows without any other."""
        rows = places
        for missing in self.missing:
            rows = missing.others(rows)
        return rows

    @property
    def layout(self) -> tuple[Ints, Ints]:
        """The places in the files of kept/ at which rows begin that do not follow those before, and their places among
        all that were kept."""
        begins, places = self.entries(LAYOUT)
        return begins, places.view(np.int64)

    def kept(self) -> KeptState:
        """Return the state as a run at another threshold leaves it: as it is."""
        about = {name: value for name, value in self.about.items() if name != "format"}
        return KeptState(self.frame(COPIES), self.frame(GROUPS), self.frame(PAIRS), about)


def _literal(kind: int) -> Any:
    from pyspark.sql import functions as F

    return F.lit(kind).cast("int")


def _bits(kind: int, rows: RowSet) -> list[Any]:
    return list(parcel(0, kind, rows.words, np.zeros(len(rows.words), np.uint64)))


def _sealed(place: RunFolder, missing: str) -> tuple[dict[str, Any], str]:
    """Return the object in a JSON file and its checksum."""
    text = place.read()
    if text is None:
        raise MissingInput(missing)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / place.path.rsplit("/", 1)[-1]
        path.write_text(text, encoding="utf-8", newline="")
        return read_sealed(path, AGAIN)
