"""`likewise rethreshold`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise rethreshold clean/ --threshold 0.9
  likewise rethreshold clean/ --keep longest --out longest/"""
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--threshold", type=float, help="New threshold, at least that of the original run.  [default: that of the run]"
)
@click.option("--keep", metavar="POLICY", help=f"{shared.RULES}; or none.  [default: the run's]")
@click.option(
    "--out",
    metavar="DIR",
    type=shared.TARGET,
    help="Folder for the result; DIR is left unchanged.  [default: DIR]",
)
@click.option("--master", metavar="URL", help="For a run made on Spark: the master.  [default: local[*]]")
@shared.by
@shared.report
@shared.threads
@shared.as_json
def rethreshold(directory: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    """Re-cluster a finished run with a new threshold or keep rule, from the pairs it stored.

    DIR: the folder of a finished `likewise dedup`. Its result is replaced; the pairs of the original run are kept, so
    that you can return to its threshold.
    """
    import likewise
    from likewise.jobs.finished_run import engine_of_run

    shared.check_report("rethreshold", directory)
    place = shared.location(directory, "spark")
    target = out and shared.location(out, engine_of_run(place))
    with show.progress(as_json) as observer:
        result = likewise.rethreshold(place, out=target, progress=observer, **options)
    counts = result.stats["counts"]
    documents, pairs = show.count(counts["items"], "document"), show.count(counts["verified"], "pair")
    read = f"{documents}; {pairs} from the run in {place}"
    lines = (read, *show.estimates(result.stats), show.outcome(result.stats))
    show.report(result.stats, as_json, lines, target or place)
