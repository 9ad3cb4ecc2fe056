"""`likewise report`, and the report that other commands write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise report clean/
  likewise report clean/ --by source                  what is removed of every source
  likewise report linked/ --out linked.html"""
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--by",
    metavar="COL",
    help="Of dedup, rethreshold and articles: count what is removed by this column.  [default: by file or folder]",
)
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="The page to write.  [default: report.html in DIR]"
)
@shared.quiet
def report(directory: Path, by: str | None, out: Path | None) -> None:
    """Write one HTML page about a finished run: what went in and came out, curves, alarms, pairs side by side.

    DIR: the folder of a finished run of any command. The page needs no network. Texts come from the inputs of the run;
    if these are gone or have changed, the page says so and shows none.
    """
    from likewise.report import write_report

    made = write_report(directory, by=by, out=out)
    if not show.quiet():
        show.say(f"→ {made}")


def written(where: object, wanted: Mapping[str, Any]) -> tuple[Path | None, str]:
    """Write the report of a result, if it is a folder and one is wanted; return its path, or why there is none.

    The result is complete by now: whatever goes wrong here, it stays.
    """
    if not isinstance(where, Path) or not wanted.get(show.REPORT, False) or not (where / "run.json").is_file():
        return None, ""
    from likewise.errors import LikewiseError
    from likewise.report import can_report, write_report

    if not can_report():
        return None, "no report: pip install 'likewise[report]' for a page about the result (or --no-report)"
    try:
        return write_report(where, by=wanted.get(show.BY)), ""
    except LikewiseError as error:
        return None, f"no report: {error}"
    except Exception as error:
        fault = f"{type(error).__name__}: {str(error)[:200]}"
        return None, f"no report, by a fault of likewise ({fault}); the result is complete"
