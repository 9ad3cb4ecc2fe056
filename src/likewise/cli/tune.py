"""`likewise tune`, with the curve in the terminal, drawn with braille dots."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import click

from likewise.cli import options as shared
from likewise.errors import ParameterError

ITEMS = 1_000_000
"""The default of `likewise.tune`: large enough for candidates to dominate the cost."""
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Braille: the bits of the dots of a character."""
MAX_SLOTS = 2048
"""DEFAULT_MAX_SLOTS of families/tuning.py, repeated here so that --help need not import NumPy."""


@click.command(
    epilog="""\b
Examples:
  likewise tune --threshold 0.8
  likewise tune --threshold 0.5 --recall 0.999 --items 10000000
  likewise tune --threshold 0.8 --bands 20 --rows 5      # the curve of a given banding
  likewise tune --threshold 0.8 --plot curve.png
  likewise tune --threshold 0.8 --slots 100 --prefer recall
  likewise tune --threshold 0.5 --max-slots 128 --weights 0.2 0.8"""
)
@click.option(
    "--threshold", type=float, required=True, help="Similarity threshold: pairs at or above it should be found."
)
@shared.recall("Probability that a pair at the threshold is found.")
@click.option("--bands", type=int, help="Number of bands: with --rows, show this banding instead.")
@click.option("--rows", type=int, help="Rows per band: with --bands.")
@click.option(
    "--slots", type=int, help="Length of the signature: bands times rows, so that (1/b)^(1/r) is near the threshold."
)
@click.option(
    "--prefer",
    type=click.Choice(["recall", "speed"]),
    help="With --slots: (1/b)^(1/r) below the threshold (fewer false negatives), or above it (fewer false positives).",
)
@click.option(
    "--weights",
    type=(float, float),
    metavar="FP FN",
    help="Minimise the weighted areas of false positives and false negatives, within --max-slots or for --slots.",
)
@shared.whole("--items", ITEMS, "Number of items in the collection, for the predicted cost.")
@shared.whole("--max-slots", MAX_SLOTS, "Longest signature to consider, bands times rows.")
@click.option(
    "--plot",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=shared.needing("plot", "--plot"),
    help="Write the curve to FILE (.png, .svg, .pdf); needs pip install 'likewise[plot]'.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@shared.quiet
def tune(
    threshold: float,
    recall: float,
    bands: int | None,
    rows: int | None,
    slots: int | None,
    prefer: str | None,
    weights: tuple[float, float] | None,
    items: int,
    max_slots: int,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Show the S-curve of the bands and rows that reach a recall at a threshold, or of a given banding.

    Bands and rows can also be chosen for a given length of the signature (--slots), or by the cost of false positives
    and false negatives (--weights).
    """
    from likewise.base import checks
    from likewise.families.banding import Banding
    from likewise.families.tuning import tune as find

    threshold, recall = checks.threshold("tune", threshold), checks.recall("tune", recall)
    asked = True
    if (bands is None) != (rows is None):
        raise ParameterError("--bands and --rows go together: give both or neither.")
    if bands is not None and rows is not None:
        given: dict[str, tuple[object, object]] = {
            "recall": (recall, 0.99), "items": (items, ITEMS), "max_slots": (max_slots, MAX_SLOTS),
        }  # fmt: skip
        given |= {"slots": (slots, None), "prefer": (prefer, None), "weights": (weights, None)}
        checks.unused("tune", given, "with --bands and --rows")
        banding = Banding(bands, rows)
    else:
        banding = find(threshold, recall, slots=slots, prefer=prefer, weights=weights, max_slots=max_slots, items=items)
        asked = slots is None and weights is None
    if plot is not None:
        banding.plot(plot, threshold)
    reached = banding.probability(threshold)
    points = sorted({*(tenth / 10 for tenth in range(1, 11)), threshold})
    if as_json:
        click.echo(
            json.dumps(
                {
                    "bands": banding.b,
                    "rows": banding.r,
                    "slots": banding.slots,
                    "threshold": threshold,
                    "recall": recall if asked else None,
                    "recall_at_threshold": reached,
                    "half_at": banding.exact_threshold,
                    "rule_of_thumb": banding.threshold,
                    "false_positive_area": banding.false_positive_area(threshold),
                    "false_negative_area": banding.false_negative_area(threshold),
                    "curve": {f"{s:g}": banding.probability(s) for s in points},
                },
                indent=2,
            )
        )
        return
    click.echo(f"{banding} ({banding.slots} slots)")
    verdict = "" if reached >= recall or not asked else f", below the requested recall of {recall:g}"
    click.echo(f"a pair at similarity {threshold:g} is found with probability {reached:.4f}{verdict}")
    click.echo(
        f"half of the pairs at similarity {banding.exact_threshold:.3f} are found"
        f" (rule of thumb (1/b)^(1/r): {banding.threshold:.3f})\n"
    )
    click.echo("  similarity   found with probability")
    for s in points:
        click.echo(f"  {s:>10.3g}   {banding.probability(s):>10.6f}" + ("   ← threshold" if s == threshold else ""))
    click.echo()
    click.echo("\n".join(curve(banding.probability, threshold)))
    if plot is not None:
        click.echo(f"→ {plot}")


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
