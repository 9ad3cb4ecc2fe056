"""`stories`: pages grouped by the article they carry."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.articles.answer import COMMAND, Stories
from likewise.base import checks
from likewise.base.arrays import Ints, Texts, to_arrow
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.errors import ParameterError
from likewise.io.read import ReadOptions, open_source
from likewise.io.workspace import Workspace
from likewise.jobs.result import pair_table
from likewise.jobs.settings import Settings
from likewise.search.cluster import Keep, Removal, components, removals
from likewise.search.items import TextItems
from likewise.search.load import Collection, collect
from likewise.search.matches import Matches, listed_pairs
from likewise.shingle import Shingler, StopWords, Tokens, parse_shingler

SHINGLE = "stopwords:auto"
THRESHOLD = 0.3
KEEP = "longest"
PAGES = (".html", ".htm", ".xhtml")
TITLE_BYTES = 400


def stories(
    pages: Any,
    *,
    text: str = "text",
    id: str | None = None,
    html: bool | None = None,
    shingle: str | Shingler = SHINGLE,
    threshold: float = THRESHOLD,
    recall: float = 0.99,
    method: str = "auto",
    keep: str | Keep = KEEP,
    seed: int = 1,
    ignore_common: float | None = None,
    certify: int | None = None,
    lines: bool = False,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    batch_rows: int = 10_000,
    progress: Progress | None = None,
) -> Stories:
    """Group pages by the article they carry, though the rest of the page differs and paragraphs were cut.

    pages: files, folders, globs, lists of strings, tables; see `likewise.dedup`. Files named .html or .htm are read as
    HTML; html=True says so of others, and of the column `text` of a table (needs `pip install 'likewise[html]'`).
    Nothing is cut from a page: stop-word shingles see to it that the article counts for most (§3.8.6).

    Two pages at `threshold` are found with the probability `recall` or more, their similarity is exact. A story is all
    pages that are joined by such pairs, in chains too; `keeper` is, for each page, one that it is similar to itself.
    Pages without any word are stories of their own. The other parameters are those of `dedup`.

    >>> article = "The council has voted to close the old bridge because it is not safe for the cars that use it."
    >>> pages = ["Home News Sport " + article, article + " Buy Sudzo now", "It was a long night for the team and its"]
    >>> stories(pages, threshold=0.7).stories.select(["id", "story", "size"]).to_pylist()
    [{'id': 0, 'story': 0, 'size': 2}, {'id': 1, 'story': 0, 'size': 2}, {'id': 2, 'story': 2, 'size': 1}]
    """
    policy = Keep.parse(keep)
    if isinstance(parse_shingler(shingle), Tokens):
        raise ParameterError.of(COMMAND, "shingle", "stopwords:LANGUAGE, words:K or chars:K", str(shingle))
    chosen = Settings(
        COMMAND,
        shingle, threshold, recall, seed, ignore_common=ignore_common, certify=certify, method=method
    )  # fmt: skip
    count = checks.threads(COMMAND, threads)
    budget = Budget.of(COMMAND, memory)
    reading: dict[str, Any] = {"text": text, "id": id, "score": policy.column, "on_error": on_error, "lines": lines}
    reading |= {
        "encoding_errors": encoding_errors,
        "batch_rows": batch_rows,
        "batch_bytes": budget.batch,
        "owner": COMMAND,
    }
    source = open_source(pages, ReadOptions(**reading, html=bool(html)))
    if html is None and any(_is_page(path) for path in source.files):
        html = True
        source = open_source(pages, ReadOptions(**reading, html=True))
    options = ReadOptions(**reading, html=bool(html))
    log = RunLog.of(progress)
    space = Workspace.temporary(Path(spill) if spill is not None else None)
    try:
        here = collect(source, options, chosen.shingle, log, count, space, budget.texts)
        items = here.items
        assert isinstance(items, TextItems)
        lengths = items.lengths if policy.rule in ("longest", "shortest") else np.zeros(len(items), np.int64)
        ranks = policy.ranks(lengths, here.scores)
        matches = chosen.search(count, budget).find(items, log, space, None, ranks)
        with log.stage("cluster"):
            removal = removals(matches.groups, matches.left, matches.right, matches.similarity, ranks, matches.copies)
        with log.stage("tables"):
            empty = _empty(matches)
            pairs = _pair_table(here, matches, empty, log)
            titles = _titles(items.texts) if html else pa.nulls(here.rows, pa.string())
            table = _story_table(here, matches, removal, ranks, empty, titles, log)
    finally:
        space.finish()
    parameters = {**chosen.to_dict(here.shingler), "keep": str(policy), "text": text, "id": id, "html": bool(html)}
    stats = run_json(COMMAND, {**parameters, "threads": count}, [here], log)
    return Stories(table, pairs, stats)


def _is_page(path: PurePath) -> bool:
    """Tell whether a file is named like a page, compressed or not.

    >>> [_is_page(PurePath(name)) for name in ("a.html", "b.HTM.gz", "html.txt")]
    [True, True, False]
    """
    return any(suffix.lower() in PAGES for suffix in path.suffixes[-2:])


def _empty(matches: Matches) -> Any:
    """Tell which rows have no shingle at all; as documents they are all the same."""
    if matches.sketched is None:
        return np.zeros(len(matches.groups.of), bool)
    filled = np.zeros(len(matches.groups), bool)
    filled[matches.sketched.filled] = True
    return ~filled[matches.groups.of]


def _pair_table(here: Collection, matches: Matches, empty: Any, log: RunLog) -> Any:
    left, right, similarity, abridged = listed_pairs(matches)
    real = ~empty[left]
    left, right, similarity = left[real], right[real], similarity[real]
    log.counts["pairs"] = len(left)
    if abridged:
        log.details["abridged"] = abridged
    return pair_table(here.name(left), here.name(right), similarity)


def _story_table(
    here: Collection, matches: Matches, removal: Removal, ranks: Ints, empty: Any, titles: Any, log: RunLog
) -> Any:
    """Name the story of every page after the page that comes first by rank; pages of a story stand together."""
    rows = np.arange(here.rows)
    labels = components(matches.groups, matches.left, matches.right)
    labels = np.where(empty, rows, labels)
    sizes = np.bincount(labels, minlength=here.rows)
    best = np.full(here.rows, -1)
    for row in np.argsort(-ranks, kind="stable").tolist():
        best[labels[row]] = row
    keepers, similarity = rows.copy(), np.ones(here.rows)
    keepers[removal.rows], similarity[removal.rows] = removal.keepers, removal.similarity
    keepers[empty], similarity[empty] = rows[empty], 1.0
    order = np.argsort(labels, kind="stable")
    counts = log.counts
    counts |= {"stories": int((sizes > 0).sum()), "shared_stories": int((sizes > 1).sum())}
    counts |= {"grouped": int(sizes[sizes > 1].sum()), "empty": int(empty.sum())}
    log.details["largest_story"] = int(sizes.max(initial=0))
    return pa.table(
        {
            "id": here.name(order),
            "story": here.name(best[labels[order]]),
            "size": to_arrow(sizes[labels[order]].astype(np.int64)),
            "keeper": here.name(keepers[order]),
            "similarity": to_arrow(similarity[order]),
            "title": titles.take(to_arrow(order)),
            "language": _languages(here).take(to_arrow(order)),
        }
    )


def _languages(here: Collection) -> Any:
    """Return the language of every page, null where none was guessed."""
    if not isinstance(here.shingler, StopWords) or here.languages is None or len(here.shingler.tongues) == 1:
        return pa.nulls(here.rows, pa.string())
    codes = pa.array([*here.shingler.tongues, None], pa.string())
    return codes.take(to_arrow(np.where(here.languages < 0, len(codes) - 1, here.languages)))


def _titles(texts: Texts) -> Any:
    """Return the first line of every page, where its title stands (see read/pages.py); null if it is empty."""
    titles: list[str | None] = []
    for stored in texts.chunks:
        chunk = stored.load()
        data, offsets = chunk.data, chunk.offsets.tolist()
        for start, stop in pairwise(offsets):
            line = data[start : min(stop, start + TITLE_BYTES)].tobytes().partition(b"\n")[0]
            titles.append(line.decode("utf-8", "ignore") or None)
    return pa.array(titles, pa.string())
