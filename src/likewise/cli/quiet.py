"""Whether the user gave --quiet: the context of the command remembers it for all that is shown."""

from __future__ import annotations

import click

QUIET = "likewise.quiet"
"""Where the context of a command keeps the option."""


def set_quiet(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Remember the option; click calls this."""
    context.meta[QUIET] = value


def quiet() -> bool:
    """Return whether the user gave --quiet."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(QUIET))
