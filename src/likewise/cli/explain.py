"""`likewise explain`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from likewise.cli import options as shared
from likewise.cli import show

CONTROLS = re.compile("[\x7f-\x9f\ud800-\udfff]")
"""What JSON allows in a string and a terminal may act upon, or cannot encode."""


@click.command(
    epilog="""\b
Examples:
  likewise explain essay.txt source.txt
  likewise explain essays.csv#17 articles.parquet#a-1203 --id id --text body
  likewise explain answers.jsonl#0 answers.jsonl#1 --json
  likewise explain essay.txt source.txt --html why.html
  likewise explain run/ a-1203 a-1377          two items of a finished run of dedup, pairs or nearest, by their ids"""
)
@click.argument("a")
@click.argument("b")
@click.argument("c", required=False, metavar="[ID_B]")
@shared.length
@shared.gap
@shared.shingle(
    "words:5",
    "How a document becomes a set, from which the similarity is computed, as in dedup: words:K, chars:K, and options.",
)
@shared.text
@shared.id
@shared.encoding_errors
@click.option("--threshold", type=float, default=0.8, show_default=True, help="Similarity threshold of the search.")
@shared.recall("Probability that a pair at the threshold is found.")
@shared.seed
@click.option("--html", "page", metavar="FILE", type=click.Path(path_type=Path), help="Also write an HTML page.")
@click.option("--width", type=click.IntRange(20), help="Width of the output.  [default: that of the terminal]")
@click.option("--json", "as_json", is_flag=True, help="Print the passages and their positions as JSON.")
@shared.quiet
def explain(a: str, b: str, c: str | None, as_json: bool, page: Path | None, width: int | None, **options: Any) -> None:
    """Explain why two documents are similar: side by side, shared text in colour, and how the search finds them.

    A and B: text files, or rows of tables as FILE#ID, where ID is the value in the column --id or the row number from
    0. Words changed within a passage are underlined. Without colours, passages are in brackets. Below are the
    similarity under every measure, the MinHash estimate, the bands that they share in a search at --threshold, and
    the most distinctive shingles; shingles, threshold and recall are those of dedup unless given.

    RUN ID_A ID_B: the folder of a finished run of likewise dedup, rethreshold, pairs or nearest, on this machine or on
    Spark, and the ids of two of its documents, sets or vectors; the settings are those of the run. The inputs of the
    run must still be there, unchanged.
    """
    from likewise.base.checks import unused

    if as_json:
        unused("explain", {"width": (width, None)}, "with --json")
    if c is not None:
        from likewise.jobs.explain.run import explain_run

        source = click.get_current_context().get_parameter_source
        given = {name: (value, None) for name, value in options.items() if source(name) is ParameterSource.COMMANDLINE}
        unused("explain", given, "for a finished run, which has its own settings")
        show.announce_compilation()
        shown: Any = explain_run(a, b, c)
        parts = [shown]
    else:
        shown = _two_documents(a, b, options)
        parts = [shown, shown.reason]
    if page is not None:
        shown.to_html(page)
    if as_json:
        click.echo(CONTROLS.sub(_code, json.dumps(shown.to_dict(), indent=2, ensure_ascii=False, default=str)))
        return
    from rich.console import Console

    console = Console(width=width, highlight=False)
    for part in parts:
        console.print(part)
    if page is not None:
        click.echo(f"→ {page}")


def _two_documents(a: str, b: str, options: dict[str, Any]) -> Any:
    """Read and compare two documents."""
    from likewise.apps.passages import explain as explain_texts
    from likewise.base.checks import unused
    from likewise.errors import InputError
    from likewise.io.disk import MANIFEST

    if (Path(a) / MANIFEST).is_file():
        raise InputError(f"{a} is the folder of a finished run: name two of its ids, likewise explain {a} ID_A ID_B")
    reading = {name: options.pop(name) for name in ("text", "id", "encoding_errors")}
    places = [place_of(name) for name in (a, b)]
    if all(key is None for _, key in places):
        unused("explain", {"text": (reading["text"], "text"), "id": (reading["id"], None)}, "for text files")
    texts = [document(path, key, **reading) for path, key in places]
    show.announce_compilation()
    return explain_texts(*texts, names=(a, b), **options)


def _code(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


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
    for batch in open_source(Files([path]), ReadOptions(**reading, owner="explain")).batches():
        if key is None:
            return str(batch.column("text")[0].as_py())
        ids = batch.column("id").to_pylist() if "id" in batch.schema.names else range(row, row + batch.num_rows)
        at = next((i for i, value in enumerate(ids) if str(value) == key), None)
        if at is not None:
            return str(batch.column("text")[at].as_py())
        row += batch.num_rows
    where = f"'{key}' in column '{reading['id']}'" if reading["id"] else f"{key}; the rows are 0 to {row - 1}"
    raise InputError(f"{path}: there is no row {where}")
