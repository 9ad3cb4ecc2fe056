"""`mirrors`: mirrored hosts in a list of URLs, and pages folded along their links."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.mirrors.addresses import Pages
from likewise.apps.mirrors.content import confirm
from likewise.apps.mirrors.contraction import LEAST as LEAST_LINKS
from likewise.apps.mirrors.contraction import MOST, TEMPLATE, Contraction, contract
from likewise.apps.mirrors.contraction import SIMILAR as SIMILAR_LINKS
from likewise.apps.mirrors.groups import HostGroups, mirror_table, pair_columns
from likewise.apps.mirrors.hosts import Paths, host_pairs
from likewise.apps.mirrors.inputs import UrlReader
from likewise.apps.mirrors.result import Mirrors
from likewise.apps.mirrors.settings import (
    CONFIRMED,
    LEAST,
    OWNER,
    RECALL,
    SHINGLE,
    SIMILAR_TEXT,
    THRESHOLD,
    MirrorSettings,
)
from likewise.apps.mirrors.suspects import suspect_pairs
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.jobs.pairs import PairsRequest
from likewise.jobs.pairs import pairs as similar_pairs
from likewise.kernels import graph
from likewise.shingle import Shingler
from likewise.shingle.urls import STOP


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
    settings = MirrorSettings(
        threshold, recall, method, seed, least, position, stop, shingle, similar_text, confirmed
    )  # fmt: skip
    folding = {
        "similar": checks.threshold(OWNER, similar_links, "similar_links"),
        "least": checks.whole(OWNER, "least_links", least_links, most=MOST, rule="a positive whole number"),
        "template": checks.threshold(OWNER, template, "template"),
    }
    about_texts = {
        "text": (text, "text"),
        "shingle": (shingle, SHINGLE),
        "similar_text": (similar_text, SIMILAR_TEXT),
        "confirmed": (confirmed, CONFIRMED),
    }
    about_links = {
        "source": (source, "source"),
        "target": (target, "target"),
        "similar_links": (similar_links, SIMILAR_LINKS),
        "least_links": (least_links, LEAST_LINKS),
        "template": (template, TEMPLATE),
    }
    if pages is None:
        checks.unused(OWNER, about_texts, "without 'pages'")
    if links is None:
        checks.unused(OWNER, about_links, "without 'links'")
    checks.choice(OWNER, "on_error", on_error, ("stop", "skip"))
    checks.choice(OWNER, "encoding_errors", encoding_errors, ("strict", "replace"))
    if method == "exact":
        checks.unused(OWNER, {"recall": (recall, RECALL)}, "with method='exact'")
    count = checks.threads(OWNER, threads)
    budget = Budget.of(OWNER, memory)
    log = RunLog.of(progress)
    known = Pages()
    reader = UrlReader(known, on_error, encoding_errors, count, budget.batch)
    with log.stage("read") as tick:
        given = sum(map(len, reader.urls(urls, url, tick)))
    if pages is None and not reader.named:
        checks.unused(OWNER, {"url": (url, "url")}, "for text files and lists of URLs")
    listed = np.arange(len(known))
    log.counts |= {"urls": reader.rows, "blank": reader.blank, "pages": len(known), "hosts": len(known.hosts)}
    log.counts["repeated"] = given - len(known)
    if not len(known):
        log.notes.append("There are no URLs, so there are no hosts to compare.")
    counts = np.bincount(known.host, minlength=len(known.hosts))
    paths = Paths(known, listed, settings)
    search = {"method": method, "seed": seed, "threads": count, "memory": budget.total, "spill": spill}
    suspected = None if suspects is None else suspect_pairs(suspects, known, log)
    found = host_pairs(paths, settings, log, suspected, **search)
    columns = pair_columns(found, known, paths, counts)
    if suspected is not None:
        n = len(known.hosts)
        columns["suspect"] = pa.array(np.isin(found.left * n + found.right, suspected[0] * n + suspected[1]))
    texts = np.zeros(0, np.int64)
    compared, fraction = np.zeros(len(found), np.int64), np.full(len(found), np.nan)
    if pages is not None:
        again = UrlReader(known, on_error, encoding_errors, count, budget.batch)
        with log.stage("confirm") as tick:
            texts = again.rows_of(pages, url, tick)
            twice = UrlReader(known, on_error, encoding_errors, count, budget.batch)
            answer = confirm(paths, found, twice, pages, (url, text), texts, settings, count, tick)
        compared, fraction = answer.compared, answer.fraction()
        log.counts |= {"texts": again.rows, "pages_compared": int(compared.sum())}
        reader.aside += again.aside
        reader.inputs += again.inputs
    is_mirror = np.isnan(fraction) | (fraction >= settings.confirmed)
    columns |= {
        "compared": pa.array(compared.tolist(), pa.int64()),
        "confirmed": pa.array([None if np.isnan(one) else one for one in fraction.tolist()], pa.float64()),
        "mirror": pa.array(is_mirror.tolist(), pa.bool_()),
    }
    mirrored = found.where(is_mirror)
    counts = np.bincount(known.host[: len(listed)], minlength=len(known.hosts))
    groups = HostGroups.of_pairs(len(known.hosts), mirrored, counts, "abridged" in log.details)
    table = mirror_table(groups, known, paths, counts)
    log.counts |= {"host_pairs": len(found), "mirror_pairs": len(mirrored), "mirrors": len(table)}
    log.counts["clusters"] = len(pc.unique(table["cluster"]))
    folded = None
    if links is not None:
        folded = _folded(known, paths, groups, reader, settings, folding, log, links, (source, target), texts,
                         (pages, text), search)  # fmt: skip
    names = {"url": url, "text": text, "source": source, "target": target}
    asked = {"similar_links": folding["similar"], "least_links": folding["least"], "template": folding["template"]}
    reading: dict[str, Any] = {"on_error": on_error, "encoding_errors": encoding_errors}
    used = {"threads": count, "memory": budget.total}
    reading["suspects"] = None if suspects is None else "given"
    parameters = {**settings.to_dict(), **asked, **names, **reading, **used}
    return Mirrors(table, pa.table(columns), folded, run_json(OWNER, parameters, [reader], log))


def _folded(
    known: Pages, paths: Paths, groups: HostGroups, reader: UrlReader, settings: MirrorSettings,
    folding: dict[str, Any], log: RunLog, links: Any, columns: tuple[str, str], texts: Ints, pages: tuple[Any, str],
    search: dict[str, Any],
) -> pa.Table:  # fmt: skip
    """Read the links, fold equal pages, and return for each folded page the one it is folded into."""
    listed = len(known)
    linking = UrlReader(known, reader.on_error, reader.encoding_errors, reader.threads, reader.batch_bytes)
    with log.stage("links") as tick:
        ends = [(left.astype(np.int32), right.astype(np.int32)) for left, right in linking.links(links, *columns, tick)]
        left, right = (np.concatenate([np.zeros(0, np.int32), *(part[i] for part in ends)]) for i in (0, 1))
        del ends
    reader.aside += linking.aside
    reader.inputs += linking.inputs
    log.counts |= {"links": linking.rows, "graph_pages": len(known), "unlisted": len(known) - listed}
    groups = groups.widened(len(known.hosts))
    same = np.unique(groups.keys(known, paths), return_inverse=True)[1]
    if len(texts):
        with log.stage("texts"):
            same = _with_texts(same, texts, pages, settings, reader, search)
    with log.stage("contract") as tick:
        done = contract(left, right, len(known), same=same, host=known.host, **folding, tick=tick)
    del left, right
    log.details["rounds"] = [vars(one) for one in done.rounds]
    log.counts |= {"different_links": done.links, "template_links": done.template_links}
    log.counts["folded"] = int((done.folded != np.arange(len(known))).sum())
    if done.crowded:
        log.details["crowded"] = done.crowded
        times = "Once" if done.crowded == 1 else f"{done.crowded:,} times"
        log.notes.append(f"{times}, too many pages shared a link, and not all of them were compared by similarity.")
    return _page_table(done, known, groups)


def _with_texts(
    same: Ints, texts: Ints, pages: tuple[Any, str], settings: MirrorSettings, reader: UrlReader, search: dict[str, Any]
) -> Ints:
    """Join groups of equal pages by the similar texts of their pages, each with a group to which it has such a pair."""
    request = PairsRequest(
        source=pages[0], text=pages[1], shingle=settings.shingle, threshold=settings.similar_text,
        recall=settings.recall, on_error=reader.on_error, encoding_errors=reader.encoding_errors, **search,
    )  # fmt: skip
    found = similar_pairs(request).table
    left, right = (texts[found[name].to_numpy()] for name in ("id_a", "id_b"))
    both = (left >= 0) & (right >= 0)
    left, right = same[left[both]], same[right[both]]
    apart = left != right
    left, right = left[apart], right[apart]
    groups = int(same.max(initial=-1)) + 1
    degree = np.bincount(np.concatenate([left, right]), minlength=groups)
    by = graph.keepers(np.lexsort((np.arange(groups), -degree)), left, right)
    gone = np.flatnonzero(by >= 0)
    keeper = np.arange(groups)
    keeper[gone] = left[by[gone]] + right[by[gone]] - gone
    joined: Ints = keeper[same]
    return joined


def _page_table(done: Contraction, known: Pages, groups: HostGroups) -> pa.Table:
    """List the folded pages and their keepers: a page of a host that is a keeper if there is one, the first listed."""
    sizes = np.bincount(done.folded, minlength=len(known))
    rows = np.flatnonzero(sizes[done.folded] > 1)
    hosts = known.host[rows]
    order = rows[np.lexsort((rows, groups.of[hosts] != hosts, done.folded[rows]))]
    new = np.concatenate([[True], done.folded[order][1:] != done.folded[order][:-1]]) if len(order) else order > 0
    chosen = np.empty(len(known), np.int64)
    chosen[done.folded[order[new]]] = order[new]
    into = chosen[done.folded[rows]]
    gone = into != rows
    return pa.table({"id": known.urls.take(rows[gone]), "keeper": known.urls.take(into[gone])})
