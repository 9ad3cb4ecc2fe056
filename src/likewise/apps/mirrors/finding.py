"""`find`: mirrors among the hosts of a list of URLs, and pages folded along their links."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from likewise.apps.mirrors.addresses import Pages
from likewise.apps.mirrors.answer import COMMAND, Mirrors
from likewise.apps.mirrors.confirming import confirm
from likewise.apps.mirrors.contracting import COMMON, OWNER, SIMILAR, TEMPLATE, Contraction, Rules, contract
from likewise.apps.mirrors.contracting import LEAST as LEAST_LINKS
from likewise.apps.mirrors.grouping import HostGroups, mirror_table, pair_table
from likewise.apps.mirrors.hosts import Paths, host_pairs
from likewise.apps.mirrors.reading import Reader
from likewise.apps.mirrors.settings import CONFIRMED, LEAST, RECALL, SHINGLE, SIMILAR_TEXT, THRESHOLD, Settings
from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.base.memory import Budget
from likewise.base.runlog import Progress, RunLog, run_json
from likewise.jobs.pairs import pairs as similar_pairs
from likewise.kernels import graph
from likewise.shingle import Shingler
from likewise.shingle.urls import STOP


def find(
    urls: Any,
    *,
    links: Any = None,
    pages: Any = None,
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
    similar_links: float = SIMILAR,
    least_links: int = LEAST_LINKS,
    template: float = TEMPLATE,
    seed: int = 1,
    on_error: str = "stop",
    encoding_errors: str = "strict",
    threads: int | None = None,
    memory: str | int | None = None,
    progress: Progress | None = None,
) -> Mirrors:
    """Find hosts that mirror each other by their URLs, confirm them by content, and fold pages along links (A3).

    urls: files with one URL a line, or tables with a column `url`; a list of strings is a list of URLs. A host is the
    set of the positional bigrams of its paths (`likewise.Urls`); hosts of a Jaccard similarity of `threshold` are
    candidates, found by minhash or exactly (`method`), and mirrors if they share `least` paths. Hosts with fewer pages
    are not compared: that two hosts have a page / says nothing.

    pages: tables with columns `url` and `text`. Of the paths that two hosts share, up to 100 are compared by their
    texts, and two hosts are mirrors only if the fraction `confirmed` of them is similar.

    links: tables with columns `source` and `target`. Pages with the same path on mirrors, and pages with similar texts,
    are folded into one; then pages whose outlinks have become the same, and so on; see `contract`.

    >>> found = find([f"http://{host}/docs/{word}/intro.html" for host in ("a.org", "b.net") for word in "pqrst"])
    >>> found.mirrors.select(["host", "keeper"]).to_pylist()
    [{'host': 'a.org', 'keeper': 'a.org'}, {'host': 'b.net', 'keeper': 'a.org'}]
    """
    rules = Rules(similar_links, least_links, template, COMMON)
    settings = Settings(threshold, recall, least, position, stop, shingle, similar_text, confirmed, rules)
    count = checks.threads(OWNER, threads)
    budget = Budget.of(OWNER, memory)
    log = RunLog.of(progress)
    known = Pages()
    reader = Reader(known, on_error, encoding_errors, count)
    with log.stage("read") as tick:
        parts = list(reader.urls(urls, url, tick))
    listed = np.arange(len(known))
    log.counts |= {"urls": reader.rows, "blank": reader.blank, "pages": len(known), "hosts": len(known.hosts)}
    log.counts["repeated"] = sum(map(len, parts)) - len(known)
    if not len(known):
        log.notes.append("there are no URLs, so there are no hosts to compare")
    counts = np.bincount(known.host, minlength=len(known.hosts))
    paths = Paths(known, listed, settings)
    search = {"method": method, "seed": seed, "threads": count, "memory": budget.total}
    found = host_pairs(paths, settings, log, **search)
    columns = pair_table(found, known, paths, counts)
    texts = np.zeros(0, np.int64)
    compared, fraction = np.zeros(len(found), np.int64), np.full(len(found), np.nan)
    if pages is not None:
        again = Reader(known, on_error, encoding_errors, count)
        with log.stage("confirm") as tick:
            texts = again.rows_of(pages, url, tick)
            twice = Reader(known, on_error, encoding_errors, count)
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
    mirrors = found.where(is_mirror)
    counts = np.bincount(known.host[: len(listed)], minlength=len(known.hosts))
    groups = HostGroups.of_pairs(len(known.hosts), mirrors, counts, "abridged" in log.details)
    table = mirror_table(groups, known, paths, counts)
    log.counts |= {"host_pairs": len(found), "mirror_pairs": len(mirrors), "mirrors": len(table)}
    log.counts["groups"] = len(pc.unique(table["group"]))
    folded = None
    if links is not None:
        folded = _folded(known, paths, groups, reader, settings, log, links, (source, target), texts,
                         (pages, text), search)  # fmt: skip
    names = {"url": url, "text": text, "source": source, "target": target}
    parameters = {**settings.to_dict(), "method": method, "seed": seed, "threads": count, **names}
    return Mirrors(pa.table(columns), table, folded, run_json(COMMAND, parameters, [reader], log))


def _folded(
    known: Pages, paths: Paths, groups: HostGroups, reader: Reader, settings: Settings, log: RunLog, links: Any,
    columns: tuple[str, str], texts: Ints, pages: tuple[Any, str], search: dict[str, Any],
) -> pa.Table:  # fmt: skip
    """Read the links, fold what is the same, and name for each folded page the one it is folded into."""
    listed = len(known)
    linking = Reader(known, reader.on_error, reader.encoding_errors, reader.threads)
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
        done = contract(left, right, len(known), same=same, host=known.host, **_rules(settings.rules), tick=tick)
    del left, right
    log.details["rounds"] = [vars(one) for one in done.rounds]
    log.counts |= {"different_links": done.links, "template_links": done.template_links}
    log.counts["folded"] = int((done.folded != np.arange(len(known))).sum())
    if done.crowded:
        log.details["crowded"] = done.crowded
    return _page_table(done, known, groups)


def _rules(rules: Rules) -> dict[str, Any]:
    return {"similar": rules.similar, "least": rules.least, "template": rules.template, "common": rules.common}


def _with_texts(
    same: Ints, texts: Ints, pages: tuple[Any, str], settings: Settings, reader: Reader, search: dict[str, Any]
) -> Ints:
    """Join the pages whose texts are similar, too."""
    found = similar_pairs(
        pages[0], text=pages[1], shingle=settings.shingle, threshold=settings.similar_text, recall=settings.recall,
        on_error=reader.on_error, encoding_errors=reader.encoding_errors, **search,
    ).table  # fmt: skip
    left, right = (texts[found[name].to_numpy()] for name in ("id_a", "id_b"))
    both = (left >= 0) & (right >= 0)
    left, right = left[both], right[both]
    groups = int(same.max(initial=-1)) + 1
    joined: Ints = graph.components(groups, same[left], same[right])[same]
    return joined


def _page_table(done: Contraction, known: Pages, groups: HostGroups) -> pa.Table:
    """List the folded pages; the one that stands for them is on a keeper, if there is one, and first in the list."""
    sizes = np.bincount(done.folded, minlength=len(known))
    rows = np.flatnonzero(sizes[done.folded] > 1)
    hosts = known.host[rows]
    order = rows[np.lexsort((rows, groups.of[hosts] != hosts, done.folded[rows]))]
    new = np.concatenate([[True], done.folded[order][1:] != done.folded[order][:-1]]) if len(order) else order > 0
    chosen = np.empty(len(known), np.int64)
    chosen[done.folded[order[new]]] = order[new]
    into = chosen[done.folded[rows]]
    gone = into != rows
    return pa.table({"url": known.urls.take(rows[gone]), "folded_into": known.urls.take(into[gone])})
