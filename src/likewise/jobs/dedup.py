"""The two jobs: `dedup` removes near-duplicates and explains each removal, `pairs` lists similar pairs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Sets
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog
from likewise.errors import IncompatibleError, InputError
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.io.changes import changed_files
from likewise.io.publish import MANIFEST
from likewise.io.read import Source, open_source
from likewise.io.workspace import Workspace, checksum
from likewise.jobs.against import Against, Joined
from likewise.jobs.result import Dedup
from likewise.jobs.settings import Settings, read_options
from likewise.kernels.hashing import mix
from likewise.search.cluster import Keep, Removal, removals
from likewise.search.items import Items, TextItems
from likewise.search.load import collect
from likewise.search.matches import Sides
from likewise.search.search import Search
from likewise.shingle import Shingler, parse_shingler

FORECAST_FROM = 200_000_000
"""Bytes of input from which a run is forecast."""

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
    out: str | Path | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    fresh: bool = False,
    against: str | Path | list[str | Path] | None = None,
    state: bool = True,
    batch_rows: int | None = None,
    progress: Progress | None = None,
) -> Dedup:
    """Find near-duplicates, keep one of each set of them, and say for each removed one which document stands for it.

    source: a path, a glob, or a list of them; a list of strings; a pandas, polars or pyarrow table; a Hugging Face
    dataset; `Sets`.
    text, id: the columns with the documents and their ids; without id, the row number (or the path, for text files).
    shingle: `Words(5)`, `Chars(9)` or "words:5", "chars:9"; `Tokens()` or "tokens" for sets of tokens, one a line of
        a text file or a list column; `StopWords("en")` or "stopwords:en" for pages with an article among other things.
    threshold, recall: a pair with this Jaccard similarity is found with at least this probability; every pair
        reported has at least this similarity, exactly computed.
    method: "lsh" finds pairs by locality-sensitive hashing, with the recall asked for; "exact" finds all of them, and
        is faster for high thresholds and short documents; "auto" predicts which is cheaper (`.stats["method"]`).
    keep: first, last, longest, shortest, max:COLUMN, min:COLUMN. A removed document is always similar, by the
        threshold, to the very document that is kept for it; kept documents are not similar to each other.
    threads, batch_rows: change the speed, never the answer. seed: changes which few pairs are missed.
    bands, rows: take this banding instead of the one that follows from threshold and recall.
    ignore_common: leave out shingles that more than this fraction of the documents carry (menus, licences, templates)
        before similarity is computed. A document that has no others keeps them.
    certify: measure the recall of the run on a sample of so many documents (`.stats["certificate"]`); by default as
        many as cost about 5 % of the run, 0 for none.
    on_error: "stop" at a broken row, or "skip" it (counted and listed in `.aside`). encoding_errors: "strict" or
    "replace".
    html: the documents are HTML pages; their text is compared (needs `pip install 'likewise[html]'`).
    out: a folder for the answer. A run of files that was interrupted there goes on where it was; `fresh` starts over.
    memory: how much to use, such as "4GiB"; by default half of what is free. What does not fit is kept in files, in
        the folder `spill`, or in `out`, or where temporary files go.
    against: the folder of a finished run, or several. Documents that are similar to one that was kept there are
        removed too. The settings must be those of that run.
    state: leave in `out` what `rethreshold` and a later `against` need.

    >>> result = dedup(["to be or not to be, that is it", "To be or not to be: that is it!", "hello"])
    >>> result.removed.to_pylist()
    [{'id': 1, 'kept_id': 0, 'similarity': 1.0, 'kind': 'near'}]
    """
    policy = Keep.parse(keep)
    earlier = _earlier(against)
    if earlier:
        asked = {
            "shingle": parse_shingler(shingle, owner="dedup"),
            "threshold": threshold,
            "seed": seed,
            "sketch": sketch,
            "bands": bands,
            "rows": rows,
            "ignore_common": ignore_common,
            "method": None if method == "auto" else method,
        }
        shingle, bands, rows, method = _agreed(earlier, asked)
    chosen = Settings(
        "dedup", shingle, threshold, recall, seed, sketch, bands, rows, max_slots, ignore_common, certify, method
    )
    budget = Budget.of("dedup", memory)
    options = read_options(shingle, text, id, policy.column, on_error, encoding_errors, lines, html, batch_rows, budget)
    count = checks.threads("dedup", threads)
    log = RunLog.of(progress)
    opened = source if isinstance(source, Sets) else open_source(source, options)
    parameters = {
        **chosen.to_dict(parse_shingler(shingle)),
        "keep": str(policy),
        "text": text,
        "id": id,
        "on_error": on_error,
        "encoding_errors": encoding_errors,
        "lines": options.lines,
        "sets": options.sets,
        "html": options.html,
        "against": [str(run.directory.absolute()) for run in earlier.states] if earlier else None,
    }
    inputs = opened.identity() if out is not None and isinstance(opened, Source) else None
    with _workspace(
        out, spill, opened, {**parameters, "shingle": str(shingle), **_known(earlier)}, inputs, fresh
    ) as space:
        search = chosen.search(count, budget)
        if earlier:
            search = replace(search, ignore_common=None, common=earlier.common)
        elif out is not None and isinstance(opened, Source) and not space.resumed:
            _forecast(opened, chosen.shingle, search, space, log, out)
        collection = collect(opened, options, chosen.shingle, log, count, space, budget.texts)
        parameters.update(collection.shingler.to_dict() if collection.shingler else {"shingle": None})
        items = collection.items
        assert items is not None
        everything = Joined([*earlier.parts, items]) if earlier else items
        sides = Sides(earlier.count, across=False) if earlier else None
        lengths = items.lengths if policy.rule in ("longest", "shortest") else np.zeros(len(items), np.int64)
        ranks = policy.ranks(lengths, collection.scores)
        if earlier:
            ranks = np.concatenate([np.arange(earlier.count), ranks + earlier.count])
        matches = search.find(everything, log, space, sides, ranks)
        with log.stage("cluster"):
            removal = removals(matches.groups, matches.left, matches.right, matches.similarity, ranks, matches.copies)
            if earlier:
                removal = _of_new(removal, earlier, items, count)
                log.counts["items"] = len(items)
                log.counts["earlier"] = earlier.count
        if space.resumed:
            log.details["resumed"] = space.resumed
        work = {"threads": count, "memory": budget.total, "spilled_bytes": space.disk}
        about = None
        if state and inputs and isinstance(opened, Source):
            about = {
                "threshold": None if earlier else threshold,
                "complete": log.details.get("crowds", {}).get("complete", True),
                "given": [os.path.abspath(path) for path in opened.given],
                "inputs": inputs,
                "source": opened.state(),
            }
        result = Dedup(collection, matches, removal, log, {**parameters, **work}, earlier, about)
        if out is not None:
            if inputs and isinstance(opened, Source):
                _check_unchanged(inputs, opened)
            result.write(Path(out), space)
            space.finish()
    return result


def _forecast(
    source: Source, shingle: str | Shingler, search: Search, space: Workspace, log: RunLog, out: str | Path
) -> None:
    """Predict what a large run will take, and refuse to start it where the disk is too small."""
    if (source.total_bytes or 0) < FORECAST_FROM:
        return
    from likewise.jobs.plan import predicted

    with log.stage("forecast"):
        forecast = predicted(source, shingle, search, out)
    log.details["forecast"] = forecast.to_dict()
    space.check_room(forecast.spill, "what does not fit in memory")
    space.check_room(forecast.answer, "the answer", Path(out))


def _known(earlier: Against | None) -> dict[str, Any]:
    """Return what earlier runs are known by: their folders, and what they say of themselves."""
    if earlier is None:
        return {}
    return {"against": [[str(run.directory.absolute()), checksum(run.directory / MANIFEST)] for run in earlier.states]}


def _earlier(against: str | Path | list[str | Path] | None) -> Against | None:
    """Load the runs to compare with."""
    if against is None or against == []:
        return None
    return Against(against if isinstance(against, list) else [against])


def _agreed(earlier: Against, asked: dict[str, Any]) -> tuple[Shingler, int | None, int | None, str]:
    """Return the shingler and the banding of earlier runs; raise if other settings were asked for."""
    settings = earlier.settings
    for name, value in asked.items():
        if value is not None and value != settings[name]:
            raise IncompatibleError(
                f"{earlier.states[0].directory} was made with {name} {settings[name]!r} and this run has {value!r};"
                " new documents are compared in the same way"
            )
    return settings["shingle"], settings["bands"], settings["rows"], settings["method"]


def _of_new(removal: Removal, earlier: Against, items: Items, threads: int) -> Removal:
    """Keep the removals of new documents, and look which of them are the same to the byte as one kept earlier."""
    new = removal.rows >= earlier.count
    rows, keepers = removal.rows[new], removal.keepers[new]
    similarity, identical = removal.similarity[new], removal.identical[new]
    old = np.flatnonzero((keepers < earlier.count) & (similarity == 1.0))
    if len(old) and isinstance(items, TextItems):
        identical[old] = earlier.same_bytes(keepers[old], rows[old] - earlier.count, items, threads)
    return Removal(rows, keepers, similarity, identical)


@contextmanager
def _workspace(
    out: str | Path | None,
    spill: str | Path | None,
    source: Source | Sets,
    parameters: dict[str, Any],
    inputs: dict[str, list[int]] | None,
    fresh: bool,
) -> Iterator[Workspace]:
    """Open the workspace of a run; what is done stays there when the run is interrupted."""
    place = Path(spill) if spill is not None else None
    if out is None:
        space = Workspace.temporary(place)
    else:
        Dedup.check_folder(out, source.files if isinstance(source, Source) else [])
        identity = {"parameters": parameters, "inputs": inputs or {}}
        space = Workspace.open(Path(out), identity, place, fresh or inputs is None)
    try:
        yield space
    except BaseException:
        space.discard()
        raise
    finally:
        if out is None:
            space.finish()
        space.close()


def _check_unchanged(inputs: dict[str, list[int]], source: Source) -> None:
    """Raise if an input file has another size or time than when the run began."""
    now = source.identity(content=False) or {}
    before = {name: [size, time, 0] for name, (size, time, _) in inputs.items()}
    for change in changed_files(before, {name: [*facts[:2], 0] for name, facts in now.items()}):
        raise InputError(f"{change}: it changed while likewise worked; leave it alone and run again with --fresh")
