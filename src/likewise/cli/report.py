"""`likewise report`."""

from __future__ import annotations

from pathlib import Path

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise report clean/
  likewise report clean/ --by source                  removals by source
  likewise report linked/ --out linked.html"""
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--by",
    metavar="COL",
    help="Of dedup, rethreshold and articles: count removals by this column.  [default: by file or folder]",
)
@click.option("--out", metavar="FILE", type=shared.TARGET, help="The page to write.  [default: report.html in DIR]")
@shared.quiet
def report(directory: Path, by: str | None, out: Path | None) -> None:
    """Write an HTML report on a finished run: what went in and came out, curves, alarms, pairs side by side.

    DIR: the folder of a finished run of any command. The page needs no network. Texts come from the inputs of the run;
    if these are gone or have changed, the page says so and shows none.
    """
    from likewise.report import write_report

    with show.progress() as observer:
        made = write_report(directory, by=by, out=out, progress=observer)
    if not show.quiet():
        show.say(f"→ {made}")
