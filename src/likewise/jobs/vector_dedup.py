"""`dedup` of vectors: keep one of each group that is close together, with all the columns of its row."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from likewise.base.arrays import Ints, part_at, to_arrow
from likewise.base.runlog import RunLog
from likewise.errors import ParameterError
from likewise.io.objects import kind_of
from likewise.io.read import Files, Source
from likewise.io.read.vector_rows import ArrayRows, WholeTable, opened_rows, vector_options
from likewise.io.seals import identity
from likewise.io.streams import table_of
from likewise.io.workspace import Workspace
from likewise.jobs.addition import Addition
from likewise.jobs.dedup import OWNER, DedupRequest, check_unchanged, workspace
from likewise.jobs.explain.reasons import VectorReason, explain_vectors
from likewise.jobs.explain.traces import row_of
from likewise.jobs.reference_vectors import KnownVectors, NewVectors
from likewise.jobs.result import Dedup
from likewise.jobs.settings import HASHING
from likewise.jobs.vectors import VectorSettings, aimed, read_vectors, settings_of
from likewise.search.cluster import NONE, Removal, removals
from likewise.search.load import Collection
from likewise.search.scored import Scores
from likewise.search.vectors.load import OR_ELSE, Vectors, space_of
from likewise.search.vectors.measured import near_groups
from likewise.search.vectors.spaces import Space

NO_EFFECT = (
    "shingle", "threshold", *(name for name in HASHING if name not in ("recall", "certify")), "ignore_common", "fresh",
    "state",
)  # fmt: skip
"""Parameters of the search for similar documents, and of what it leaves for later runs."""


class DedupVectors(Dedup):
    """The result of `dedup` of vectors: `.removed`, `.pairs` and `.clusters` as of documents, but with a distance.

    `.kept` has the surviving rows with all their columns, as an Arrow table; of an array, a list or .npy files it is an
    array of the kept rows. `.stats` is the content of run.json; `.save(directory)` writes everything.
    """

    def __init__(self, vectors: list[Vectors], *parts: Any) -> None:
        super().__init__(*parts)
        self._vectors = vectors

    @property
    def source(self) -> Source | None:
        """The rows that the vectors are in."""
        return self._collection.source

    def _run_json(self) -> dict[str, Any]:
        stats = super()._run_json()
        stats["details"]["kept_files"] = self._kept_files
        return stats

    def _similarities(self, left: Ints, right: Ints, similarity: Scores) -> dict[str, Callable[[slice], Any]]:
        return {"distance": lambda part: to_arrow(distances(similarity[part]))}

    def _scores(self) -> tuple[str, Scores]:
        return "distance", distances(self._similarity)

    def _table_names(self) -> Iterable[str]:
        names = super()._table_names()
        return [name for name in names if name != "kept" or not isinstance(self._collection.source, ArrayRows)]

    def explain(self, id_a: Any, id_b: Any) -> VectorReason:
        """Return why two vectors are a pair or not: how far apart they are, and what became of them.

        >>> from likewise import dedup
        >>> told = dedup([[0, 0], [3, 4], [9, 9]], measure="l2", within=5).explain(0, 1)
        >>> told.distance, told.found
        (5.0, True)
        """
        names = self._collection.ids if self._ids is None else self._ids
        sizes = [len(one.table) for one in self._vectors]
        rows = [row_of(names, sum(sizes), value) for value in (id_a, id_b)]
        low, high = np.sort(self._matches.groups.of[rows])
        found = bool(low == high or ((self._matches.left == low) & (self._matches.right == high)).any())
        a, b = (self._vectors[part].table[row] for part, row in (part_at(sizes, row) for row in rows))
        told = explain_vectors((id_a, id_b), a, b, self.stats, found)
        outcomes = (self._outcome(value, row) for value, row in zip((id_a, id_b), rows, strict=True))
        return replace(told, notes=(*told.notes, *outcomes))


def distances(closeness: Scores) -> Scores:
    """Return the distances of pairs whose similarity is the negated distance, or 1 for copies."""
    return np.where(closeness > 0, 0.0, 0 - closeness)


def check_vectors(request: DedupRequest, resumed: bool = False) -> VectorSettings:
    """Return the settings of a run; raise if one is missing, or given and has no effect.

    resumed: whether a run that was interrupted is resumed, as what an index answers is stored.
    """
    lasting = ("fresh",) if resumed else ()
    settings = settings_of(request, request.given(*(name for name in NO_EFFECT if name not in lasting)))
    if request.policy.by_length:
        rules = "first, last, none, max:COLUMN, min:COLUMN, or several of them: vectors have no length"
        raise ParameterError.of(OWNER, "keep", rules, str(request.policy))
    return settings


def dedup_vectors(request: DedupRequest, known: KnownVectors) -> DedupVectors:
    """Do what was asked for, compare with what is known, too, and write the result to the folder of the request, if it
    names one."""
    asking, out = known.grows, None if request.out is None else Path(request.out)
    settings, threads = check_vectors(request, asking and out is not None), request.resources.threads
    known.check(settings)
    target = known.target() if request.add else None
    log = RunLog.of(request.progress)
    opened = _OpenedRows(request.source, settings, request.spool)
    if out is not None:
        Dedup.check_folder(out, opened.files)
    before = {} if opened.piped else identity(opened.files)
    chosen = {**settings.to_dict(), "keep": str(request.policy), "certify": request.certify}
    run = {"parameters": {**chosen, "against": [one.identity for one in known.known], "add": request.add}}
    run["inputs"] = before
    addition = None if target is None else Addition(target, run)
    alone = nullcontext(Workspace.temporary(request.resources.spill))
    with workspace(request, run, opened.files, bool(before), log) if asking else alone as work:
        if addition and out is not None and not request.fresh and not work.resumed:
            addition.check_new(out)
        result, new = _compared(request, settings, opened, known, work, log)
        rows = addition.prepared(new, result.keep_mask, threads) if addition else None
        if out is not None:
            check_unchanged(result.source, before, " with fresh=True" if asking else "")
            result.write(out, work if asking else None)
        if addition and rows is not None:
            addition.make(new, rows, result, log, out)
        if work.lasting:
            work.finish()
    return result


def _compared(
    request: DedupRequest, settings: VectorSettings, opened: _OpenedRows, known: KnownVectors, work: Workspace,
    log: RunLog,
) -> tuple[DedupVectors, NewVectors]:  # fmt: skip
    """Read the vectors, compare them, and choose which are kept; also return them as an index takes them."""
    resources, policy = request.resources, request.policy
    (vectors,), space, _ = read_vectors(opened.given, None, settings, resources, log, policy.columns)
    space.titled, aim = vectors.title, aimed(settings, resources, space)
    source, asked = opened.rows(vectors), known.ask(space, aim, work, log)
    new, split = NewVectors(vectors, known.numbered), known.count
    if request.add:
        new.check(known.target(), log)
    if split:
        space = space_of(settings.measure, [*known.vectors, vectors], *aim.room)
        space.titled = lambda row: vectors.title(row - split) if row >= split else f"vector {row} of {known.places}"
    with threadpool_limits(1, "blas"):
        matches = near_groups(space, aim, request.certify, log, split, asked)
    with log.stage("cluster"):
        rows = len(vectors.table)
        ranks = policy.ranks(np.zeros(rows, np.int64), vectors.scores)
        ranks = np.concatenate([np.arange(split), ranks + split])
        pairs = matches.left, matches.right, matches.similarity
        removal = removals(matches.groups, *pairs, ranks, matches.copies, none=policy.rule == NONE)
        removal = _of_new(removal, split, space)
    parameters = {**settings.to_dict(), "within": aim.within, "keep": str(policy), "certify": request.certify}
    del parameters["k"], parameters["beyond"]
    used = {**parameters, "against": known.places, "add": request.add, **resources.used}
    if work.resumed:
        log.details["resumed"] = work.resumed
    if request.against:
        log.counts["earlier"] = sum(part.count for part in known.parts)
    collection = Collection(rows, None, vectors.ids, vectors.scores, source, None)
    parts = collection, matches, removal, log, used, known if request.against else None
    return DedupVectors([*known.vectors, vectors], *parts), new


def _of_new(removal: Removal, split: int, space: Space) -> Removal:
    """Keep the removals of new vectors, and find which of them are equal to a known one."""
    new = removal.since(split)
    old = np.flatnonzero((new.keepers < split) & (new.similarity == 0))
    new.identical[old] = (space.table[new.rows[old]] == space.table[new.keepers[old]]).all(axis=1)
    return new


class _OpenedRows:
    """What the user gave, ready to be read as vectors, and afterwards as the rows that these are in."""

    def __init__(self, source: Any, settings: VectorSettings, spool: Path | None) -> None:
        several = isinstance(source, list | tuple)
        named = several and source and all(isinstance(one, str | os.PathLike) for one in source)
        self._found = []
        self._vector = settings.vector
        self._kind = kind_of(source)
        self.given = source
        if isinstance(source, str | os.PathLike | Files) or named:
            files = source if isinstance(source, Files) else Files(source if several else [source])
            self._found = files.find().files
        elif not isinstance(source, np.ndarray) and not (several and not (source and isinstance(source[0], dict))):
            column = settings.vector
            self.given = table_of(source, OWNER, "source", column=column, index=True, or_else=OR_ELSE, folder=spool)

    @property
    def files(self) -> list[Path]:
        """The files, if there are any."""
        return [file.path for file in self._found]

    @property
    def piped(self) -> bool:
        """Whether one of them came as a stream."""
        return any(file.piped for file in self._found)

    def rows(self, vectors: Vectors) -> Source:
        """Return the rows of vectors that were read."""
        if not self._found:
            if isinstance(self.given, np.ndarray):
                return ArrayRows([self.given], kind=self._kind)
            if isinstance(self.given, list | tuple):
                return ArrayRows([np.asarray(self.given) if self.given else vectors.table], kind=self._kind)
            return WholeTable(self.given, self._kind, vector_options(self._vector, OWNER))
        return opened_rows(self._found, [entry["rows"] for entry in vectors.inputs], self._vector, OWNER)
