"""`likewise report`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

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


def wanted(where: object, asked: Mapping[str, Any]) -> TypeGuard[Path]:
    """Tell whether a result is a folder that shall have a report."""
    return isinstance(where, Path) and bool(asked.get(shared.REPORT, False)) and (where / "run.json").is_file()


def write_page(
    where: Path, asked: Mapping[str, Any], progress: Any = None, held: Any = None
) -> tuple[Path | None, str]:
    """Write the report of a result; return its path, or why there is none.

    held: the documents of the run, if they are in memory. The result is complete by now: whatever goes wrong here, it
    stays.
    """
    from likewise.errors import LikewiseError
    from likewise.report import can_report
    from likewise.report.write import report_with

    if not can_report():
        return None, "no report: pip install 'likewise[report]' for a page about the result (or --no-report)"
    try:
        return report_with(where, held, by=asked.get(shared.BY), progress=progress), ""
    except LikewiseError as error:
        return None, f"no report: {error}"
    except Exception as error:
        fault = f"{type(error).__name__}: {str(error)[:200]}"
        return None, f"no report: internal error, please report ({fault}); the result is complete"
