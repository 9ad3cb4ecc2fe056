"""`likewise passages` and `likewise explain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

shingle = click.option(
    "--shingle",
    default="chars:7,whitespace=remove,casefold=true",
    show_default=True,
    metavar="SPEC",
    help="What containment is computed of: words:K or chars:K, and options.",
)


@click.command(
    epilog="""\b
Examples:
  likewise passages essays/ --sources library/ --out found/
  likewise passages essays.csv --sources 'articles/*.parquet' --text body --id url --out found/
  likewise passages answers.csv --sources originals/ --id id --every --out found/
  likewise passages papers/ --sources papers/ --not-itself --length 12 --out found/

\b
DIR will hold:
  passages.parquet   suspect, source, start and end in both (characters of the text as it is; the end is behind
                     the last one), length, equal (words), the text of both
  documents.parquet  suspect, source, containment of each in the other, Jaccard similarity, passages
  run.json           parameters, counts, seconds, memory"""
)
@click.argument("suspects", nargs=-1, required=True, metavar="SUSPECT...")
@click.option(
    "--sources", multiple=True, required=True, metavar="SOURCE", help="Where it may be copied from. May be given again."
)
@shared.out
@click.option(
    "--length",
    type=int,
    default=8,
    show_default=True,
    help="Every shared run of this many words is found; a passage has as many equal words or more.",
)
@click.option(
    "--gap",
    type=int,
    default=5,
    show_default=True,
    help="Runs at most this many words apart, in both documents, are one passage.",
)
@click.option("--every", is_flag=True, help="Measure all pairs of a suspect and a source, not only those that share.")
@click.option("--not-itself", "itself", flag_value=False, default=True, help="Leave out the source with the same id.")
@click.option(
    "--common",
    type=int,
    default=1000,
    show_default=True,
    help="Of the sources with the same words (licences, templates), look at the first so many.",
)
@shingle
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the documents.")
@click.option("--id", metavar="COL", help="Column with the ids.  [default: row number; path for text files]")
@click.option("--source-text", metavar="COL", help="The same in the sources, if it has another name there.")
@click.option("--source-id", metavar="COL", help="The same in the sources, if it has another name there.")
@click.option("--lines", is_flag=True, help="Text files hold one document a line.")
@shared.on_error
@shared.encoding_errors
@shared.threads
@click.option(
    "--memory",
    metavar="SIZE",
    help="How much to use, such as 4GiB; more sources come in blocks.  [default: half of what is free]",
)
@shared.as_json
def passages(suspects: tuple[str, ...], sources: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find text copied from sources, wherever it stands, in whatever order, with words changed.

    SUSPECT and SOURCE: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs.
    """
    from likewise.apps.passages import find as find_passages
    from likewise.apps.passages.answer import TABLES
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    inputs = [file.path for given in (suspects, sources) for file in find(Files(list(given)))]
    check_output(out, "passages", TABLES, inputs)
    show.announce_compilation()
    with show.progress(as_json) as observer:
        answer = find_passages(Files(list(suspects)), Files(list(sources)), progress=observer, **options)
        answer.save(out)
    stats = answer.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    counts = stats["counts"]
    click.echo(
        f"{show.count(counts['suspects'], 'suspect')}, {show.count(counts['sources'], 'source')}, "
        f"{show.size(counts['bytes'])} of text; {show.count(counts['compared'], 'pair')} compared"
    )
    if counts["set_aside"]:
        click.echo(f"{show.count(counts['set_aside'], 'row')} set aside as broken")
    show.set_aside(stats)
    if "common" in stats:
        click.echo(
            f"{show.count(stats['common']['fingerprints'], 'fingerprint')} in more than {options['common']:,} sources: "
            "text that has no other is reported for the first of these sources only; --common looks at more"
        )
    if "repetitive" in stats:
        pairs = show.count(stats["repetitive"]["pairs"], "pair")
        click.echo(f"{pairs} of documents that repeat themselves too often were not compared to the end")
    if "hint" in stats:
        click.echo(f"hint: {stats['hint']}")
    click.echo(
        f"{show.count(counts['passages'], 'passage')} in {show.count(counts['suspects_with_passages'], 'suspect')}"
    )
    click.echo(show.closing(stats, str(out)))


@click.command(
    epilog="""\b
Examples:
  likewise explain essay.txt source.txt
  likewise explain essays.csv#17 articles.parquet#a-1203 --id id --text body
  likewise explain answers.jsonl#0 answers.jsonl#1 --json"""
)
@click.argument("a")
@click.argument("b")
@click.option("--length", type=int, default=8, show_default=True, help="Equal words in a passage, at least.")
@click.option(
    "--gap", type=int, default=5, show_default=True, help="Runs at most this many words apart are one passage."
)
@shingle
@click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the documents.")
@click.option("--id", metavar="COL", help="Column with the ids.  [default: row number, from 0]")
@shared.encoding_errors
@click.option("--width", type=click.IntRange(20), help="Columns to draw in.  [default: those of the terminal]")
@click.option("--json", "as_json", is_flag=True, help="Print the passages and their places as JSON.")
def explain(a: str, b: str, as_json: bool, width: int | None, **options: Any) -> None:
    """Show two documents side by side, what they share in colour.

    A and B: text files, or rows of tables as FILE#ID, where ID is that in the column --id, or the row number from 0.
    Words that were changed within a passage are underlined. Where there are no colours, passages stand in brackets.
    """
    from likewise.apps.passages import explain as explain_texts

    reading = {name: options.pop(name) for name in ("text", "id", "encoding_errors")}
    texts = [document(name, **reading) for name in (a, b)]
    show.announce_compilation()
    told = explain_texts(*texts, names=(a, b), **options)
    if as_json:
        click.echo(json.dumps(told.to_dict(), indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    Console(width=width, highlight=False).print(told)


def document(name: str, **reading: Any) -> str:
    """Return the document that FILE or FILE#ID names: a text file, or a row of a table."""
    from likewise.errors import InputError
    from likewise.io.read import Files, ReadOptions, open_source
    from likewise.io.read.find import find

    path, mark, key = name.rpartition("#")
    if not mark or Path(name).exists():
        path, key, mark = name, "", ""
    found = find(Files([path]))
    if len(found) > 1:
        raise InputError(f"{path}: these are {len(found)} files; name one")
    if found[0].is_table and not mark:
        raise InputError(f"{path}: this is a table; name one of its rows as {path}#ID, by --id COL or the row number")
    if mark and not found[0].is_table:
        raise InputError(f"{path}: this is a text file, and one document; #ID is for the rows of tables")
    if not mark:
        reading |= {"text": "text", "id": None}
    row = 0
    for batch in open_source(Files([path]), ReadOptions(**reading)).batches():
        if not mark:
            return str(batch.column("text")[0].as_py())
        ids = batch.column("id").to_pylist() if "id" in batch.schema.names else range(row, row + batch.num_rows)
        at = next((i for i, value in enumerate(ids) if str(value) == key), None)
        if at is not None:
            return str(batch.column("text")[at].as_py())
        row += batch.num_rows
    where = f"'{key}' in column '{reading['id']}'" if reading["id"] else f"{key}; the rows are 0 to {row - 1}"
    raise InputError(f"{path}: there is no row {where}")
