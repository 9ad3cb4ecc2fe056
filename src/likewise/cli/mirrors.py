"""`likewise mirrors`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

FIRST, LAST = 6, 2
"""Rounds that are shown of a long cascade."""


@click.command(
    epilog="""\b
Examples:
  likewise mirrors urls.txt --out found/
  likewise mirrors crawl/*.txt.gz --on-error skip --out found/
  likewise mirrors crawl.parquet --url address --pages crawl.parquet --text body --out found/
  likewise mirrors urls.txt --links links.csv --out found/
  likewise mirrors urls.txt --links edges.tsv --source from --target to --similar-links 1 --out found/

\b
DIR will hold:
  hosts.parquet    host_a, host_b, similarity, pages_a, pages_b, shared_paths, top_a, top_b (folders above them),
                   compared, confirmed (fraction of the compared pages with similar texts), mirror
  mirrors.parquet  host, group, keeper, pages, top, size
  pages.parquet    url, folded_into (with --links)
  run.json         parameters, counts, rounds, seconds, memory"""
)
@click.argument("urls", nargs=-1, required=True, metavar="URLS...")
@shared.out
@click.option("--links", multiple=True, metavar="FILE", help="Table of links, to fold pages. May be given again.")
@click.option("--pages", multiple=True, metavar="FILE", help="Table of URLs and texts, to confirm. May be given again.")
@click.option(
    "--threshold", type=float, default=0.2, show_default=True, help="Similarity of two hosts by their URLs, at least."
)
@click.option(
    "--recall", type=float, default=0.99, show_default=True, help="Probability to find a pair at the threshold."
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "lsh"]),
    default="auto",
    show_default=True,
    help="exact: no pair is missed; lsh: minhash; auto: the cheaper one.",
)
@click.option("--least", type=int, default=5, show_default=True, help="Paths that two mirrors share, at least.")
@click.option(
    "--position",
    type=click.Choice(["end", "start", "none"]),
    default="end",
    show_default=True,
    help="Where the place of two words in a path is counted from; start: other folders on top make all differ.",
)
@click.option("--stop", metavar="WORDS", help="Components that do not count, comma-separated.  [default: htm,html,…]")
@click.option(
    "--confirmed", type=float, default=0.5, show_default=True, help="Fraction of shared pages that must be similar."
)
@click.option("--similar-text", type=float, default=0.8, show_default=True, help="Similarity of two texts, at least.")
@click.option("--shingle", default="words:3", show_default=True, metavar="SPEC", help="What texts are compared by.")
@click.option(
    "--similar-links",
    type=float,
    default=0.9,
    show_default=True,
    help="Similarity of the outlinks of two pages that are one; 1: they are equal.",
)
@click.option("--least-links", type=int, default=3, show_default=True, help="Outlinks that such pages have, at least.")
@click.option(
    "--template",
    type=float,
    default=0.5,
    show_default=True,
    help="Links on more than this fraction of a host's pages are not compared.",
)
@click.option("--url", default="url", show_default=True, metavar="COL", help="Column with the URLs, in tables.")
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the texts of --pages.")
@click.option("--source", default="source", show_default=True, metavar="COL", help="Column of --links: the page.")
@click.option("--target", default="target", show_default=True, metavar="COL", help="Column of --links: where it leads.")
@click.option("--seed", type=int, default=1, show_default=True, help="Same seed, same answer.")
@shared.on_error
@shared.encoding_errors
@shared.threads
@click.option("--memory", metavar="SIZE", help="For the search of similar hosts.  [default: half of what is free]")
@shared.as_json
def mirrors(
    urls: tuple[str, ...], links: tuple[str, ...], pages: tuple[str, ...], out: Path, as_json: bool, **options: Any
) -> None:
    """Find hosts that mirror each other by their URLs, confirm them by content, fold pages along links.

    URLS: text files with one URL a line, or CSV, TSV, JSONL, Parquet or Arrow with a column; compressed or not, globs.
    """
    from likewise.apps.mirrors import find as find_mirrors
    from likewise.apps.mirrors.answer import COMMAND, TABLES
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    inputs = [file.path for given in (urls, links, pages) if given for file in find(Files(list(given)))]
    check_output(out, COMMAND, TABLES, inputs)
    if options["position"] == "none":
        options["position"] = None
    words = options.pop("stop")
    if words is not None:
        options["stop"] = [word.strip() for word in words.split(",") if word.strip()]
    more: dict[str, Any] = {name: Files(list(given)) for name, given in (("links", links), ("pages", pages)) if given}
    show.announce_compilation()
    with show.progress(as_json) as observer:
        answer = find_mirrors(Files(list(urls)), **more, progress=observer, **options)
        answer.save(out)
    if as_json:
        click.echo(json.dumps(answer.stats, indent=2))
        return
    for line in told(answer.stats, options["least"]):
        click.echo(line)
    show.set_aside(answer.stats)
    for line in groups(answer.mirrors):
        click.echo(line)
    click.echo(show.closing(answer.stats, str(out)))


def told(stats: dict[str, Any], least: int) -> list[str]:
    """Tell what was read, compared and folded."""
    counts = stats["counts"]
    twice = f", {counts['repeated']:,} repeated" if counts["repeated"] else ""
    pages = show.count(counts["pages"], "page")
    lines = [f"{show.count(counts['urls'], 'URL')}{twice}; {pages} of {_hosts(counts['hosts'])}"]
    if counts["set_aside"]:
        lines.append(f"{show.count(counts['set_aside'], 'row')} set aside as broken")
    if "hint" in stats:
        lines.append(f"hint: {stats['hint']}")
    small = counts["hosts"] - counts["hosts_compared"]
    if small and counts["hosts"]:
        lines.append(f"not compared: {_hosts(small)} with fewer than {least} pages that have a name")
    lines.append(
        f"{show.count(counts['host_pairs'], 'pair')} of hosts with similar URLs"
        + (f"; {counts['mirror_pairs']:,} stand when {counts['pages_compared']:,} pairs of pages are compared"
           if "pages_compared" in counts else "")
    )  # fmt: skip
    lines.append(f"{_hosts(counts['mirrors'])} in {show.count(counts['groups'], 'group')} of mirrors")
    if "rounds" in stats:
        unlisted = f", {counts['unlisted']:,} of them not in the list" if counts["unlisted"] else ""
        pages = show.count(counts["graph_pages"], "page")
        lines.append(f"{show.count(counts['links'], 'link')} among {pages}{unlisted}")
        if counts["template_links"]:
            lines.append(f"{show.count(counts['template_links'], 'link')} on most pages of a host, not compared")
        lines += list(rounds(stats["rounds"]))
        if "crowded" in stats:
            lines.append(f"{stats['crowded']:,} times too many pages shared a link; not all of them were compared")
        left = counts["graph_pages"] - counts["folded"]
        lines.append(f"{show.count(counts['folded'], 'page')} folded, {left:,} left")
    return lines


def _hosts(number: int) -> str:
    return show.count(number, "host")


def rounds(done: list[dict[str, Any]]) -> list[str]:
    """Tell how many pages each round folded; of many, the first and the last."""
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


def groups(table: Any, most: int = 5) -> list[str]:
    """Show the largest groups of mirrors."""
    rows: dict[int, list[str]] = {}
    sizes = {}
    for row in table.select(["group", "host", "size"]).to_pylist():
        sizes[row["group"]] = row["size"]
        if len(rows.setdefault(row["group"], [])) < 4:
            rows[row["group"]].append(row["host"])
    lines = []
    for group in sorted(sizes, key=lambda one: (-sizes[one], one))[:most]:
        more = sizes[group] - len(rows[group])
        lines.append(f"  {' = '.join(rows[group])}" + (f" = … {more:,} more" if more else ""))
    if len(sizes) > most:
        lines.append(f"  and {show.count(len(sizes) - most, 'group')} more")
    return lines
