"""Two documents side by side in a terminal, what they share in colour."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.apps.passages.explaining import Explanation

COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")
UNSEEN = dict.fromkeys((*range(32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}") | {9: " ", 10: "\n"}
"""Control characters could do anything to a terminal; each becomes one character, so that places stay as they are."""


def drawn(told: Explanation, coloured: bool) -> Iterator[Any]:
    """Yield what rich is to print: the numbers, and a table of two columns."""
    from rich.table import Table
    from rich.text import Text

    yield Text(summary(told))
    table = Table(expand=True)
    for name in told.names:
        table.add_column(Text(name.translate(UNSEEN)), ratio=1, overflow="fold")
    first = [(one.a_start, one.a_end, one.a_changed) for one in told.passages]
    second = [(one.b_start, one.b_end, one.b_changed) for one in told.passages]
    table.add_row(_marked(told.a, first, coloured), _marked(told.b, second, coloured))
    yield table


def summary(told: Explanation) -> str:
    """Say in a line or two what the documents share."""
    count = len(told.passages)
    words = sum(one.equal for one in told.passages)
    shared = (
        "no passage in common" if not count else f"{count} shared passage{'s' * (count > 1)}, {words:,} equal words"
    )
    a, b = told.names
    return (
        f"{shared}; {told.containment:.1%} of {a} is in {b}, {told.containment_of_b:.1%} of {b} in {a}; "
        f"Jaccard similarity {told.jaccard:.3f}"
    )


def plain(told: Explanation, width: int) -> str:
    """Return the same without colours, as text."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, legacy_windows=False)
    console.print(told)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _marked(text: str, passages: list[tuple[int, int, Any]], coloured: bool) -> Any:
    """Colour the passages of one document, changed words underlined; or put numbered brackets around them."""
    from rich.text import Text

    text = text.translate(UNSEEN)
    if coloured:
        whole = Text(text)
        for number, (start, end, changed) in enumerate(passages):
            colour = COLOURS[number % len(COLOURS)]
            whole.stylize(f"bold {colour}", start, end)
            for low, high in changed:
                whole.stylize("not bold dim underline", low, high)
        return whole
    marks = [(start, 1, -end, number, f"[{number}: ") for number, (start, end, _) in enumerate(passages, 1)]
    marks += [(end, 0, -start, -number, f" :{number}]") for number, (start, end, _) in enumerate(passages, 1)]
    parts, last = [], 0
    for place, *_, mark in sorted(marks):
        parts += [text[last:place], mark]
        last = place
    return Text("".join([*parts, text[last:]]))
