"""Curves in the terminal, drawn with braille dots."""

from __future__ import annotations

from collections.abc import Callable

DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def curve(function: Callable[[float], float], mark: float, width: int = 60, height: int = 12) -> list[str]:
    """Draw a function from [0, 1] to [0, 1] as lines of text, with a dotted vertical line at `mark`."""
    cells = [[0] * width for _ in range(height)]

    def dot(column: int, row: int) -> None:
        cells[height - 1 - row // 4][column // 2] |= DOTS[3 - row % 4][column % 2]

    columns, rows = 2 * width, 4 * height
    previous = None
    for column in range(columns):
        row = round(function(column / (columns - 1)) * (rows - 1))
        low, high = (row, row) if previous is None else (min(previous, row), max(previous, row))
        for between in range(low, high + 1):
            dot(column, between)
        previous = row
    for row in range(0, rows, 3):
        dot(round(mark * (columns - 1)), row)
    lines = []
    for number, line in enumerate(cells):
        label = {0: "1.0", height // 2: "0.5", height - 1: "0.0"}.get(number, "")
        lines.append(f"{label:>5} ┤" + "".join(chr(0x2800 + cell) for cell in line).rstrip("\u2800"))
    lines.append("      └" + "─" * width)
    axis = [" "] * (width + 4)
    for tenth in range(0, 11, 2):
        at = round(tenth / 10 * (width - 1))
        axis[at : at + 3] = f"{tenth / 10:.1f}"
    lines.append("      " + "".join(axis).rstrip() + "  similarity")
    return lines
