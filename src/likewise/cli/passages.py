"""`likewise passages`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise passages essays/ --sources library/ --out found/
  likewise passages essays.csv --sources 'articles/*.parquet' --text body --id url --out found/
  likewise passages answers.csv --sources originals/ --id id --every --out found/
  likewise passages papers/ --sources papers/ --not-itself --length 12 --out found/

\b
DIR will contain:
  passages.parquet   suspect, source, start and end in both (in characters of the original text; the end is
                     exclusive), length, equal (words), sources (how many have it), the text in both
  documents.parquet  suspect, source, containment of each in the other, Jaccard similarity, number of passages
  run.json           parameters, counts, seconds, memory
  report.html        the report on the run"""
)
@click.argument("suspects", nargs=-1, required=True, metavar="SUSPECT...")
@click.option(
    "--sources",
    multiple=True,
    required=True,
    metavar="SOURCE",
    help="Documents from which text may have been copied. Repeatable.",
)
@shared.out
@shared.length
@shared.gap
@click.option(
    "--every", is_flag=True, help="Measure all pairs of a suspect and a source, not only those that share a passage."
)
@click.option("--not-itself", "itself", flag_value=False, default=True, help="Exclude the source with the same id.")
@shared.whole(
    "--common", 1000, "Examine at most this many sources with the same words, such as licences and templates."
)
@shared.whole("--many", 10, "List text that is in more sources than this once, with its best source and their number.")
@shared.passage_shingle
@shared.text
@shared.id
@click.option("--source-text", metavar="COL", help="Column with the documents in the sources, if it differs.")
@click.option("--source-id", metavar="COL", help="Column with the ids in the sources, if it differs.")
@shared.lines
@shared.plain
@shared.hidden
@shared.on_error
@shared.encoding_errors
@shared.threads
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory to use, such as 4GiB; sources that do not fit are processed in blocks. The result is the same.  "
    "[default: half of the free memory]",
)
@shared.report
@shared.as_json
def passages(suspects: tuple[str, ...], sources: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find text copied from sources, wherever it occurs, in whatever order, with words changed.

    SUSPECT and SOURCE: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs.
    """
    from likewise.apps.passages import Passages
    from likewise.apps.passages import passages as find_passages
    from likewise.io.read import Files

    given, theirs = Files(suspects), Files(sources)
    found = shared.files(given, theirs, plain=options["plain"], hidden=options["hidden"])
    result = show.saved("passages", Passages, out, found, as_json, partial(find_passages, given, theirs, **options))
    show.report(result.stats, as_json, _summary(result.stats), out)


def _summary(stats: dict[str, Any]) -> Iterator[str]:
    """Say what was read and compared, and how many passages there are."""
    counts = stats["counts"]
    yield (
        f"{show.count(counts['suspects'], 'suspect')}, {show.count(counts['sources'], 'source')}, "
        f"{show.size(counts['bytes'])} of text; {show.count(counts['compared'], 'pair')} compared"
    )
    yield from show.broken(stats)
    yield from show.notes(stats)
    more = f"; {counts['unlisted']:,} more in other sources, counted there" if counts["unlisted"] else ""
    where = show.count(counts["suspects_with_passages"], "suspect")
    yield f"{show.count(counts['passages'], 'passage')} in {where}{more}"
