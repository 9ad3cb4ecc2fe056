"""Pages that carry the same article, whatever surrounds it (MMDS §3.2.4 and §3.8.6): pages → pairs → clusters."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.clusters import cluster_columns
from likewise.base.arrays import Texts, to_arrow
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.base.words import counted
from likewise.errors import ParameterError
from likewise.io.disk import with_spill
from likewise.io.read import ReadOptions, open_source
from likewise.io.workspace import Workspace
from likewise.jobs.result import Result
from likewise.jobs.rows import pair_table
from likewise.jobs.settings import Resources, Settings
from likewise.search.cluster import NONE, Keep, Removal, removals
from likewise.search.expand import listed_pairs
from likewise.search.items import TextItems
from likewise.search.load import Collection, collect
from likewise.search.matches import VerifiedPairs, count_different
from likewise.shingle import Shingler, StopWords, Tokens, Urls, parse_shingler

OWNER = "articles"
SHINGLE = "stopwords:auto"
THRESHOLD = 0.3
"""Least similarity of two pages with the same article: in benchmarks/articles.py, pages with the same article are at
0.34 or more and other pages of the same site at 0.15 or less (0.21 and 0.24 with newsgroup messages as articles)."""
KEEP = "longest"
TITLE_BYTES = 400
"""Bytes of a page's first line that are kept as its title: longer lines are not titles."""


@dataclass(repr=False, eq=False)
class Articles(Result):
    """The result of `articles`: tables `.articles` and `.pairs`, `.stats`, and `.save(dir)`.

    articles: one row per page. id; cluster, the id of its keeper; size, the number of pages in the cluster; keeper, the
    page that represents this one and is itself similar to it; similarity to the keeper; title; language. The
    pages of a cluster are adjacent, and clusters are ordered by their first row in the input.
    pairs: id_a, id_b, similarity of every two pages at or above the threshold.
    """

    files: ClassVar[dict[str, str]] = {"articles.parquet": "articles", "pairs.parquet": "pairs"}

    articles: pa.Table
    pairs: pa.Table
    stats: dict[str, Any]

    def _summary(self) -> str:
        counts = self.stats["counts"]
        pages, articles = counted(len(self.articles), "page"), counted(counts["articles"], "article")
        return f"{pages} with {articles}, {counts['clusters']:,} of them on several pages"


@with_spill
def articles(
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
    plain: bool = False,
    hidden: bool = False,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    batch_rows: int = 10_000,
    progress: Progress | None = None,
) -> Articles:
    """Cluster pages that carry the same article, even if everything around it differs or paragraphs are missing.

    pages: files, folders, globs, lists of strings, tables; see `likewise.dedup`. Files named .html or .htm are read as
    HTML, each by its own name; html=True reads other files, and the column `text` of a table, as HTML too, html=False
    none (needs `pip install 'likewise[html]'`).
    No part of a page is removed: with stop-word shingles, most shingles of a page come from its article (MMDS §3.8.6).

    A pair of pages at `threshold` is found with probability at least `recall`, and its similarity is exact. A cluster
    is a page and those similar to it, not to each other in a chain: keepers are chosen in the order of `keep`, and no
    two of them are similar. A page without words is a cluster of its own. The other parameters are those of `dedup`.

    >>> article = "The council has voted to close the old bridge because it is not safe for the cars that use it."
    >>> pages = ["Home News Sport " + article, article + " Buy Sudzo now", "It was a long night for the team and its"]
    >>> articles(pages, threshold=0.7).articles.select(["id", "cluster", "size"]).to_pylist()
    [{'id': 0, 'cluster': 0, 'size': 2}, {'id': 1, 'cluster': 0, 'size': 2}, {'id': 2, 'cluster': 2, 'size': 1}]
    """
    policy = Keep.parse(keep, OWNER)
    if policy.rule == NONE:
        raise ParameterError.of(OWNER, "keep", "a rule by which one page represents the others", NONE)
    if isinstance(parse_shingler(shingle, owner=OWNER), Tokens | Urls):
        raise ParameterError.of(OWNER, "shingle", "stopwords:LANGUAGE, words:K or chars:K", str(shingle))
    chosen = Settings(
        OWNER, shingle, threshold, recall, seed, ignore_common=ignore_common, certify=certify, method=method
    )
    resources = Resources.of(OWNER, threads, memory, spill)
    budget = resources.budget
    reading: dict[str, Any] = {"on_error": on_error, "encoding_errors": encoding_errors}
    reading |= {"lines": lines, "plain": plain, "hidden": hidden}
    sizes: dict[str, Any] = {"batch_rows": batch_rows, "batch_bytes": budget.batch, "row_bytes": budget.row}
    options = ReadOptions(text, id, policy.columns, html=html, owner=OWNER, **reading, **sizes)
    log = RunLog.of(progress)
    source = open_source(pages, options)
    space = Workspace.temporary(resources.spill)
    try:
        here = collect(source, options, chosen.shingle, log, resources.threads, space, budget.texts)
        items = here.items
        assert isinstance(items, TextItems)
        lengths = items.lengths if policy.by_length else np.zeros(len(items), np.int64)
        ranks = policy.ranks(lengths, here.scores)
        matches = chosen.search(resources).find(items, log, space, None, ranks)
        log.counts["different"] = count_different(matches)
        with log.stage("cluster"):
            removal = removals(matches.groups, matches.left, matches.right, matches.similarity, ranks, matches.copies)
        with log.stage("tables"):
            empty = _empty(matches)
            pairs = _pair_table(here, matches, empty, log)
            are_pages = np.ones(here.rows, bool) if html else source.pages(here.rows)
            titles = _titles(items.texts, are_pages)
            table = _article_table(here, removal, empty, titles, log)
    finally:
        space.finish()
    if html is None and (are_pages.all() or not are_pages.any()):
        html = bool(are_pages.any())
    parameters = {**chosen.to_dict(here.shingler), "keep": str(policy), "text": text, "id": id, "html": html, **reading}
    parameters |= resources.used
    return Articles(table, pairs, run_json(OWNER, parameters, [here], log))


