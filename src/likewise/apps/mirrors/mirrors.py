"""`mirrors`: mirrored hosts in a list of URLs, and pages folded along their links."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from likewise.apps.clusters import best_of_each, keepers
from likewise.apps.mirrors.addresses import OWNER, BadUrl, Pages, UrlReader, canonical
from likewise.apps.mirrors.contraction import LEAST as LEAST_LINKS
from likewise.apps.mirrors.contraction import MOST, TEMPLATE, contract
from likewise.apps.mirrors.contraction import SIMILAR as SIMILAR_LINKS
from likewise.apps.mirrors.hosts import HostGroups, HostPairs, MirrorSettings, Paths, host_pairs
from likewise.base import checks
from likewise.base.arrays import Ints, Sets, concatenate, to_arrow
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.base.words import counted
from likewise.errors import ColumnError, InputError, ParameterError
from likewise.io.disk import with_spill
from likewise.io.read import Files, ReadOptions
from likewise.io.tables import read_tables
from likewise.jobs.pairs import PairsRequest
from likewise.jobs.pairs import pairs as similar_pairs
from likewise.jobs.result import Result
from likewise.jobs.settings import Resources
from likewise.kernels.urls import list_shared
from likewise.search.verify import similarities
from likewise.shingle import Shingler
from likewise.shingle.urls import STOP

THRESHOLD = 0.2
"""Least similarity of two hosts. In benchmarks/mirrors.py every pair found at 0.2 or above is a pair of mirrors, and at
0.1 nearly every one; a higher threshold misses mirrors of which a crawl has seen different pages."""
RECALL = 0.99
LEAST = 5
"""Least number of shared paths: hosts with fewer pages in the list give too little evidence."""
SHINGLE = "words:3"
SIMILAR_TEXT = 0.8
"""Least similarity of two texts of one page: mirrors may add a banner or a date."""
CONFIRMED = 0.5
"""Least fraction of compared pages with similar texts: mirrors are crawled at different times, so some pages differ."""
SAMPLE = 100
"""Most shared pages of two hosts whose texts are compared: the standard error of the fraction is then 0.05 or less."""
ALL = 4_000_000
"""Most pages compared over all pairs of hosts; with more pairs, each has a smaller sample."""
LEAST_SAMPLE = 5
"""Sample of a pair of hosts however many pairs there are."""
RULE = "pairs of hosts, a table with the columns id_a and id_b or id and keeper, or the folder of an earlier run"
COLUMNS = (("id_a", "id_b"), ("id", "keeper"))
"""Columns with the two hosts of a pair: those of pairs.parquet and of mirrors.parquet."""
EARLIER = "mirrors.parquet"


@dataclass(repr=False, eq=False)
class Mirrors(Result):
    """The result of `mirrors`: tables `.mirrors`, `.pairs` and `.pages`, `.stats`, and `.save(dir)`.

    mirrors: one row per host that has mirrors. id, the host; cluster, the id of the first host of the cluster, which is
    its keeper; size, the number of hosts in the cluster; keeper, the host of the cluster with the most pages; pages;
    top, the folders above the pages that the cluster shares.
    pairs: hosts with similar URLs. id_a, id_b; similarity, the exact Jaccard similarity of their sets of positional
    bigrams; pages_a, pages_b; shared_paths, the number of paths they share; top_a, top_b, the folders above these paths
    on either host; compared, the number of shared paths whose texts were compared; confirmed, the fraction of these
    with similar texts (null if none was compared); mirror, whether the hosts are considered mirrors.
    pages: one row per folded page. id, its URL; keeper, the URL of the page it is folded into. None without links.
    """

    files: ClassVar[dict[str, str]] = {f"{name}.parquet": name for name in ("mirrors", "pairs", "pages")}

    mirrors: pa.Table
    pairs: pa.Table
    pages: pa.Table | None
    stats: dict[str, Any]

    def _summary(self) -> str:
        counts = self.stats["counts"]
        folded = "" if self.pages is None else f", {counted(len(self.pages), 'page')} folded"
        hosts, clusters = counted(counts["hosts"], "host"), counted(counts["clusters"], "cluster")
        return f"{len(self.mirrors):,} of {hosts} in {clusters} of mirrors{folded}"


@with_spill
def mirrors(
    urls: Any,
    *,
    links: Any = None,
    pages: Any = None,
    suspects: Any = None,
    url: str = "url",
    text: str = "text",
    source: str = "source",
    target: str = "target",
    threshold: float = THRESHOLD,
    recall: float = RECALL,
    method: str = "auto",
    least: int = LEAST,
    position: str | None = "end",
    stop: Iterable[str] = STOP,
    shingle: str | Shingler = SHINGLE,
    similar_text: float = SIMILAR_TEXT,
    confirmed: float = CONFIRMED,
    similar_links: float = SIMILAR_LINKS,
    least_links: int = LEAST_LINKS,
    template: float = TEMPLATE,
    seed: int = 1,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    spill: str | Path | None = None,
    progress: Progress | None = None,
) -> Mirrors:
    """Find hosts that mirror each other by their URLs, confirm them by content, and fold pages along links.

    urls: files with one URL per line, or tables with a column `url`; a list of strings is a list of URLs. A host is the
    set of the positional bigrams of its paths (`likewise.Urls`). Hosts with a Jaccard similarity of at least
    `threshold` are candidates, found by MinHash or exactly (`method`), and mirrors if they share at least `least`
    paths. Hosts with fewer pages are not compared. position: whether positions are counted from the "end" of a path,
    from its "start", or ignored (None). stop: components of paths that are ignored.

    pages: tables with columns `url` and `text`. Of the paths that two hosts share, up to 100 are compared by their
    texts, and two hosts are mirrors only if at least the fraction `confirmed` of them is similar: a Jaccard similarity
    of at least `similar_text` of their sets of `shingle`.

    suspects: pairs of hosts known from earlier crawls: a list of pairs, a table with columns id_a and id_b or id and
    keeper, or the folder of an earlier run. They are compared however low the similarity of their URLs and however few
    of their pages are listed, and are mirrors if they share a path, a tenth of the smaller host's, and similar texts.

    links: tables with columns `source` and `target`. Pages with the same path on mirrors, and pages with similar texts,
    are folded into one, then pages whose outlinks have become equal or similar (`similar_links`), and so on. Pages with
    fewer than `least_links` outlinks are not compared, and links on more than the fraction `template` of a host's pages
    are ignored; see `likewise.apps.mirrors.contract`.

    >>> found = mirrors([f"http://{host}/docs/{word}/intro.html" for host in ("a.org", "b.net") for word in "pqrst"])
    >>> found.mirrors.select(["id", "keeper"]).to_pylist()
    [{'id': 'a.org', 'keeper': 'a.org'}, {'id': 'b.net', 'keeper': 'a.org'}]
    """
    settings = MirrorSettings(threshold, recall, method, seed, least, position, stop, shingle, similar_text, confirmed)
    folding = {
        "similar": checks.threshold(OWNER, similar_links, "similar_links"),
        "least": checks.whole(OWNER, "least_links", least_links, most=MOST, rule="a positive whole number"),
        "template": checks.threshold(OWNER, template, "template"),
    }
    texts_asked = {"text": text, "shingle": shingle, "similar_text": similar_text, "confirmed": confirmed}
    asked = {"similar_links": similar_links, "least_links": least_links, "template": template}
    links_asked = {"source": source, "target": target, **asked}
    defaults = {name: one.default for name, one in signature(mirrors).parameters.items()}
    for name, given, about in (("pages", pages, texts_asked), ("links", links, links_asked)):
        if given is None:
            both = {option: (value, defaults[option]) for option, value in about.items()}
            checks.unused(OWNER, both, f"without '{name}'")
    if method == "exact":
        checks.unused(OWNER, {"recall": (recall, RECALL)}, "with method='exact'")
    resources = Resources.of(OWNER, threads, memory, spill)
    reading: dict[str, Any] = {"on_error": on_error, "encoding_errors": encoding_errors}
    log = RunLog.of(progress)
    known = Pages()
    options = ReadOptions(**reading, lines=True, batch_bytes=resources.budget.batch, owner=OWNER)
    reader = UrlReader(known, options, resources.threads)
    with log.stage("read") as tick:
        rows = sum(map(len, reader.urls(urls, url, tick)))
    if pages is None and not reader.named:
        checks.unused(OWNER, {"url": (url, "url")}, "for text files and lists of URLs")
    listed = len(known)
    log.counts |= {"urls": reader.rows, "blank": reader.blank, "pages": listed, "hosts": len(known.hosts)}
    log.counts["repeated"] = rows - listed
    if not listed:
        log.notes.append("There are no URLs, so there are no hosts to compare.")
    counts = np.bincount(known.host, minlength=len(known.hosts))
    paths = Paths(known, np.arange(listed), settings)
    search: dict[str, Any] = {"method": method, "seed": seed, "spill": spill, **resources.used}
    suspected = None if suspects is None else suspect_pairs(suspects, known, log)
    candidates = host_pairs(paths, settings, log, suspected, **search)
    columns = candidates.columns(paths, counts)
    if suspected is not None:
        n = len(known.hosts)
        columns["suspect"] = pa.array(np.isin(candidates.left * n + candidates.right, suspected[0] * n + suspected[1]))
    texts = np.zeros(0, np.int64)
    compared, fraction = np.zeros(len(candidates), np.int64), np.full(len(candidates), np.nan)
    if pages is not None:
        again = reader.beside()
        with log.stage("confirm") as tick:
            texts = again.rows_of(pages, url, tick)
            twice = UrlReader(known, options, resources.threads).texts(pages, url, text, tick)
            compared, fraction = confirm(paths, candidates, twice, texts, settings, resources.threads)
        log.counts |= {"texts": again.rows, "pages_compared": int(compared.sum())}
    is_mirror = np.isnan(fraction) | (fraction >= settings.confirmed)
    columns |= {
        "compared": to_arrow(compared),
        "confirmed": pa.array([None if np.isnan(part) else part for part in fraction.tolist()], pa.float64()),
        "mirror": pa.array(is_mirror.tolist(), pa.bool_()),
    }
    mirrored = candidates.where(is_mirror)
    counts = np.bincount(known.host[:listed], minlength=len(known.hosts))
    groups = HostGroups.of_pairs(len(known.hosts), mirrored, counts, "abridged" in log.details)
    table = groups.table(paths, counts)
    log.counts |= {"host_pairs": len(candidates), "mirror_pairs": len(mirrored), "mirrors": len(table)}
    log.counts["clusters"] = len(pc.unique(table["cluster"]))
    folded = None
    if links is not None:
        before, linking = len(known), reader.beside()
        with log.stage("links") as tick:
            ends = [np.stack(both).astype(np.int32) for both in linking.links(links, source, target, tick)]
            left, right = np.concatenate([np.zeros((2, 0), np.int32), *ends], axis=1)
            del ends
        log.counts |= {"links": linking.rows, "graph_pages": len(known), "unlisted": len(known) - before}
        groups = groups.widened(len(known.hosts))
        same = np.unique(groups.keys(known, paths), return_inverse=True)[1]
        if len(texts):
            with log.stage("texts"):
                search |= {"shingle": settings.shingle, "recall": settings.recall, **reading}
                request = PairsRequest(source=pages, text=text, threshold=settings.similar_text, **search)
                alike = similar_pairs(request).table
                same = _with_texts(same, *(texts[alike[name].to_numpy()] for name in ("id_a", "id_b")))
        folded = _folded(left, right, same, known, groups, folding, log)
    names = {"url": url, "text": text, "source": source, "target": target}
    asked |= {"similar_links": folding["similar"], "template": folding["template"]}
    parameters = {**settings.to_dict(), **asked, **names, **reading, **resources.used}
    parameters["suspects"] = None if suspects is None else "given"
    return Mirrors(table, pa.table(columns), folded, run_json(OWNER, parameters, [reader], log))


def _with_texts(same: Ints, left: Ints, right: Ints) -> Ints:
    """Join groups of equal pages by pairs of similar texts, each with a group to which it has such a pair."""
    both = (left >= 0) & (right >= 0)
    left, right = same[left[both]], same[right[both]]
    apart = left != right
    left, right = left[apart], right[apart]
    groups = int(same.max(initial=-1)) + 1
    degree = np.bincount(np.concatenate([left, right]), minlength=groups)
    joined: Ints = keepers(np.lexsort((np.arange(groups), -degree)), left, right)[0][same]
    return joined


def _folded(
    left: Any, right: Any, same: Ints, known: Pages, groups: HostGroups, folding: dict[str, Any], log: RunLog
) -> pa.Table:
    """Fold pages along links; list the folded ones and their keepers: of a host that is a keeper if there is one."""
    with log.stage("contract") as tick:
        done = contract(left, right, len(known), same=same, host=known.host, **folding, tick=tick)
    log.details["rounds"] = [vars(one) for one in done.rounds]
    log.counts |= {"different_links": done.links, "template_links": done.template_links}
    log.counts["folded"] = int((done.folded != np.arange(len(known))).sum())
    if done.crowded:
        log.details["crowded"] = done.crowded
        times = "Once" if done.crowded == 1 else f"{done.crowded:,} times"
        log.notes.append(f"{times}, too many pages shared a link, and not all of them were compared by similarity.")
    into = best_of_each(np.argsort(groups.of[known.host] != known.host, kind="stable"), done.folded)
    gone = np.flatnonzero(into != np.arange(len(known)))
    return pa.table({"id": known.urls.take(gone), "keeper": known.urls.take(into[gone])})


def suspect_pairs(source: Any, pages: Pages, log: RunLog) -> tuple[Ints, Ints]:
    """Return the suspected pairs of hosts that are both listed, the lower number first, each once; count them all."""
    pairs = {tuple(sorted((_host(a), _host(b)))) for a, b in _listed(source)}
    pairs = {(a, b) for a, b in pairs if a != b}
    hosts = pages.hosts.take(np.arange(len(pages.hosts)))
    ends = [pa.array([pair[side] for pair in sorted(pairs)], pa.large_string()) for side in (0, 1)]
    numbers = np.array([pc.fill_null(pc.index_in(side, hosts), -1).to_pylist() for side in ends], np.int64).reshape(
        2, -1
    )
    both = np.sort(numbers[:, (numbers >= 0).all(axis=0)], axis=0)
    log.counts |= {"suspects": len(pairs), "suspects_listed": both.shape[1]}
    return both[0], both[1]


def _listed(source: Any) -> Iterable[tuple[str, str]]:
    """Return the pairs as they are given."""
    if isinstance(source, list | tuple | set | frozenset) and not any(
        isinstance(one, dict | os.PathLike | str) for one in source
    ):
        try:
            return [(str(a), str(b)) for a, b in source]
        except (TypeError, ValueError) as error:
            raise ParameterError.of(OWNER, "suspects", RULE, source) from error
    if isinstance(source, str | os.PathLike) and (Path(source) / EARLIER).is_file():
        source = Path(source) / EARLIER
    elif isinstance(source, Files):
        source = Files([path / EARLIER if (path / EARLIER).is_file() else path for path in map(Path, source.paths)])
    pairs: list[tuple[str, str]] = []
    for table, where in read_tables(source, OWNER, "suspects", "pairs of hosts"):
        names = next((names for names in COLUMNS if set(names) <= set(table.column_names)), None)
        if names is None:
            there = ", ".join(table.column_names)
            raise ColumnError(
                f"{where}: suspects need the columns id_a and id_b, or id and keeper; the columns are: {there}"
            )
        columns = [table.column(name).to_pylist() for name in names]
        pairs += [(str(a), str(b)) for a, b in zip(*columns, strict=True) if a is not None and b is not None]
    return pairs


def _host(text: str) -> str:
    """Return a host as it is written in canonical URLs; a whole URL may be given."""
    try:
        return canonical(text if "//" in text else f"http://{text}").split("/")[2]
    except BadUrl as error:
        raise InputError(f"suspects: '{text}' is not a host: {error}") from error


def sampled(paths: Paths, pairs: HostPairs, known: NDArray[np.bool_]) -> tuple[Ints, Ints, Ints]:
    """Choose shared pages with known texts for each pair of hosts; return the number of the pair and both pages.

    Pages are chosen by the hash of their path, so that many pairs of one cluster choose the same pages.
    """
    most = max(LEAST_SAMPLE, min(SAMPLE, ALL // max(1, len(pairs))))
    parts = [np.empty((0, 3), np.int64)]
    skips = np.stack([pairs.skip_left, pairs.skip_right], axis=1)
    for skip_left, skip_right in np.unique(skips, axis=0).tolist():
        rows = np.flatnonzero((skips == (skip_left, skip_right)).all(axis=1))
        mine, theirs = paths.tails(skip_left), paths.tails(skip_right)
        out = np.empty((len(rows) * most, 3), np.int64)
        sides = (mine.values, mine.offsets, mine.pages, theirs.values, theirs.offsets, theirs.pages)
        count = list_shared(*sides, pairs.left[rows], pairs.right[rows], known, most, out)
        out[:count, 0] = rows[out[:count, 0]]
        parts.append(out[:count])
    chosen = np.concatenate(parts)
    return chosen[:, 0], chosen[:, 1], chosen[:, 2]


def confirm(
    paths: Paths, pairs: HostPairs, texts: Iterable[tuple[Ints, Any]], has_text: Ints, settings: MirrorSettings,
    threads: int,
) -> tuple[Ints, NDArray[np.float64]]:  # fmt: skip
    """Compare the texts of pages with the same path on two hosts; texts are read once, and only the sample is kept.

    Return for every pair of hosts the number of shared pages compared, and the fraction of these with similar texts,
    NaN where nothing was compared.
    """
    known = np.zeros(len(paths.pages), bool)
    known[has_text[has_text >= 0]] = True
    number, left, right = sampled(paths, pairs, known)
    needed = np.unique(np.concatenate([left, right]))
    number_of = np.full(len(paths.pages), -1, np.int64)
    number_of[needed] = np.arange(len(needed))
    parts: list[Sets] = []
    rows: list[Ints] = []
    for pages, column in texts:
        wanted = np.flatnonzero(number_of[pages] >= 0)
        if len(wanted):
            parts.append(settings.texts.sets(column.take(to_arrow(wanted))))
            rows.append(number_of[pages[wanted]])
    sets, order = concatenate(parts), np.concatenate([np.zeros(0, np.int64), *rows])
    first = np.full(len(needed), -1, np.int64)
    first[order[::-1]] = np.arange(len(order))[::-1]  # the first text of a page that occurs twice
    left, right = first[number_of[left]], first[number_of[right]]
    there = (left >= 0) & (right >= 0)  # a damaged file may have lost a text since it was counted
    number, left, right = number[there], left[there], right[there]
    full = (sets.sizes[left] > 0) | (sets.sizes[right] > 0)  # two pages without words are no evidence
    number, left, right = number[full], left[full], right[full]
    order = np.argsort(left, kind="stable")
    scores = similarities(left[order], right[order], sets, settings.similar_text, threads)
    similar = np.bincount(number[order][scores >= 0], minlength=len(pairs))
    compared, fraction = np.bincount(number, minlength=len(pairs)), np.full(len(pairs), np.nan)
    return compared, np.divide(similar, compared, fraction, where=compared > 0)
