"""`likewise nearest`."""

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
  likewise nearest embeddings.npy --out neighbours.parquet
  likewise nearest images.npy -k 1 --measure l2 --out nearest.csv
  likewise nearest questions.parquet --with answers.parquet --vector embedding --id key --out nearest/

\b
The table has the columns id_a, id_b and distance: for each vector id_a of INPUT its nearest vectors id_b, the nearest
first; with --with, id_b is of OTHER."""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="OTHER",
    help="Find the neighbours of the vectors of INPUT in this collection instead of in INPUT. Repeatable.",
)
@shared.k(10, "How many neighbours of each vector of INPUT.")
@shared.out_table
@click.option("--measure", type=click.Choice(["angle", "l2", "l1", "hamming"]), default="angle", show_default=True)
@shared.vector
@shared.id
@shared.recall
@shared.method
@shared.threads
@shared.seed
@shared.memory
@shared.spill
@shared.as_json
def nearest(inputs: tuple[str, ...], others: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find the nearest neighbours of every vector.

    INPUT: .npy files with one vector per row, or Parquet, Arrow or JSONL files with a column of lists.
    """
    import likewise
    from likewise.io.read import Files
    from likewise.io.read.find import find
    from likewise.jobs.result import Nearest

    Nearest.check_target(out, "nearest", [file.path for file in find(Files([*inputs, *others]))])
    show.announce_compilation()
    other = Files(list(others)) if others else None
    with show.progress(as_json) as observer:
        result = likewise.nearest(Files(list(inputs)), other=other, progress=observer, **options)
        result.save(out)
    stats = result.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in show.opening_vectors(stats):
        click.echo(line)
    click.echo(show.found(stats, "neighbour"))
    click.echo(show.closing(stats, str(out)))
