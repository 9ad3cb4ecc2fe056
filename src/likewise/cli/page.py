"""The page that a command writes beside its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

REPORT, BY = "likewise.report", "likewise.by"
"""Where the context of a command keeps the options --no-report and --by."""


def write_page(
    where: object, wanted: Mapping[str, Any], progress: Any = None, held: Any = None
) -> tuple[Path | None, str]:
    """Write the report of a result, if it is a folder and one is wanted; return its path, or why there is none.

    held: the documents of the run, if they are in memory. The result is complete by now: whatever goes wrong here, it
    stays.
    """
    if not isinstance(where, Path) or not wanted.get(REPORT, False) or not (where / "run.json").is_file():
        return None, ""
    from likewise.errors import LikewiseError
    from likewise.report import can_report
    from likewise.report.write import report_with

    if not can_report():
        return None, "no report: pip install 'likewise[report]' for a page about the result (or --no-report)"
    try:
        return report_with(where, held, by=wanted.get(BY), progress=progress), ""
    except LikewiseError as error:
        return None, f"no report: {error}"
    except Exception as error:
        fault = f"{type(error).__name__}: {str(error)[:200]}"
        return None, f"no report: internal error, please report ({fault}); the result is complete"
