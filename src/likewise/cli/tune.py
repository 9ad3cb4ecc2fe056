"""`likewise tune`."""

from __future__ import annotations

import json

import click

from likewise.cli import options as shared
from likewise.cli.plot import curve
from likewise.errors import ParameterError

ITEMS = 1_000_000
"""The default of `likewise.tune`: large enough for candidates to dominate the cost."""
MAX_SLOTS = 2048
"""DEFAULT_MAX_SLOTS of families/tuning.py, repeated here so that --help need not import NumPy."""


@click.command(
    epilog="""\b
Examples:
  likewise tune --threshold 0.8
  likewise tune --threshold 0.5 --recall 0.999 --items 10000000
  likewise tune --threshold 0.8 --bands 20 --rows 5      # the curve of a given banding"""
)
@click.option("--threshold", type=float, required=True, help="Similarity from which on pairs should be found.")
@shared.recall("Probability with which a pair at the threshold should be found.")
@click.option("--bands", type=int, help="Number of bands: with --rows, show this banding instead.")
@click.option("--rows", type=int, help="Rows per band: with --bands.")
@shared.whole("--items", ITEMS, "Number of items in the collection, for the predicted cost.")
@shared.whole("--max-slots", MAX_SLOTS, "Longest signature to consider, bands times rows.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
def tune(
    threshold: float,
    recall: float,
    bands: int | None,
    rows: int | None,
    items: int,
    max_slots: int,
    as_json: bool,
) -> None:
    """Show the S-curve of the bands and rows that reach a recall at a threshold, or of a given banding."""
    from likewise.base import checks
    from likewise.families.banding import Banding
    from likewise.families.tuning import tune as find

    threshold, recall = checks.threshold("tune", threshold), checks.recall("tune", recall)
    if (bands is None) != (rows is None):
        raise ParameterError("--bands and --rows go together: give both or neither.")
    if bands is not None and rows is not None:
        given = {"recall": (recall, 0.99), "items": (items, ITEMS), "max_slots": (max_slots, MAX_SLOTS)}
        checks.unused("tune", given, "with --bands and --rows")
        banding = Banding(bands, rows)
    else:
        banding = find(threshold, recall, max_slots=max_slots, items=items)
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
                    "recall": recall,
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
    verdict = "" if reached >= recall else f", below the requested recall of {recall:g}"
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
