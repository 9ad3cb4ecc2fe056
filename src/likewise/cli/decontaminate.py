"""`likewise decontaminate`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise decontaminate corpus/ --tests benchmarks/ --out clean/
  likewise decontaminate 'crawl/*.parquet' --id url --tests gsm8k.jsonl --tests mmlu/ --action cut --out clean/
  likewise decontaminate corpus.jsonl --tests quiz.csv --columns question,options --action report --out found/
  likewise decontaminate corpus/ --tests questions.txt --test-lines --length 13 --out clean/
  likewise decontaminate 's3a://crawl/*.parquet' --tests benchmarks/ --engine spark --out s3a://clean/run

\b
DIR will contain:
  kept/            the documents that are left, all columns, in the input's format and order
  hits.parquet     test_set, item, column, id of the document, start and end in it (in characters; the end is
                   exclusive), words, item_words, share, documents that have it, why it counts, both texts
  tests.parquet    for each test set: items, items_hit, share, items_frequent, items_too_short, documents
  run.json         parameters, counts, seconds, memory: docs/run-json.md
  report.html      the report on the run"""
)
@click.argument("corpus", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--tests",
    multiple=True,
    required=True,
    metavar="TESTS",
    help="A file is a test set; of a folder, each file and folder in it. Repeatable.",
)
@shared.out
@shared.choice(
    "--action",
    ["drop", "cut", "report"],
    "drop",
    "drop: remove documents with a hit. cut: remove the passages, and documents left without a word. report: list.",
)
@shared.whole("--length", 8, "Shortest run of words that counts, unless it is a whole item.")
@shared.number("--share", 0.5, "Least share of an item that a document must have, unless it has 25 words in a row.")
@click.option(
    "--common",
    type=int,
    metavar="N",
    help="A run of words found in more documents than this is a frequent phrase and does not count.  [default: one in "
    "1,000 documents, from 10 to 1,000]",
)
@shared.whole(
    "--rare",
    3,
    "Items of 5 words up to --length, found whole, and parts of fewer than 13 words count only if at most this many "
    "documents have them.",
)
@shared.text
@shared.id
@click.option(
    "--columns",
    metavar="COL,COL",
    help="Columns of the test sets that hold items.  [default: question, answer, text, prompt and the like]",
)
@click.option("--test-id", metavar="COL", help="Column with the ids of items.  [default: row number]")
@click.option("--test-lines", is_flag=True, help="Text files of tests hold one item per line.")
@shared.lines
@shared.html
@shared.plain
@shared.hidden
@shared.on_error
@shared.encoding_errors
@shared.threads
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory to use, such as 4GiB, of which the tests may take half.  [default: half of the free memory]",
)
@shared.report
@shared.as_json
@shared.engine
def decontaminate(
    corpus: tuple[str, ...], tests: tuple[str, ...], out: Path, columns: str | None, as_json: bool, **options: Any
) -> None:
    """Find items of test sets in training documents, word for word, and remove the documents or the passages.

    CORPUS and TESTS: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs. CORPUS may be
    WARC, too.
    """
    import likewise
    from likewise.io.read import Files

    given = Files(corpus)
    target, on_spark = shared.location(out, options["engine"]), options["engine"] == "spark"
    if not on_spark:
        found = shared.files(given, plain=options["plain"], hidden=options["hidden"])
        likewise.Decontamination.check_folder(out, found)
    shared.check_report("decontaminate", out)
    show.announce_compilation()
    named = None if columns is None else columns.split(",")
    with show.progress(as_json) as observer:
        result = likewise.decontaminate(
            given, tests=Files(tests), out=target, columns=named, progress=observer, **options
        )
    per_set: Any = result.tests
    rows = (per_set.toArrow() if on_spark else per_set).to_pylist()
    show.report(result.stats, as_json, _summary(result.stats, rows), target)


def _summary(stats: dict[str, Any], tests: list[dict[str, Any]]) -> Iterator[str]:
    """Say what was read, which items of which test sets were found, and what is left."""
    counts = stats["counts"]
    yield (
        f"{show.count(counts['documents'], 'document')}, {show.size(counts['bytes'])} of text; "
        f"{show.count(counts['items'], 'item')} of {show.count(counts['test_sets'], 'test set')}"
    )
    yield from show.broken(stats)
    yield from show.notes(stats)
    for row in tests:
        if row["items_hit"]:
            where = show.count(row["documents"], "document")
            yield f"{row['test_set']}: {row['items_hit']:,} of {show.count(row['items'], 'item')} in {where}"
    removed = counts["documents"] - counts["kept"]
    yield (
        f"{show.count(counts['documents_hit'], 'document')} with items of tests; kept {counts['kept']:,}, "
        f"removed {removed:,}"
    )
