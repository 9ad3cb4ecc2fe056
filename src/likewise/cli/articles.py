"""`likewise articles`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

SHOWN = 5
"""Clusters listed on the screen."""


@click.command(
    epilog="""\b
Examples:
  likewise articles crawl/ --out found/
  likewise articles 'sites/**/*.html' --shingle stopwords:en --out found/
  likewise articles crawl.jsonl.gz --html --text page --id url --threshold 0.6 --out found/
  likewise articles pages.parquet --text body --shingle stopwords:words.txt --out found/

\b
DIR will contain:
  articles.parquet  id, cluster, size, keeper, similarity (to the keeper), title, language: one row per page
  pairs.parquet     id_a, id_b, similarity: every pair of pages with the same article, verified
  run.json          parameters, counts, seconds, memory"""
)
@click.argument("pages", nargs=-1, required=True, metavar="PAGES...")
@shared.out
@click.option(
    "--shingle",
    default="stopwords:auto",
    show_default=True,
    metavar="SPEC",
    help="stopwords:LANGUAGE (da de en es fi fr hu it ne nl no pt ru sv tr; several: en+de; auto: detected for each "
    "page), stopwords:FILE for your own list, stopwords:letters=3 for short words; or words:K, chars:K.",
)
@click.option("--threshold", type=float, default=0.3, show_default=True, help="Least Jaccard similarity of a pair.")
@click.option(
    "--recall",
    type=float,
    default=0.99,
    show_default=True,
    help="A pair at the threshold is found with at least this probability.",
)
@click.option(
    "--method", type=click.Choice(["auto", "exact", "lsh"]), default="auto", show_default=True, help="As for dedup."
)
@click.option(
    "--keep",
    default="longest",
    show_default=True,
    metavar="POLICY",
    help="Which page represents the others: first, last, longest, shortest, max:COL, min:COL.",
)
@click.option(
    "--html/--no-html",
    default=None,
    help="Pages are HTML, or plain text.  [default: files named .html or .htm are HTML]",
)
@shared.text
@shared.id
@click.option("--lines", is_flag=True, help="Text files have one page per line.")
@click.option(
    "--ignore-common",
    type=float,
    metavar="X",
    help="Ignore shingles that occur in more than this fraction of the pages, such as those of menus.",
)
@click.option("--certify", type=int, metavar="N", help="Measure the recall of the run on N random pages.")
@shared.seed
@shared.on_error
@shared.encoding_errors
@shared.threads
@shared.memory
@shared.spill
@shared.as_json
def articles(pages: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Group pages that carry the same article, even if everything around it differs or paragraphs are missing.

    PAGES: HTML files (needs pip install 'likewise[html]') or text files, Parquet, Arrow, JSONL, CSV, TSV, compressed or
    not, folders, globs.
    """
    from likewise.apps.articles import Articles
    from likewise.apps.articles import articles as find_articles
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    check_output(out, "articles", Articles.files, [file.path for file in find(Files(list(pages)))])
    show.announce_compilation()
    with show.progress(as_json) as observer:
        result = find_articles(Files(list(pages)), progress=observer, **options)
        result.save(out)
    stats = result.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in show.opening(stats):
        click.echo(line)
    show.set_aside(stats)
    counts = stats["counts"]
    if counts["empty"]:
        click.echo(f"{show.count(counts['empty'], 'page')} without words")
    alone = counts["items"] - counts["clustered"]
    click.echo(
        f"{show.count(counts['clusters'], 'article')} on two or more pages, {counts['clustered']:,} pages in total; "
        f"{show.count(alone, 'page')} with an article of {'its' if alone == 1 else 'their'} own"
    )
    for line in largest(result.articles):
        click.echo(line)
    click.echo(show.closing(stats, str(out)))


def largest(table: Any) -> list[str]:
    """Return a line for each of the largest clusters: its size and the title of the page it is named after."""
    heads = [
        (row["size"], row["title"] or row["cluster"])
        for row in table.select(["id", "cluster", "size", "title"]).to_pylist()
        if row["size"] > 1 and row["id"] == row["cluster"]
    ]
    heads.sort(key=lambda entry: -entry[0])
    return [f"  {size:>5,} pages: {str(name)[:90]}" for size, name in heads[:SHOWN]]
