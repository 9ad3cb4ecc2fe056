"""Options that commands share, so that they mean the same everywhere."""

from __future__ import annotations

from pathlib import Path

import click

out = click.option(
    "--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Folder for the answer."
)
threads = click.option("--threads", type=int, help="Changes the speed, never the answer.  [default: all cores]")
on_error = click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="skip: set broken rows aside, count and list them.",
)
encoding_errors = click.option(
    "--encoding-errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="What to do with invalid UTF-8.",
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print the statistics as JSON, progress as JSON on stderr."
)
