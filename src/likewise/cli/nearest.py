"""`likewise nearest`."""

from __future__ import annotations

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
@shared.k(10, "Number of neighbours of each vector of INPUT.")
@shared.out_table
@shared.spreadsheet
@shared.choice(
    "--measure",
    ["angle", "l2", "l1", "hamming"],
    "angle",
    "Distance of two vectors: the angle in degrees, Euclidean (l2), Manhattan (l1), or the number of components that "
    "differ (hamming).",
)
@shared.vector
@shared.id_of_vectors
@shared.any_recall
@shared.lsh_or_exact
@shared.threads
@shared.seed
@shared.memory
@shared.spill
@shared.report
@shared.as_json
def nearest(inputs: tuple[str, ...], others: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find the nearest neighbours of every vector.

    INPUT: .npy files with one vector per row, or Parquet, Arrow or JSONL files with a column of lists.
    """
    import likewise
    from likewise.io.read import Files
    from likewise.jobs.result import Nearest

    given, other = Files(inputs), Files(others) if others else None
    printed = shared.to_stdout(out, as_json)
    if not printed:
        Nearest.check_target(out, "nearest", shared.files(given, other))
    shared.check_report("nearest", None if printed else out)
    show.announce_compilation()
    with show.progress(as_json) as observer:
        result = likewise.nearest(given, other=other, progress=observer, **options)
        if not printed:
            result.save(out)
    if printed:
        show.print_table(result)
    lines = (*show.opening_vectors(result.stats), show.found(result.stats, "neighbour"))
    show.report(result.stats, as_json, lines, show.STDOUT if printed else out)
