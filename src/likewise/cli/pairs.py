"""`likewise dedup` and `likewise pairs`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise pairs corpus.parquet --out pairs.parquet
  likewise pairs new.csv --with old.csv --threshold 0.7 --out pairs.csv
  likewise pairs 'answers/*.txt' --shingle chars:9 --threshold 0.3 --out pairs.jsonl
  likewise pairs corpus.parquet --threshold 0.5 -k 10 --out neighbours.parquet
  likewise pairs baskets.txt --sets --threshold 0.6 --out pairs.parquet
  likewise pairs orders.txt --sets --counts --threshold 0.6 --out pairs.parquet    (milk:3 bread)
  likewise pairs titles.csv --text title --shingle chars:3 --threshold 0.9 --method exact --out pairs.csv
  likewise pairs embeddings.npy --measure angle --within 15 --out pairs.parquet
  likewise pairs images.parquet --vector pixels --id name --measure l2 --within 500 --out pairs.csv"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@shared.others
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write the pairs: .parquet, .csv, .jsonl or .arrow.",
)
@click.option("-k", type=int, help="Only the K most similar partners of each document, best first.")
@click.option(
    "--measure",
    type=click.Choice(["angle", "l2", "l1", "hamming"]),
    help="Compare vectors (.npy files, or columns of lists) by this distance, with --within.",
)
@click.option("--within", type=float, metavar="DISTANCE", help="The largest distance of a pair; angles in degrees.")
@click.option("--vector", default="vector", show_default=True, metavar="COL", help="Column with the vectors.")
@shared.search
@click.pass_context
def pairs(
    context: click.Context,
    /,
    inputs: tuple[str, ...],
    others: tuple[str, ...],
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """List all pairs at or above the threshold, with their exact similarity.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs. With --measure: .npy files
    with one row a vector, or Parquet, Arrow or JSON lines files with a column of lists.
    """
    import likewise
    from likewise.cli import nearest as vectors
    from likewise.io.read import Files
    from likewise.io.read.find import find
    from likewise.io.write import check_target, write_table

    if options["measure"] is not None or options["within"] is not None:
        vectors.check_options(context)
    shared.take_sets(context, options)
    check_target(out, [file.path for file in find(Files([*inputs, *others]))])
    show.announce_compilation()
    other = Files(list(others)) if others else None
    with show.progress(as_json) as observer:
        result = likewise.pairs(Files(list(inputs)), other, progress=observer, **options)
        write_table(result.table, out)
    stats = result.stats
    if options["measure"] is not None:
        vectors.told(stats, str(out), as_json, "pair")
        return
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in show.opening(stats):
        click.echo(line)
    show.set_aside(stats)
    click.echo(show.count(stats["counts"]["pairs"], "pair"))
    click.echo(show.closing(stats, str(out)))
