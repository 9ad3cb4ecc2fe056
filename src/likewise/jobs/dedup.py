"""`dedup`: find near-duplicates, keep one document of each group, and explain every removal."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints, Sets
from likewise.base.runlog import Progress, RunLog
from likewise.errors import InputError, ParameterError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.read import ReadOptions, Source
from likewise.io.seals import changed_files
from likewise.io.workspace import Workspace
from likewise.jobs.addition import Addition
from likewise.jobs.against import Against, Joined
from likewise.jobs.engines import cluster_engine
from likewise.jobs.inputs import opened, reading
from likewise.jobs.reference_items import QueriedItems, is_index
from likewise.jobs.result import Dedup
from likewise.jobs.settings import Resources, Settings
from likewise.kernels.hashing import mix
from likewise.search.cluster import Keep, Removal, removals
from likewise.search.items import Items, TextItems
from likewise.search.load import Collection, collect
from likewise.search.matches import Sides, VerifiedPairs, count_different
from likewise.search.search import Search
from likewise.shingle import Shingler

OWNER = "dedup"

FORECAST_FROM = 200_000_000
"""Bytes of input from which a run is forecast: below this the forecast itself is a noticeable part of the run."""

mix(np.uint64(0))  # the first call of a kernel takes Numba a third of a second: let it be part of the import


def dedup(
    source: Any,
    *,
    text: str = "text",
    id: str | None = None,
    shingle: str | Shingler = "words:5",
    threshold: float = 0.8,
    recall: float = 0.99,
    method: str = "auto",
    estimate: bool = False,
    keep: str | Keep = "first",
    threads: int | None = None,
    seed: int = 1,
    sketch: str = "fast",
    bands: int | None = None,
    rows: int | None = None,
    max_slots: int = DEFAULT_MAX_SLOTS,
    ignore_common: float | None = None,
    certify: int | None = None,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    lines: bool = False,
    html: bool = False,
    plain: bool = False,
    hidden: bool = False,
    out: str | Path | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    fresh: bool = False,
    against: Any = None,
    add: bool = False,
    state: bool = True,
    batch_rows: int | None = None,
    progress: Progress | None = None,
    engine: str = "auto",
    master: str | None = None,
) -> Dedup:
    """Find near-duplicates, keep one document of each group, and record for each removed one which was kept.

    source: a path, a glob, or a list of them; a list of strings; a pandas, polars or pyarrow table; a Hugging Face
        dataset; `Sets`; a Spark DataFrame.
    text, id: the columns with the documents and their ids; without id, the row number (or the path, for text files).
    shingle: how a document becomes a set. `Words(5)` or "words:5", `Chars(9)` or "chars:9"; `Tokens()` or "tokens" for
        sets of tokens, one per line of a text file or per row of a list column; `StopWords("en")` or "stopwords:en" for
        web pages with an article among other text; `Urls()` or "urls" for URLs, one per line of a text file.
    threshold, recall: a pair with this Jaccard similarity is found with at least this probability; every pair
        reported has at least this similarity, computed exactly.
    method: "lsh" finds pairs by locality-sensitive hashing, with the requested recall; "exact" finds all of them, and
        is faster for high thresholds and short documents; "auto" uses the one that is predicted to be cheaper
        (`.stats["method"]`).
    estimate: of the pairs that LSH proposes, take those whose signatures agree in at least the fraction `threshold` of
        their slots, and do not compare the sets; see `pairs`. Tables then have the columns estimated_similarity and
        standard_error in place of similarity, and what is said of similarity below holds for the estimates.
    keep: first, last, longest, shortest, max:COLUMN, min:COLUMN. A removed document is always similar, by the
        threshold, to the document that is kept in its place; kept documents are not similar to each other.
    threads, batch_rows: change the speed, never the result. seed: changes which few pairs are missed.
    sketch: "fast" or "classic" MinHash signatures. bands, rows: this banding instead of the one that follows from
        threshold and recall. max_slots: the longest signature to consider.
    ignore_common: ignore shingles that more than this fraction of the documents contain (menus, licences,
        templates) before similarity is computed. A document that has no others keeps them.
    certify: measure the recall of the run on a sample of this many documents (`.stats["certificate"]`); by default as
        many as cost about 5 % of the run, 0 for none.
    on_error: "stop" at a broken row, or "skip" it (counted, and listed in `.aside`). encoding_errors: what to do with
        invalid UTF-8, "strict" (it is an error) or "replace".
    lines: text files hold one document per line. html: documents are HTML pages, and their text is compared (needs
        `pip install 'likewise[html]'`). plain: every file is text, whatever its name and its bytes. hidden: also read
        files and folders whose names begin with a dot.
    out: a folder for the result. An interrupted run of files there is resumed; `fresh` starts over.
    memory: how much to use, such as "4GiB"; by default half of the free memory. Data that does not fit is kept in
    files, in
        the folder `spill`, or in `out`, or in the folder of temporary files.
    against: the folder of a finished run, an `Index`, the folder or URL of one, or a list of these. Documents that are
        similar to one that was kept there, or that the index holds, are removed too. The settings must be the same.
    add: add the documents that are kept to the index in `against`, when the result is written; they need ids.
    state: write to `out` what `rethreshold` and a later `against` need.
    progress: called with (stage, done, total).
    engine: "local", in this process; "spark", on a Spark cluster, with the same answer and tables that are Spark
        DataFrames (needs `pip install 'likewise[spark]'` and Java 17); "auto", local but for Spark DataFrames.
    master: of Spark, such as "local[4]" or "spark://host:7077"; by default that of the running session, or "local[*]".

    A parameter that has no effect in a call is an error.

    >>> result = dedup(["to be or not to be, that is it", "To be or not to be: that is it!", "hello"])
    >>> result.removed.to_pylist()
    [{'id': 1, 'kept_id': 0, 'similarity': 1.0, 'kind': 'near'}]
    """
    given = dict(locals())
    on_cluster = cluster_engine(OWNER, engine, master, source)
    asked = against if isinstance(against, list) else [] if against is None else [against]
    checks.flag(OWNER, "add", add)
    if not asked:
        checks.unused(OWNER, {"add": (add, False)}, "without an index in 'against'")
    if on_cluster is not None:
        if add or any(map(is_index, asked)):
            raise ParameterError(
                f"The 'against' parameter of {OWNER} cannot be an index with engine='spark'. Name finished runs, or use"
                " engine='local'."
            )
        del given["add"]
        return cast(Dedup, on_cluster(given))
    log = RunLog.of(progress)
    policy = Keep.parse(keep)
    if out is None:
        checks.unused(OWNER, {"fresh": (fresh, False), "state": (state, True)}, "without 'out'")
    settings = Settings(
        OWNER, shingle, threshold, recall, seed, sketch, bands, rows, max_slots, ignore_common, certify, method,
        estimate,
    )  # fmt: skip
    if asked:
        checks.unused(OWNER, settings.given("estimate"), "with 'against', which compares documents")
    with closing(Against(asked)) if asked else nullcontext() as earlier:
        target = earlier.target() if earlier is not None and add else None
        settings = settings if earlier is None else earlier.agreed(settings)
        resources = Resources.of(OWNER, threads, memory, spill)
        options = reading(
            settings, resources, text, id, on_error, encoding_errors, lines, html, batch_rows, policy.column, plain,
            hidden,
        )  # fmt: skip
        source = opened(settings, options, source)[0]
        folder = None if out is None else Path(out)
        return _Run(source, settings, options, policy, resources, earlier, target, folder, log).done(fresh, state)


@dataclass(frozen=True)
class _Run:
    """One run: what it works on, how, and with what."""

    source: Source | Sets
    settings: Settings
    options: ReadOptions
    policy: Keep
    resources: Resources
    earlier: Against | None
    target: QueriedItems | None
    out: Path | None
    log: RunLog

    def done(self, fresh: bool, state: bool) -> Dedup:
        """Do all of it, or what an interrupted run has left to do."""
        addition = Addition(self.target, self.identity) if self.target is not None else None
        with _workspace(self, fresh) as space:
            if addition and self.out is not None and not fresh and not space.resumed:
                addition.check_new(self.out)
            self.forecast(space)
            collection = self.read(space)
            if addition:
                addition.check_ids(collection)
            if self.earlier is not None:
                self.earlier.ask(_items(collection), space, self.log, self.resources.threads)
            ranks = self.ranks(collection)
            matches = self.search(collection, ranks, space)
            removal = self.remove(collection, matches, ranks)
            result = self.result(collection, matches, removal, space, state)
            new = addition.prepared(collection, result.keep_mask, self.resources.threads) if addition else None
            if self.out is not None:
                self.check_unchanged()
                result.write(self.out, space)
            if addition and new is not None:
                addition.make(collection, new, result, self.log, self.out)
            if self.out is not None:
                space.finish()
        return result

    @cached_property
    def inputs(self) -> dict[str, list[int]] | None:
        """The size, time and a sample of each input file; None for objects in memory, and if nothing is written."""
        return self.source.identity() if self.out is not None and isinstance(self.source, Source) else None

    @property
    def parameters(self) -> dict[str, Any]:
        """What the user set, for run.json."""
        options, earlier = self.options, self.earlier
        return {
            **self.settings.to_dict(self.settings.shingler),
            "keep": str(self.policy),
            "text": options.text,
            "id": options.id,
            "on_error": options.on_error,
            "encoding_errors": options.encoding_errors,
            "lines": options.lines,
            "sets": options.sets,
            "html": options.html,
            "plain": options.plain,
            "hidden": options.hidden,
            "against": [one.place for one in earlier.known] if earlier else None,
            "add": self.target is not None,
        }

    @property
    def identity(self) -> dict[str, Any]:
        """What a run in a folder must share with the one that was interrupted there."""
        parameters = {**self.parameters, "shingle": str(self.settings.shingle)}
        if self.earlier is not None:
            parameters["against"] = [one.identity for one in self.earlier.known]
        return {"parameters": parameters, "inputs": self.inputs or {}}

    @property
    def searching(self) -> Search:
        """The search that the settings describe; common shingles are those of earlier runs, if there are any."""
        search = self.settings.search(self.resources.threads, self.resources.budget)
        return replace(search, ignore_common=None, common=self.earlier.common) if self.earlier else search

    def forecast(self, space: Workspace) -> None:
        """Predict what a large new run needs, and refuse to start it where the disk is too small."""
        source, out = self.source, self.out
        if out is None or space.resumed or self.earlier or not isinstance(source, Source):
            return
        if (source.total_bytes or 0) < FORECAST_FROM:
            return
        from likewise.jobs.plan import predicted

        with self.log.stage("forecast"):
            forecast = predicted(source, self.settings.shingle, self.searching, out)
        self.log.details["forecast"] = forecast.to_dict()
        space.check_room(forecast.spill, "what does not fit in memory")
        space.check_room(forecast.answer, "the answer", out)

    def read(self, space: Workspace) -> Collection:
        """Read the documents."""
        threads, budget = self.resources.threads, self.resources.budget
        return collect(self.source, self.options, self.settings.shingle, self.log, threads, space, budget.texts)

    def ranks(self, collection: Collection) -> Ints:
        """Return the order in which documents are kept; those of earlier runs come first."""
        items = _items(collection)
        lengths = items.lengths if self.policy.rule in ("longest", "shortest") else np.zeros(len(items), np.int64)
        ranks = self.policy.ranks(lengths, collection.scores)
        if self.earlier is None:
            return ranks
        return np.concatenate([np.arange(self.earlier.count), ranks + self.earlier.count])

    def search(self, collection: Collection, ranks: Ints, space: Workspace) -> VerifiedPairs:
        """Find the similar pairs; with earlier runs, those that have a new document."""
        items, sides = _items(collection), None
        if self.earlier is not None:
            items = Joined([*(part.items for part in self.earlier.parts), items])
            sides = Sides(self.earlier.count, across=False)
        found = self.searching.find(items, self.log, space, sides, ranks)
        self.log.counts["different"] = count_different(found, sides)
        return found

    def remove(self, collection: Collection, matches: VerifiedPairs, ranks: Ints) -> Removal:
        """Choose which documents to remove, and the document that is kept for each."""
        log, items = self.log, _items(collection)
        with log.stage("cluster"):
            pairs = matches.left, matches.right, matches.similarity
            removal = removals(matches.groups, *pairs, ranks, matches.copies, matches.empty)
            if self.earlier is not None:
                removal = _of_new(removal, self.earlier, items, self.resources.threads)
                log.counts["items"] = len(items)
                log.counts["earlier"] = sum(part.count for part in self.earlier.parts)
        return removal

    def result(
        self, collection: Collection, matches: VerifiedPairs, removal: Removal, space: Workspace, state: bool
    ) -> Dedup:
        """Put the result together, and what later runs need if they shall have it."""
        if space.resumed:
            self.log.details["resumed"] = space.resumed
        shingled = collection.shingler.to_dict() if collection.shingler else {"shingle": None}
        used = {
            "threads": self.resources.threads,
            "memory": self.resources.budget.total,
            "spilled_bytes": space.disk,
        }
        about = None
        if state and self.inputs and isinstance(self.source, Source):
            about = {
                "threshold": None if self.earlier else self.settings.threshold,
                "complete": self.log.details.get("crowds", {}).get("complete", True),
                "given": [os.path.abspath(path) for path in self.source.given],
                "inputs": self.inputs,
                "source": self.source.state(),
            }
        parameters = {**self.parameters, **shingled, **used}
        return Dedup(collection, matches, removal, self.log, parameters, self.earlier, about)

    def check_unchanged(self) -> None:
        """Raise if an input file has another size or time than when the run began."""
        if not self.inputs or not isinstance(self.source, Source):
            return
        now = self.source.identity(content=False) or {}
        before = {name: [size, time, 0] for name, (size, time, _) in self.inputs.items()}
        for change in changed_files(before, {name: [*facts[:2], 0] for name, facts in now.items()}):
            raise InputError(f"{change}: it changed during the run; leave it alone and run again with fresh=True")


def _items(collection: Collection) -> Items:
    assert collection.items is not None
    return collection.items


def _of_new(removal: Removal, earlier: Against, items: Items, threads: int) -> Removal:
    """Keep the removals of new documents, and find which of them are byte for byte one that was kept earlier."""
    new = removal.rows >= earlier.count
    rows, keepers = removal.rows[new], removal.keepers[new]
    similarity, identical = removal.similarity[new], removal.identical[new]
    old = np.flatnonzero((keepers < earlier.count) & (similarity == 1.0))
    if len(old) and isinstance(items, TextItems):
        identical[old] |= earlier.same_bytes(keepers[old], rows[old] - earlier.count, items, threads)
    return Removal(rows, keepers, similarity, identical)


@contextmanager
def _workspace(run: _Run, fresh: bool) -> Iterator[Workspace]:
    """Open the workspace of a run; what is done stays there when the run is interrupted."""
    if run.out is None:
        space = Workspace.temporary(run.resources.spill)
    else:
        Dedup.check_folder(run.out, run.source.files if isinstance(run.source, Source) else [])
        known = run.inputs is not None and run.settings.shingler.restorable
        space = Workspace.open(run.out, run.identity, run.resources.spill, fresh or not known)
        run.log.notes.extend(space.warnings)
    try:
        yield space
    except BaseException:
        space.discard()
        raise
    finally:
        if run.out is None:
            space.finish()
        space.close()
