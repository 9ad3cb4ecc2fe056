"""Steps of a linkage that are kept in its folder until it is done, so that an interrupted run goes on from the last.

Kept are the candidates, and how the fields of each agree, if it took longer than PATIENCE to find them. Reading,
learning and deciding are done again.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from likewise.apps.link.blocking import RecordPairs
from likewise.apps.link.comparison import Compared
from likewise.apps.link.request import LinkRequest
from likewise.apps.link.terms import WeightedTerms
from likewise.base.arrays import Ints
from likewise.base.runlog import RunLog
from likewise.errors import OutputError
from likewise.io.read.find import files_of
from likewise.io.seals import identity
from likewise.io.workspace import Draft, Workspace
from likewise.search.prepare import PATIENCE

BLOCK, COMPARE = "block", "compare_fields"
Blocked = tuple[RecordPairs, WeightedTerms | None]


class LinkCheckpoints:
    """What a run has found so far, in the workspace of its folder; without a folder, nothing is kept."""

    def __init__(self, space: Workspace, log: RunLog, kept: bool) -> None:
        self.space = space
        self._log = log
        self._kept = kept
        self._taken: list[str] = []

    def blocked(self, find: Callable[[], Blocked]) -> Blocked:
        """Return the candidates, and the terms of records if there are any: the kept ones, or those that are found."""
        space = self.space
        if space.has(BLOCK):
            about = self._take(BLOCK)
            pairs = RecordPairs(space.array(BLOCK, "left"), space.array(BLOCK, "right"), about["ways"], about["told"])
            if about["terms"] is None:
                return pairs, None
            offsets, terms, weights = (space.array(BLOCK, name) for name in ("offsets", "terms", "weights"))
            return pairs, WeightedTerms(offsets, terms, weights, about["terms"])
        begun = time.perf_counter()
        pairs, rows = find()

        def save(draft: Draft) -> None:
            draft.save(left=pairs.left, right=pairs.right)
            if rows is not None:
                draft.save(offsets=rows.offsets, terms=rows.terms, weights=rows.weights)
            size = None if rows is None else rows.size
            draft.commit({"ways": pairs.ways, "told": pairs.notes, "terms": size, **self._log.snapshot()})

        self._keep(BLOCK, begun, save)
        return pairs, rows

    def compared(self, left: Ints, right: Ints, compare: Callable[[], Compared]) -> Compared:
        """Return how the fields of these pairs agree; labels may have added pairs since, which are compared anew."""
        if not self._kept:
            return compare()
        space = self.space
        pairs = zlib.crc32(right.data, zlib.crc32(left.data))
        if space.has(COMPARE) and space.notes(COMPARE)["pairs"] == pairs:
            about = self._take(COMPARE)
            levels = [space.array(COMPARE, f"level-{place}") for place in range(about["levels"])]
            return levels, space.array(COMPARE, "alike")
        begun = time.perf_counter()
        levels, alike = compare()

        def save(draft: Draft) -> None:
            draft.save(alike=alike, **{f"level-{place}": one for place, one in enumerate(levels)})
            draft.commit({"pairs": pairs, "levels": len(levels), **self._log.snapshot()})

        self._keep(COMPARE, begun, save)
        return levels, alike

    def _keep(self, step: str, begun: float, save: Callable[[Draft], None]) -> None:
        """Save what was found, if it took long; a run that has no room for it goes on without."""
        if not self._kept or time.perf_counter() - begun <= PATIENCE:
            return
        try:
            with self.space.making(step) as draft:
                save(draft)
        except OutputError as error:
            self._kept = False
            why = getattr(error.__cause__, "strerror", None) or error
            self._log.notes.append(f"{self.space.large}: what was found could not be kept for a resumed run: {why}")

    def _take(self, step: str) -> dict[str, Any]:
        """Return the notes of a step of the interrupted run, whose time counts for this one."""
        about = self.space.notes(step)
        self._log.restore(about)
        self._taken.append(step)
        self._log.details["resumed"] = list(self._taken)
        return about


@contextmanager
def checkpoints(request: LinkRequest, log: RunLog) -> Iterator[LinkCheckpoints]:
    """Open the folder of a run for the steps that are kept; they stay there if the run is interrupted.

    If a table, or whatever else the steps depend on, is no file, or came by standard input, nothing would tell whether
    it is the same in the next run, and nothing is kept.
    """
    if request.out is None:
        space = Workspace.temporary()
        try:
            yield LinkCheckpoints(space, log, False)
        finally:
            space.finish()
        return
    files = [one for one in map(files_of, request.sources) if one is not None]
    found = [file for some in files for file in some.find().files]
    known = len(files) == len(request.sources) and not any(file.piped for file in found)
    inputs = identity(file.path for file in found) if known else {}
    about = {"parameters": request.decisive, "inputs": inputs, "likewise": version("likewise")}
    space = Workspace.open(request.out, about, fresh=request.fresh or not known)
    log.notes.extend(space.warnings)
    try:
        yield LinkCheckpoints(space, log, known)
        space.finish()
    except BaseException:
        space.discard()
        raise
    finally:
        space.close()