def _empty(matches: VerifiedPairs) -> Any:
    """Return which rows have no shingles; the search treats them as identical documents."""
    if matches.sketched is None:
        return np.zeros(len(matches.groups.of), bool)
    filled = np.zeros(len(matches.groups), bool)
    filled[matches.sketched.filled] = True
    return ~filled[matches.groups.of]


def _pair_table(here: Collection, matches: VerifiedPairs, empty: Any, log: RunLog) -> Any:
    left, right, similarity, abridged = listed_pairs(matches)
    real = ~empty[left]
    left, right, similarity = left[real], right[real], similarity[real]
    log.counts["pairs"] = len(left)
    if abridged:
        log.details["abridged"] = abridged
    return pair_table(here.name(left), here.name(right), similarity)


def _article_table(here: Collection, removal: Removal, empty: Any, titles: Any, log: RunLog) -> Any:
    """Return one row per page, the pages of a cluster adjacent; a cluster is named after its keeper."""
    rows = np.arange(here.rows)
    keepers, similarity = rows.copy(), np.ones(here.rows)
    keepers[removal.rows], similarity[removal.rows] = removal.keepers, removal.similarity
    keepers[empty], similarity[empty] = rows[empty], 1.0
    sizes = np.bincount(keepers, minlength=here.rows)
    first = np.full(here.rows, here.rows)
    np.minimum.at(first, keepers, rows)
    order = np.argsort(first[keepers], kind="stable")
    log.counts |= {"articles": int((sizes > 0).sum()), "clusters": int((sizes > 1).sum())}
    log.counts |= {"clustered": int(sizes[sizes > 1].sum()), "empty": int(empty.sum())}
    log.details["largest_cluster"] = int(sizes.max(initial=0))
    columns = cluster_columns(here.name, order, keepers, keepers)
    about = {"title": titles.take(to_arrow(order)), "language": _languages(here).take(to_arrow(order))}
    return pa.table({**columns, "similarity": to_arrow(similarity[order]), **about})


def _languages(here: Collection) -> Any:
    """Return the language of every page, null where it was not detected."""
    if not isinstance(here.shingler, StopWords) or here.languages is None or len(here.shingler.tongues) == 1:
        return pa.nulls(here.rows, pa.string())
    codes = pa.array([*here.shingler.tongues, None], pa.string())
    return codes.take(to_arrow(np.where(here.languages < 0, len(codes) - 1, here.languages)))


def _titles(texts: Texts, pages: Any) -> Any:
    """Return the first line of every HTML page, which is its title (io/read/pages.py); null if it is empty."""
    titles: list[str | None] = []
    if not pages.any():
        return pa.nulls(len(pages), pa.string())
    for stored in texts.chunks:
        chunk = stored.load()
        data, offsets = chunk.data, chunk.offsets.tolist()
        for start, stop in pairwise(offsets):
            line = data[start : min(stop, start + TITLE_BYTES)].tobytes().partition(b"\n")[0]
            titles.append(line.decode("utf-8", "ignore") or None)
    return pa.array(titles, pa.string(), mask=~pages)
