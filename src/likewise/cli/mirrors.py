"""`likewise mirrors`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

FIRST, LAST = 6, 2
"""Rounds of a long contraction that are listed: the first and the last ones."""


@click.command(
    epilog="""\b
Examples:
  likewise mirrors urls.txt --out found/
  likewise mirrors crawl/*.txt.gz --on-error skip --out found/
  likewise mirrors crawl.parquet --url address --pages crawl.parquet --text body --out found/
  likewise mirrors urls.txt --links links.csv --out found/
  likewise mirrors tuesday.txt --suspects monday/ --out tuesday/      re-check the mirrors of an earlier crawl
  likewise mirrors urls.txt --links edges.tsv --source from --target to --similar-links 1 --out found/

\b
DIR will contain:
  mirrors.parquet  id (the host), cluster, size, keeper, pages, top (folders above the shared pages)
  pairs.parquet    id_a, id_b, similarity, pages_a, pages_b, shared_paths, top_a, top_b,
                   compared, confirmed (fraction of the compared pages with similar texts), mirror;
                   with --suspects: suspect
  pages.parquet    id (the URL), keeper: folded pages (with --links)
  run.json         parameters, counts, rounds, seconds, memory
  report.html      the report on the run"""
)
@click.argument("urls", nargs=-1, required=True, metavar="URLS...")
@shared.out
@click.option("--links", multiple=True, metavar="FILE", help="Table of links, to fold pages. Repeatable.")
@click.option("--pages", multiple=True, metavar="FILE", help="Table of URLs and texts, to confirm mirrors. Repeatable.")
@click.option(
    "--suspects",
    multiple=True,
    metavar="FILE",
    help="Pairs of hosts known from earlier crawls: a table (id_a, id_b or id, keeper), or the DIR of an earlier run; "
    "they are compared whatever their URLs. Repeatable.",
)
@shared.number("--threshold", 0.2, "Minimum similarity of two hosts by their URLs.")
@shared.pair_recall
@shared.method("exact: find all pairs; lsh: MinHash; auto: whichever is predicted to be cheaper.")
@shared.whole("--least", 5, "Minimum number of paths that two mirrors share.")
@shared.choice(
    "--position",
    ["end", "start", "none"],
    "end",
    "Where positions in a path are counted from; from the start, other folders on top change all of them.",
)
@click.option("--stop", metavar="WORDS", help="Components of paths to ignore, comma-separated.  [default: htm,html,…]")
@shared.number("--confirmed", 0.5, "With --pages: minimum fraction of the compared pages with similar texts.")
@shared.number("--similar-text", 0.8, "With --pages: minimum similarity of two texts.")
@shared.shingle("words:3", "With --pages: shingles by which texts are compared.")
@shared.number(
    "--similar-links", 0.9, "With --links: minimum similarity of the outlinks of pages to fold; 1: they must be equal."
)
@shared.whole("--least-links", 3, "With --links: minimum number of outlinks of such pages.")
@shared.number("--template", 0.5, "With --links: ignore links on more than this fraction of a host's pages.")
@shared.column("--url", "url", "Column with the URLs, in tables.")
@shared.column("--text", "text", "Column with the texts of --pages.")
@shared.column("--source", "source", "Column of --links: the linking page.")
@shared.column("--target", "target", "Column of --links: the page linked to.")
@shared.report
@shared.run
def mirrors(urls: tuple[str, ...], suspects: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find hosts that mirror each other by their URLs, confirm them by content, and fold pages along links.

    URLS: text files with one URL per line, or CSV, TSV, JSONL, Parquet or Arrow files with a column, compressed
    or not, folders, globs.
    """
    from likewise.apps.mirrors import Mirrors
    from likewise.apps.mirrors import mirrors as find_mirrors
    from likewise.io.read import Files

    given = Files(urls)
    more: dict[str, Any] = {name: Files(paths) for name in ("links", "pages") if (paths := options.pop(name))}
    if options["position"] == "none":
        options["position"] = None
    words = options.pop("stop")
    if words is not None:
        options["stop"] = [word.strip() for word in words.split(",") if word.strip()]
    run = partial(find_mirrors, given, suspects=Files(suspects) if suspects else None, **more, **options)
    result = show.saved("mirrors", Mirrors, out, shared.files(given, *more.values()), as_json, run)
    lines = (*summary(result.stats, options["least"]), *largest(result.mirrors))
    show.report(result.stats, as_json, lines, out)


def summary(stats: dict[str, Any], least: int) -> list[str]:
    """Return lines that say what was read, compared and folded."""
    counts = stats["counts"]
    twice = f", {counts['repeated']:,} repeated" if counts["repeated"] else ""
    pages = show.count(counts["pages"], "page")
    lines = [f"{show.count(counts['urls'], 'URL')}{twice}; {pages} of {_hosts(counts['hosts'])}"]
    lines += [*show.broken(stats), *show.notes(stats)]
    small = counts["hosts"] - counts["hosts_compared"]
    if small and counts["hosts"]:
        how = "compared only with those they are suspected to mirror" if "suspects" in counts else "not compared"
        lines.append(f"{how}: {_hosts(small)} with fewer than {least} named pages")
    lines.append(
        f"{show.count(counts['host_pairs'], 'pair')} of hosts with similar URLs"
        + (f"; {counts['mirror_pairs']:,} left after comparing {show.count(counts['pages_compared'], 'pair')} of pages"
           if "pages_compared" in counts else "")
    )  # fmt: skip
    lines.append(f"{_hosts(counts['mirrors'])} in {show.count(counts['clusters'], 'cluster')} of mirrors")
    if "rounds" in stats["details"]:
        unlisted = f", {counts['unlisted']:,} of them not listed" if counts["unlisted"] else ""
        pages = show.count(counts["graph_pages"], "page")
        lines.append(f"{show.count(counts['links'], 'link')} among {pages}{unlisted}")
        if counts["template_links"]:
            lines.append(f"{show.count(counts['template_links'], 'link')} on most pages of a host ignored")
        lines += list(rounds(stats["details"]["rounds"]))
        left = counts["graph_pages"] - counts["folded"]
        lines.append(f"{show.count(counts['folded'], 'page')} folded, {left:,} left")
    return lines


def _hosts(number: int) -> str:
    return show.count(number, "host")


def rounds(done: list[dict[str, Any]]) -> list[str]:
    """Return a line for each round with the number of pages it folded; of many rounds, the first and the last ones."""
    lines = []
    for number, one in enumerate(done):
        if len(done) > FIRST + LAST + 1 and FIRST <= number < len(done) - LAST:
            if number == FIRST:
                middle = done[FIRST : len(done) - LAST]
                folded = sum(entry["folded"] for entry in middle)
                lines.append(f"  rounds {FIRST} to {len(done) - LAST - 1}: {folded:,} folded")
            continue
        why = "same path on mirrors, or similar texts" if one["by"] == "given" else one["by"]
        lines.append(f"  round {number}: {one['folded']:,} folded ({why})")
    return lines


def largest(table: Any, most: int = 5) -> list[str]:
    """Return a line for each of the largest clusters of mirrors."""
    rows: dict[str, list[str]] = {}
    sizes = {}
    for row in table.select(["cluster", "id", "size"]).to_pylist():
        sizes[row["cluster"]] = row["size"]
        if len(rows.setdefault(row["cluster"], [])) < 4:
            rows[row["cluster"]].append(row["id"])
    lines = []
    for cluster in sorted(sizes, key=lambda one: -sizes[one])[:most]:
        more = sizes[cluster] - len(rows[cluster])
        lines.append(f"  {' = '.join(rows[cluster])}" + (f" = … {more:,} more" if more else ""))
    if len(sizes) > most:
        lines.append(f"  and {show.count(len(sizes) - most, 'cluster')} more")
    return lines
