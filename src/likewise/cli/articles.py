"""`likewise articles`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
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
  run.json          parameters, counts, seconds, memory
  report.html       the report on the run"""
)
@click.argument("pages", nargs=-1, required=True, metavar="PAGES...")
@shared.out
@shared.shingle(
    "stopwords:auto",
    "stopwords:LANGUAGE (da de en es fi fr hu it ne nl no pt ru sv tr; several: en+de; auto: detected for each "
    "page), stopwords:FILE for your own list, stopwords:letters=3 for short words; or words:K, chars:K.",
)
@shared.number("--threshold", 0.3, "Minimum Jaccard similarity of a pair.")
@shared.pair_recall
@shared.method("As for dedup.")
@shared.keep("longest", "Which page represents the others")
@click.option(
    "--html/--no-html",
    default=None,
    callback=shared.needing("html", "--html"),
    help="Pages are HTML, or plain text.  [default: files named .html or .htm are HTML]",
)
@shared.text
@shared.id
@click.option("--lines", is_flag=True, help="Text files have one page per line.")
@shared.plain
@shared.hidden
@click.option(
    "--ignore-common",
    type=float,
    metavar="X",
    help="Ignore shingles that occur in more than this fraction of the pages, such as those of menus.",
)
@click.option("--certify", type=int, metavar="N", help="Measure the recall of the run on N random pages.")
@shared.by
@shared.report
@shared.run
def articles(pages: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Group pages that carry the same article, even if everything around it differs or paragraphs are missing.

    PAGES: HTML files (needs pip install 'likewise[html]') or text files, WARC, Parquet, Arrow, JSONL, CSV, TSV,
    compressed or not, folders, globs.
    """
    from likewise.apps.articles import Articles
    from likewise.apps.articles import articles as find_articles
    from likewise.io.read import Files

    given = Files(pages)
    found = shared.files(given, plain=options["plain"], hidden=options["hidden"])
    shared.check_report("articles", out, given, options)
    result = show.saved("articles", Articles, out, found, as_json, partial(find_articles, given, **options))
    show.report(result.stats, as_json, (*_summary(result.stats), *largest(result.articles)), out)


def _summary(stats: dict[str, Any]) -> Iterator[str]:
    """Say what was read, how it was searched, and how many articles there are."""
    yield from show.opening(stats)
    counts = stats["counts"]
    if counts["empty"]:
        yield f"{show.count(counts['empty'], 'page')} without words"
    yield f"{show.count(counts['pairs'], 'pair')} of pages with the same article"
    alone = counts["items"] - counts["clustered"]
    yield (
        f"{show.count(counts['clusters'], 'article')} on two or more pages, "
        f"{show.count(counts['clustered'], 'page')} in total; "
        f"{show.count(alone, 'page')} with an article of {'its' if alone == 1 else 'their'} own"
    )


def largest(table: Any) -> list[str]:
    """Return a line for each of the largest clusters: its size and the title of the page it is named after."""
    heads = [
        (row["size"], row["title"] or row["cluster"])
        for row in table.select(["id", "cluster", "size", "title"]).to_pylist()
        if row["size"] > 1 and row["id"] == row["cluster"]
    ]
    heads.sort(key=lambda entry: -entry[0])
    return [f"  {size:>5,} pages: {str(name)[:90]}" for size, name in heads[:SHOWN]]
