"""The page that a command writes beside its result."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeGuard

REPORT, BY = "likewise.report", "likewise.by"
"""Where the context of a command keeps the options --no-report and --by."""


def wanted(where: object, asked: Mapping[str, Any]) -> TypeGuard[Path]:
    """Tell whether a result is a folder that shall have a report."""
    return isinstance(where, Path) and bool(asked.get(REPORT, False)) and (where / "run.json").is_file()


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
        return report_with(where, held, by=asked.get(BY), progress=progress), ""
    except LikewiseError as error:
        return None, f"no report: {error}"
    except Exception as error:
        fault = f"{type(error).__name__}: {str(error)[:200]}"
        return None, f"no report: internal error, please report ({fault}); the result is complete"
