"""`likewise exact`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

MEASURES = ["jaccard", "dice", "cosine", "overlap", "containment"]
FILTERS = {
    "none": "all pairs",
    "length": "of similar length (3.9.3)",
    "prefix": "that share a symbol of their prefixes (3.9.4)",
    "position": "at positions that allow it (3.9.5)",
    "suffix": "with enough after them (3.9.6)",
    "bitmap": "auto: two shared symbols, and bitmaps that agree",
    "similar": "similar",
}


@click.command(
    epilog="""\b
Examples:
  likewise exact baskets.txt --threshold 0.5 --out pairs.parquet            one set a line
  likewise exact tags.parquet --text tags --id user --out pairs.csv         a column of lists
  likewise exact new.txt --with old.txt --measure containment --out pairs.parquet
  likewise exact names.txt --shingle chars:3 --threshold 0.9 --out pairs.jsonl
  likewise exact baskets.txt --threshold 0.9 --explain"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--with", "others", multiple=True, metavar="OTHER", help="Join INPUT with this collection, not with itself."
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="The pairs: .parquet, .csv, .jsonl or .arrow."
)
@click.option("--threshold", type=float, default=0.8, show_default=True, help="Least similarity of a pair.")
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    default="jaccard",
    show_default=True,
    help="containment: of id_a's set in id_b's; overlap: |a ∩ b| / min(|a|, |b|).",
)
@click.option(
    "--index",
    type=click.Choice(["auto", "length", "prefix", "position", "suffix"]),
    default="auto",
    show_default=True,
    help="Which filter chooses the pairs that are compared. The answer is the same.",
)
@click.option(
    "--explain", is_flag=True, help="Show how many pairs each filter leaves; with --out, write the pairs too."
)
@click.option(
    "--shingle",
    default="tokens",
    show_default=True,
    metavar="SPEC",
    help="How an item becomes a set: tokens, words:K or chars:K; options follow by comma, such as tokens,bag=true.",
)
@click.option("--separator", metavar="CHAR", help="What stands between tokens.  [default: blanks]")
@click.option(
    "--text", metavar="COL", help="Column with the sets: lists, or text to be split.  [default: text]", default="text"
)
@click.option("--id", metavar="COL", help="Column with the ids.  [default: row number]")
@click.option("--on-error", type=click.Choice(["stop", "skip"]), default="stop", show_default=True)
@click.option("--encoding-errors", type=click.Choice(["strict", "replace"]), default="strict", show_default=True)
@shared.threads
@click.option("--memory", metavar="SIZE", help="How much the index may take, such as 1GiB; larger ones come in blocks.")
@click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON.")
def exact(
    inputs: tuple[str, ...],
    others: tuple[str, ...],
    out: Path | None,
    explain: bool,
    as_json: bool,
    separator: str | None,
    **options: Any,
) -> None:
    """Find all pairs of sets at or above a threshold: no pair is missed.

    INPUT: text files with one set a line, tokens separated by blanks; or a column of lists (Parquet, Arrow, JSONL) or
    of text (CSV, TSV too).
    """
    from likewise.errors import ParameterError
    from likewise.io.read import Files
    from likewise.io.read.find import find
    from likewise.io.write import check_target, write_table
    from likewise.jobs.exact_files import exact_files
    from likewise.shingle import Tokens, parse_shingler

    if out is None and not explain:
        raise ParameterError("Say where to write the pairs with --out FILE, or how they are found with --explain.")
    if out is not None:
        check_target(out, [file.path for file in find(Files([*inputs, *others]))])
    if separator is not None:
        shingler = parse_shingler(options["shingle"], owner="exact")
        if not isinstance(shingler, Tokens):
            raise ParameterError("--separator goes with --shingle tokens")
        options["shingle"] = replace(shingler, separator=unescaped(separator))
    show.announce_compilation()
    answer = exact_files(
        Files(list(inputs)),
        Files(list(others)) if others else None,
        pairs=out is not None,
        explain=explain,
        **options,
    )
    if answer.table is not None and out is not None:
        write_table(answer.table, out)
    if as_json:
        click.echo(json.dumps(answer.stats, indent=2))
        return
    counts = answer.stats["counts"]
    sizes = " and ".join(show.count(counts[name], "set") for name in ("sets", "other") if name in counts)
    click.echo(f"{sizes}; {options['measure']} of {options['threshold']:g} or more")
    if counts["set_aside"]:
        click.echo(f"{show.count(counts['set_aside'], 'row')} set aside as broken")
    if "explained" in answer.stats:
        for line in _table(answer.stats["explained"]):
            click.echo(line)
    if out is not None:
        compared = counts["compared"]
        click.echo(f"{show.count(counts['pairs'], 'pair')}; {show.count(compared, 'candidate')} compared")
        click.echo(show.closing(answer.stats, str(out)))


def unescaped(separator: str | None) -> str | None:
    r"""Return a separator as the user means it: \t is a tab.

    >>> unescaped("\\t")
    '\t'
    """
    return "\t" if separator == "\\t" else separator


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Write the filters as lines."""
    lines = [f"{'filter':<10}{'pairs':>20}{'of all':>12}{'seconds':>10}"]
    for row in rows:
        seconds = f"{row['seconds']:.2f}" if row["filter"] not in ("none", "length") else ""
        told = f"{row['filter']:<10}{row['pairs']:>20,}{row['share']:>12.2e}{seconds:>10}   {FILTERS[row['filter']]}"
        lines.append(told)
    return lines
