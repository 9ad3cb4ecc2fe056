"""`likewise passages` and `likewise explain`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

length = shared.whole(
    "--length", 8, "Every shared run of this many words is found; a passage has at least this many equal words."
)
gap = shared.whole("--gap", 5, "Runs at most this many words apart, in both documents, form one passage.")
shingle = shared.shingle(
    "chars:7,whitespace=remove,casefold=true",
    "Shingles from which containment is computed: words:K or chars:K, and options.",
)


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
                     exclusive), length, equal (words), the text in both
  documents.parquet  suspect, source, containment of each in the other, Jaccard similarity, number of passages
  run.json           parameters, counts, seconds, memory"""
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
@length
@gap
@click.option(
    "--every", is_flag=True, help="Measure all pairs of a suspect and a source, not only those that share a passage."
)
@click.option("--not-itself", "itself", flag_value=False, default=True, help="Exclude the source with the same id.")
@shared.whole(
    "--common", 1000, "Examine at most this many sources with the same words, such as licences and templates."
)
@shingle
@shared.text
@shared.id
@click.option("--source-text", metavar="COL", help="Column with the documents in the sources, if it differs.")
@click.option("--source-id", metavar="COL", help="Column with the ids in the sources, if it differs.")
@click.option("--lines", is_flag=True, help="Text files have one document per line.")
@shared.on_error
@shared.encoding_errors
@shared.threads
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory to use, such as 4GiB; sources that do not fit are processed in blocks. The result is the same.  "
    "[default: half of what is free]",
)
@shared.as_json
def passages(suspects: tuple[str, ...], sources: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find text copied from sources, wherever it occurs, in whatever order, with words changed.

    SUSPECT and SOURCE: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs.
    """
    from likewise.apps.passages import Passages
    from likewise.apps.passages import passages as find_passages
    from likewise.io.publish import check_output
    from likewise.io.read import Files

    check_output(out, "passages", Passages.files, shared.files(suspects, sources))
    show.announce_compilation()
    with show.progress(as_json) as observer:
        result = find_passages(Files(suspects), Files(sources), progress=observer, **options)
        result.save(out)
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
    yield f"{show.count(counts['passages'], 'passage')} in {show.count(counts['suspects_with_passages'], 'suspect')}"


@click.command(
    epilog="""\b
Examples:
  likewise explain essay.txt source.txt
  likewise explain essays.csv#17 articles.parquet#a-1203 --id id --text body
  likewise explain answers.jsonl#0 answers.jsonl#1 --json"""
)
@click.argument("a")
@click.argument("b")
@length
@gap
@shingle
@shared.text
@shared.id
@shared.encoding_errors
@click.option("--width", type=click.IntRange(20), help="Width of the drawing.  [default: that of the terminal]")
@click.option("--json", "as_json", is_flag=True, help="Print the passages and their positions as JSON.")
def explain(a: str, b: str, as_json: bool, width: int | None, **options: Any) -> None:
    """Show two documents side by side, with what they share in colour.

    A and B: text files, or rows of tables as FILE#ID, where ID is the value in the column --id or the row number from
    0. Words changed within a passage are underlined. Without colours, passages are in brackets.
    """
    from likewise.apps.passages import explain as explain_texts
    from likewise.base.checks import unused

    if as_json:
        unused("explain", {"width": (width, None)}, "with --json")
    reading = {name: options.pop(name) for name in ("text", "id", "encoding_errors")}
    places = [place_of(name) for name in (a, b)]
    if all(key is None for _, key in places):
        unused("explain", {"text": (reading["text"], "text"), "id": (reading["id"], None)}, "for text files")
    texts = [document(path, key, **reading) for path, key in places]
    show.announce_compilation()
    explanation = explain_texts(*texts, names=(a, b), **options)
    if as_json:
        click.echo(json.dumps(explanation.to_dict(), indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    Console(width=width, highlight=False).print(explanation)


def place_of(name: str) -> tuple[str, str | None]:
    """Split FILE#ID into the file and the id of a row; the id is None for a text file."""
    from likewise.errors import InputError
    from likewise.io.read import Files
    from likewise.io.read.find import find

    path, mark, key = name.rpartition("#")
    if not mark or Path(name).exists():
        path, key, mark = name, "", ""
    found = find(Files([path]))
    if len(found) > 1:
        raise InputError(f"{path}: these are {len(found)} files; name one of them")
    if found[0].is_table and not mark:
        raise InputError(f"{path}: this is a table; name one of its rows as {path}#ID, by --id COL or the row number")
    if mark and not found[0].is_table:
        raise InputError(f"{path}: this is a text file, which is one document; #ID is for the rows of tables")
    return path, key if mark else None


def document(path: str, key: str | None, **reading: Any) -> str:
    """Return a text file, or the text in the row of a table that has this id or number."""
    from likewise.errors import InputError
    from likewise.io.read import Files, ReadOptions, open_source

    if key is None:
        reading |= {"text": "text", "id": None}
    row = 0
    for batch in open_source(Files([path]), ReadOptions(**reading)).batches():
        if key is None:
            return str(batch.column("text")[0].as_py())
        ids = batch.column("id").to_pylist() if "id" in batch.schema.names else range(row, row + batch.num_rows)
        at = next((i for i, value in enumerate(ids) if str(value) == key), None)
        if at is not None:
            return str(batch.column("text")[at].as_py())
        row += batch.num_rows
    where = f"'{key}' in column '{reading['id']}'" if reading["id"] else f"{key}; the rows are 0 to {row - 1}"
    raise InputError(f"{path}: there is no row {where}")
