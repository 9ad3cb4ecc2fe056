"""Two documents side by side in a terminal, with the passages they share highlighted."""

from __future__ import annotations

import io
from typing import Any

from likewise.base.words import UNSEEN

COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "red")
Span = tuple[int, int]
Marks = list[tuple[int, int, tuple[Span, ...]]]
"""The passages of one document: start, end and the spans of changed words, in characters."""


def draw(names: tuple[str, str], texts: tuple[str, str], marks: tuple[Marks, Marks], coloured: bool) -> Any:
    """Return a rich table with one column per document."""
    from rich.table import Table
    from rich.text import Text

    table = Table(expand=True)
    for name in names:
        table.add_column(Text(name.translate(UNSEEN)), ratio=1, overflow="fold")
    table.add_row(*(_marked(text, passages, coloured) for text, passages in zip(texts, marks, strict=True)))
    return table


def as_text(drawing: Any, width: int) -> str:
    """Return what rich prints for an object, without colours."""
    from rich.console import Console

    out = io.StringIO()
    console = Console(file=out, width=width, color_system=None, legacy_windows=False)
    console.print(drawing)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _marked(text: str, passages: Marks, coloured: bool) -> Any:
    """Colour the passages of one document and underline changed words, or put numbered brackets around passages."""
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
