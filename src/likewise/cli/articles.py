"""`likewise stories`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

SHOWN = 5


@click.command(
    epilog="""\b
Examples:
  likewise stories crawl/ --out stories/
  likewise stories 'sites/**/*.html' --shingle stopwords:en --out stories/
  likewise stories crawl.jsonl.gz --html --text page --id url --threshold 0.6 --out stories/
  likewise stories articles.parquet --text body --shingle stopwords:words.txt --out stories/

\b
DIR will hold:
  stories.parquet  id, story, size, keeper, similarity (to the keeper), title, language: one row a page
  pairs.parquet    id_a, id_b, similarity: every two pages with the same article, verified
  run.json         parameters, counts, seconds, memory"""
)
@click.argument("pages", nargs=-1, required=True, metavar="PAGES...")
@shared.out
@click.option(
    "--shingle",
    default="stopwords:auto",
    show_default=True,
    metavar="SPEC",
    help="stopwords:LANGUAGE (da de en es fi fr hu it ne nl no pt ru sv tr; several: en+de; auto: guessed for each "
    "page), stopwords:FILE with your own list, stopwords:letters=3 for short words; or words:K, chars:K.",
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
    help="Which page stands for a story: first, last, longest, shortest, max:COL, min:COL.",
)
@click.option(
    "--html/--no-html",
    default=None,
    help="Pages are HTML, or plain text.  [default: files named .html or .htm are HTML]",
)
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the pages.")
@click.option("--id", metavar="COL", help="Column with the ids.  [default: row number; path for files]")
@click.option("--lines", is_flag=True, help="Text files hold one page a line.")
@click.option(
    "--ignore-common",
    type=float,
    metavar="X",
    help="Leave out shingles that more than this fraction of the pages carry: phrases of the furniture.",
)
@click.option("--certify", type=int, metavar="N", help="Measure the recall of the run on N random pages.")
@click.option("--seed", type=int, default=1, show_default=True)
@shared.on_error
@click.option(
    "--encoding-errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="What to do with invalid UTF-8 in plain text. HTML is read as browsers read it.",
)
@shared.threads
@click.option("--memory", metavar="SIZE", help="How much to use, such as 4GiB.  [default: half of what is free]")
@click.option(
    "--spill", metavar="DIR", type=click.Path(path_type=Path), help="Where to keep what does not fit in memory."
)
@shared.as_json
def stories(pages: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Group pages by the article they carry, though the rest of the page differs and paragraphs were cut.

    PAGES: HTML files (needs pip install 'likewise[html]') or text files, Parquet, Arrow, JSONL, CSV, TSV, compressed or
    not, folders, globs.
    """
    from likewise.apps.articles import stories as find_stories
    from likewise.apps.articles.answer import COMMAND, TABLES
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    check_output(out, COMMAND, TABLES, [file.path for file in find(Files(list(pages)))])
    show.announce_compilation()
    with show.progress(as_json) as observer:
        answer = find_stories(Files(list(pages)), progress=observer, **options)
        answer.save(out)
    stats = answer.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in show.opening(stats):
        click.echo(line)
    show.set_aside(stats)
    counts = stats["counts"]
    if counts["empty"]:
        click.echo(f"{show.count(counts['empty'], 'page')} without any word")
    alone = counts["items"] - counts["grouped"]
    click.echo(
        f"{story_count(counts['shared_stories'])} on two pages or more, {counts['grouped']:,} pages in all; "
        f"{show.count(alone, 'page')} alone"
    )
    for line in largest(answer.stories):
        click.echo(line)
    click.echo(show.closing(stats, str(out)))


def story_count(number: int) -> str:
    """Write how many stories.

    >>> story_count(1), story_count(2000)
    ('1 story', '2,000 stories')
    """
    return "1 story" if number == 1 else f"{number:,} stories"


def largest(table: Any) -> list[str]:
    """Show the stories with most pages: how many, and the title of the page they are named after."""
    heads = [
        (row["size"], row["title"] or row["story"])
        for row in table.select(["id", "story", "size", "title"]).to_pylist()
        if row["size"] > 1 and row["id"] == row["story"]
    ]
    heads.sort(key=lambda entry: -entry[0])
    return [f"  {size:>5,} pages: {str(name)[:90]}" for size, name in heads[:SHOWN]]
