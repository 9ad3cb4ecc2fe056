"""`likewise tune`."""

from __future__ import annotations

import json

import click

from likewise.cli.plot import curve
from likewise.errors import ParameterError


@click.command(
    epilog="""\b
Examples:
  likewise tune --threshold 0.8
  likewise tune --threshold 0.5 --recall 0.999 --items 10000000
  likewise tune --threshold 0.8 --bands 20 --rows 5      # what does this banding find?"""
)
@click.option("--threshold", type=float, required=True, help="Least similarity of a pair that should be found.")
@click.option("--recall", type=float, default=0.99, show_default=True, help="How surely it should be found.")
@click.option("--bands", type=int, help="With --rows: show this banding.")
@click.option("--rows", type=int, help="With --bands.")
@click.option("--items", type=int, default=1_000_000, show_default=True, help="Size of the collection.")
@click.option("--max-slots", type=int, default=2048, show_default=True, help="Longest signature to consider.")
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
    """Show the S-curve of the bands and rows that reach a recall at a threshold, or of those given."""
    from likewise.base import checks
    from likewise.families.banding import Banding
    from likewise.families.tuning import tune as find

    threshold, recall = checks.threshold("tune", threshold), checks.recall("tune", recall)
    if (bands is None) != (rows is None):
        raise ParameterError("--bands and --rows go together: give both or neither.")
    if bands is not None and rows is not None:
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
    verdict = "" if reached >= recall else f", below the recall of {recall:g} asked for"
    click.echo(f"a pair at similarity {threshold:g} is found with probability {reached:.4f}{verdict}")
    click.echo(
        f"half of the pairs are found at {banding.exact_threshold:.3f} (rule of thumb: {banding.threshold:.3f})\n"
    )
    click.echo("  similarity   found with probability")
    for s in points:
        click.echo(f"  {s:>10.3g}   {banding.probability(s):>10.6f}" + ("   ← threshold" if s == threshold else ""))
    click.echo()
    click.echo("\n".join(curve(banding.probability, threshold)))
