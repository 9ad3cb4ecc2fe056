"""`likewise mirrors`."""

from __future__ import annotations

import json
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
  likewise mirrors urls.txt --links edges.tsv --source from --target to --similar-links 1 --out found/

\b
DIR will contain:
  mirrors.parquet  id (the host), cluster, size, keeper, pages, top (folders above the shared pages)
  pairs.parquet    id_a, id_b, similarity, pages_a, pages_b, shared_paths, top_a, top_b,
                   compared, confirmed (fraction of the compared pages with similar texts), mirror
  pages.parquet    id (the URL), keeper: folded pages (with --links)
  run.json         parameters, counts, rounds, seconds, memory"""
)
@click.argument("urls", nargs=-1, required=True, metavar="URLS...")
@shared.out
@click.option("--links", multiple=True, metavar="FILE", help="Table of links, to fold pages. Repeatable.")
@click.option("--pages", multiple=True, metavar="FILE", help="Table of URLs and texts, to confirm mirrors. Repeatable.")
@click.option(
    "--threshold", type=float, default=0.2, show_default=True, help="Least similarity of two hosts by their URLs."
)
@click.option(
    "--recall",
    type=float,
    default=0.99,
    show_default=True,
    help="A pair at the threshold is found with at least this probability.",
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "lsh"]),
    default="auto",
    show_default=True,
    help="exact: find all pairs; lsh: MinHash; auto: whichever is predicted to be cheaper.",
)
@click.option("--least", type=int, default=5, show_default=True, help="Least number of paths that two mirrors share.")
@click.option(
    "--position",
    type=click.Choice(["end", "start", "none"]),
    default="end",
    show_default=True,
    help="Where positions in a path are counted from; from the start, other folders on top change all of them.",
)
@click.option("--stop", metavar="WORDS", help="Components of paths to ignore, comma-separated.  [default: htm,html,…]")
@click.option(
    "--confirmed",
    type=float,
    default=0.5,
    show_default=True,
    help="With --pages: least fraction of the compared pages with similar texts.",
)
@click.option(
    "--similar-text", type=float, default=0.8, show_default=True, help="With --pages: least similarity of two texts."
)
@click.option(
    "--shingle",
    default="words:3",
    show_default=True,
    metavar="SPEC",
    help="With --pages: shingles by which texts are compared.",
)
@click.option(
    "--similar-links",
    type=float,
    default=0.9,
    show_default=True,
    help="With --links: least similarity of the outlinks of pages to fold; 1: they must be equal.",
)
@click.option(
    "--least-links",
    type=int,
    default=3,
    show_default=True,
    help="With --links: least number of outlinks of such pages.",
)
@click.option(
    "--template",
    type=float,
    default=0.5,
    show_default=True,
    help="With --links: ignore links on more than this fraction of a host's pages.",
)
@click.option("--url", default="url", show_default=True, metavar="COL", help="Column with the URLs, in tables.")
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the texts of --pages.")
@click.option(
    "--source", default="source", show_default=True, metavar="COL", help="Column of --links: the linking page."
)
@click.option(
    "--target", default="target", show_default=True, metavar="COL", help="Column of --links: the page linked to."
)
@shared.seed
@shared.on_error
@shared.encoding_errors
@shared.threads
@shared.memory
@shared.spill
@shared.as_json
def mirrors(
    urls: tuple[str, ...], links: tuple[str, ...], pages: tuple[str, ...], out: Path, as_json: bool, **options: Any
) -> None:
    """Find hosts that mirror each other by their URLs, confirm them by content, and fold pages along links.

    URLS: text files with one URL per line, or CSV, TSV, JSONL, Parquet or Arrow files with a column, compressed
    or not, folders, globs.
    """
    from likewise.apps.mirrors import Mirrors
    from likewise.apps.mirrors import mirrors as find_mirrors
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    inputs = [file.path for given in (urls, links, pages) if given for file in find(Files(list(given)))]
    check_output(out, "mirrors", Mirrors.files, inputs)
    if options["position"] == "none":
        options["position"] = None
    words = options.pop("stop")
    if words is not None:
        options["stop"] = [word.strip() for word in words.split(",") if word.strip()]
    more: dict[str, Any] = {name: Files(list(given)) for name, given in (("links", links), ("pages", pages)) if given}
    show.announce_compilation()
    with show.progress(as_json) as observer:
        result = find_mirrors(Files(list(urls)), **more, progress=observer, **options)
        result.save(out)
    if as_json:
        click.echo(json.dumps(result.stats, indent=2))
        return
    for line in summary(result.stats, options["least"]):
        click.echo(line)
    show.set_aside(result.stats)
    for line in largest(result.mirrors):
        click.echo(line)
    click.echo(show.closing(result.stats, str(out)))


def summary(stats: dict[str, Any], least: int) -> list[str]:
    """Return lines that say what was read, compared and folded."""
    counts = stats["counts"]
    twice = f", {counts['repeated']:,} repeated" if counts["repeated"] else ""
    pages = show.count(counts["pages"], "page")
    lines = [f"{show.count(counts['urls'], 'URL')}{twice}; {pages} of {_hosts(counts['hosts'])}"]
    if counts["set_aside"]:
        lines.append(f"{show.count(counts['set_aside'], 'row')} set aside as broken")
    lines += [f"note: {note}" for note in stats["notes"]]
    small = counts["hosts"] - counts["hosts_compared"]
    if small and counts["hosts"]:
        lines.append(f"not compared: {_hosts(small)} with fewer than {least} named pages")
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
