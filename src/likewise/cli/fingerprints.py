"""`likewise fingerprints`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

MOST = 5
"""Matches shown for prints that were looked up."""


@click.command(
    epilog="""\b
Examples:
  likewise fingerprints minutiae.csv --out found/                          all prints with each other
  likewise fingerprints gun.csv --with database.parquet --out found/       one print, or several, against many
  likewise fingerprints minutiae.csv --only 101_1.tif --out found/         one print against all others
  likewise fingerprints minutiae.csv --finger finger --out found/          known fingers: measure the match rates
  likewise fingerprints m.csv --id image --angle theta --angles degrees --flip --dpi 1000 --out found/

\b
DIR will contain:
  matches.parquet   id_a, id_b, score, minutiae that agree, overlap_a and overlap_b, rotation (degrees) and shift
                    (pixels at 500 dpi) that move a onto b, triples that led to the pair; best first
  fingers.parquet   of all prints with each other: id, cluster (its first print), size, keeper
  run.json          parameters, threshold, counts, rates if the fingers are known, seconds, memory
  report.html       the report on the run"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@shared.others
@click.option("--only", multiple=True, metavar="PRINT", help="Look up only this print. Repeatable.")
@shared.out
@click.option(
    "--threshold",
    type=float,
    help="Minimum score of a match, in (0, 1].  [default: from --false-matches and mirror images]",
)
@shared.number(
    "--false-matches",
    1.0,
    "Number of false matches to expect in the whole run; at most one in a thousand pairs.",
    metavar="PAIRS",
)
@click.option("--id", metavar="COL", help="Column that names the print.  [default: print, impression, image or id]")
@shared.column("--x", "x", "Column with the horizontal position.")
@shared.column("--y", "y", "Column with the vertical position.")
@shared.column("--angle", "angle", "Column with the direction, from the x axis towards the y axis.")
@shared.choice(
    "--angles", ["auto", "degrees", "radians"], "auto", "Unit of the directions; auto: degrees if one is beyond 2π."
)
@click.option("--flip", is_flag=True, help="Angles turn the other way: counter-clockwise while y points down.")
@shared.number("--dpi", 500, "Pixels per inch.")
@click.option("--finger", metavar="COL", help="Column with the known finger: measure the match rates.")
@shared.number("--near", 15, "Minutiae agree within this many pixels …")
@shared.number("--turned", 20, "… and this many degrees.")
@shared.number(
    "--votes",
    0.1,
    "Prints of m and n minutiae are compared if this times √(m·n) triples agree; lower finds more, more slowly.",
)
@click.option(
    "--aligned",
    is_flag=True,
    help="The prints are aligned: find candidates by random triples of grid squares; directions are not needed.",
)
@shared.whole("--functions", 1024, "With --aligned: triples in an OR …")
@shared.whole("--groups", 2, "… and the number of ORs in the AND.")
@shared.number("--side", 20, "With --aligned: side of a square in pixels …")
@shared.number("--border", 5, "… and the distance from an edge within which a minutia counts in both squares.")
@shared.whole("--seed", 1, "With --aligned: seed of the random triples.")
@shared.threads
@shared.memory
@shared.report
@shared.as_json
def fingerprints(
    inputs: tuple[str, ...], others: tuple[str, ...], only: tuple[str, ...], out: Path, as_json: bool, **options: Any
) -> None:
    """Find prints of one finger by their minutiae: one against many, or all against all.

    INPUT: Parquet, Arrow, JSONL, CSV or TSV files with one row per minutia: its print, x, y and angle. Prints may be
    shifted and rotated.
    """
    from likewise.apps.fingerprints import Fingerprints
    from likewise.apps.fingerprints import fingerprints as find_matches
    from likewise.io.read import Files

    given = [Files(some) for some in (inputs, others) if some]
    run = partial(find_matches, *given, only=list(only) or None, **options)
    result = show.saved("fingerprints", Fingerprints, out, shared.files(*given), as_json, run)
    lines = (*_summary(result.stats), *_best(result.matches, result.stats, bool(only or others)))
    show.report(result.stats, as_json, lines, out)


def _summary(stats: dict[str, Any]) -> Iterator[str]:
    """Yield lines on what was read, the threshold, and what was found."""
    counts, details = stats["counts"], stats["details"]
    looked = f"{counts['queries']:,} of " if counts["queries"] < counts["prints"] else ""
    others = f" and {counts['others']:,} others" if counts["others"] else ""
    yield (
        f"{looked}{show.count(counts['prints'], 'print')}{others}, {counts['minutiae']:,} minutiae; "
        f"{show.count(counts['possible_pairs'], 'pair')}, {counts['compared']:,} of them compared minutia by minutia"
    )
    yield _threshold(details["threshold"])
    grouped = (
        f"; {show.count(counts['clustered'], 'print')} in {show.count(counts['clusters'], 'cluster')}"
        if "clusters" in counts
        else ""
    )
    yield f"{counts['matches']:,} {'match' if counts['matches'] == 1 else 'matches'}{grouped}"
    yield from show.notes(stats)
    if details.get("rates"):
        yield from _rates(details["rates"], stats["parameters"]["finger"])


def _threshold(line: dict[str, Any]) -> str:
    expected = "" if line["expected_false"] is None else f"; expected false matches: {line['expected_false']:.2g}"
    if line["how"] == "few":
        return f"threshold {line['value']:.3f}: too few prints to determine one; check the scores"
    how = "as given" if line["how"] == "given" else f"by {line['mirrored']:,} comparisons with mirror images"
    return f"threshold {line['value']:.3f}, {how}{expected}"


def _rates(rates: dict[str, Any], finger: str) -> Iterator[str]:
    from likewise.apps.fingerprints import Rate

    true, false, whole, kept, passed = (
        Rate(rates[name]["count"], rates[name]["of"])
        for name in ("true_match", "false_match", "fingers_complete", "candidates_true", "candidates_false")
    )
    yield f"measured with '{finger}':"
    yield f"  true match rate   {true}"
    yield f"  false match rate  {false}"
    yield f"  equal error rate  {rates['equal_error']:.4f}"
    yield f"  fingers complete  {whole}"
    yield f"  compared          {kept.value:.3f} of the true pairs, {passed.value:.3f} of the others"
    yield "  pairs that share a print or a finger are not independent: the intervals of pairs are too narrow"


def _best(matches: Any, stats: dict[str, Any], asked: bool) -> Iterator[str]:
    """Yield the best matches of prints that were looked up, and the best pairs below the threshold."""
    rows = matches.slice(0, MOST).to_pylist() if asked else []
    for row in rows:
        yield (
            f"  {row['score']:.3f}  {row['id_a']}  {row['id_b']}  {row['minutiae']} minutiae agree, "
            f"rotated by {row['rotation']:.0f}°"
        )
    if stats["details"]["below"]:
        yield "just below the threshold:"
        for row in stats["details"]["below"][:3]:
            yield f"  {row['score']:.3f}  {row['id_a']}  {row['id_b']}"
