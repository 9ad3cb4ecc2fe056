"""`likewise nearest`, and `likewise pairs` for vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

UNITS = {"angle": "°", "l2": "", "l1": "", "hamming": " bits"}
FOR_VECTORS = {
    "id", "vector", "measure", "within", "recall", "method", "k", "threads", "seed", "memory", "spill", "as_json",
    "inputs", "others", "out",
}  # fmt: skip


@click.command(
    epilog="""\b
Examples:
  likewise nearest embeddings.npy --out neighbours.parquet
  likewise nearest images.npy -k 1 --measure l2 --out nearest.csv
  likewise nearest books.parquet --vector embedding --id isbn --queries asked.parquet --out answers.jsonl"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("-k", type=int, default=10, show_default=True, help="How many neighbours of each vector.")
@click.option("--queries", multiple=True, metavar="FILE", help="Find the neighbours in INPUT of these, not of INPUT.")
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write the neighbours: .parquet, .csv, .jsonl or .arrow.",
)
@click.option("--measure", type=click.Choice(list(UNITS)), default="angle", show_default=True)
@click.option("--vector", default="vector", show_default=True, metavar="COL", help="Column with the vectors.")
@click.option("--id", metavar="COL", help="Column with the ids.  [default: row number]")
@click.option(
    "--recall", type=float, default=0.99, show_default=True, help="Each neighbour is found with this probability."
)
@click.option(
    "--method",
    type=click.Choice(["auto", "exact", "lsh"]),
    default="auto",
    show_default=True,
    help="exact: compare all vectors. lsh: find most by hash tables. auto: whichever is predicted to be cheaper.",
)
@shared.threads
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--memory", metavar="SIZE", help="How much to use, such as 4GiB.  [default: half of what is free]")
@click.option("--spill", metavar="DIR", type=click.Path(path_type=Path), help="Folder for what does not fit in memory.")
@shared.as_json
def nearest(inputs: tuple[str, ...], queries: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> None:
    """Find the nearest neighbours of every vector.

    INPUT: .npy files with one row a vector, or Parquet, Arrow or JSON lines files with a column of lists.
    """
    import likewise
    from likewise.io.read import Files
    from likewise.io.read.find import find
    from likewise.io.write import check_target, write_table

    check_target(out, [file.path for file in find(Files([*inputs, *queries]))])
    show.announce_compilation()
    asked = Files(list(queries)) if queries else None
    with show.progress(as_json) as observer:
        result = likewise.nearest(Files(list(inputs)), queries=asked, progress=observer, **options)
        write_table(result.table, out)
    told(result.stats, str(out), as_json, "neighbour")


def check_options(context: click.Context) -> None:
    """Raise if an option for documents was given with vectors."""
    from likewise.errors import ParameterError

    for name in context.params:
        given = context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT
        if given and name not in FOR_VECTORS:
            option = "--" + name.replace("_", "-")
            hint = "; the largest distance of a pair is --within" if name == "threshold" else ""
            raise ParameterError(f"{option} is for documents and sets, and --measure for vectors{hint}")


def told(stats: dict[str, Any], where: str, as_json: bool, what: str) -> None:
    """Tell what was found, how, and what it cost."""
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    counts, parameters = stats["counts"], stats["parameters"]
    copies = counts["items"] - counts["different"]
    click.echo(show.count(counts["items"], "vector") + (f", {copies:,} of them copies of another" if copies else ""))
    method, tables = stats["method"], stats["details"].get("tables")
    if method is not None and method["taken"] == "exact":
        click.echo(f"exact: all vectors were compared ({method['why']})")
    elif tables is not None:
        rest = f"; {counts['left_over']:,} compared with all" if counts.get("left_over") else ""
        click.echo(f"{tables['plan']}; recall {tables['recall']:.4f}; {counts['compared']:,} candidates compared{rest}")
    found = show.count(counts["pairs"], what)
    if "within" in parameters:
        found += f" within {parameters['within']:g}{UNITS[parameters['measure']]}"
    if "abridged" in stats["details"]:
        groups = show.count(stats["details"]["abridged"]["groups"], "vector")
        found += f"; copies of {groups} are listed with the first of them only"
    click.echo(found)
    click.echo(show.closing(stats, where))
