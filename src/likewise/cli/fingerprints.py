"""`likewise fingerprints`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

MOST = 5


@click.command(
    epilog="""\b
Examples:
  likewise fingerprints minutiae.csv --out found/                          all prints with each other
  likewise fingerprints gun.csv --with database.parquet --out found/       one print, or some, against many
  likewise fingerprints minutiae.csv --only 101_1.tif --out found/         one print against all others
  likewise fingerprints minutiae.csv --finger finger --out found/          the finger is known: how good is it?
  likewise fingerprints m.csv --id image --angle theta --angles degrees --flip --dpi 1000 --out found/

\b
DIR will hold:
  matches.parquet   id_a, id_b, score, minutiae that agree, overlap_a and overlap_b, rotation (degrees) and shift
                    (pixels at 500 dpi) that take a to b, triples that led to the pair; best first
  fingers.parquet   of all prints with each other: id, group (its first print), size
  run.json          parameters, threshold, counts, rates if the fingers are known, seconds, memory"""
)
@click.argument("prints", metavar="MINUTIAE")
@click.option("--with", "others", metavar="OTHERS", help="Compare with the prints of this table, not among themselves.")
@click.option("--only", multiple=True, metavar="PRINT", help="Look for this print alone. May be given again.")
@shared.out
@click.option(
    "--threshold", type=float, help="Least score of a match, in (0, 1].  [default: as --false says, by mirrored prints]"
)
@click.option(
    "--false",
    type=float,
    default=1.0,
    show_default=True,
    metavar="PAIRS",
    help="How many false matches may be expected in the whole run; of a thousand pairs never more than one.",
)
@click.option("--id", metavar="COL", help="Column that names the print.  [default: print, impression, image or id]")
@click.option("--x", default="x", show_default=True, metavar="COL", help="Column with the place across.")
@click.option("--y", default="y", show_default=True, metavar="COL", help="Column with the place down.")
@click.option(
    "--angle",
    default="angle",
    show_default=True,
    metavar="COL",
    help="Column with the direction, from the x axis towards the y axis.",
)
@click.option(
    "--angles",
    type=click.Choice(["auto", "degrees", "radians"]),
    default="auto",
    show_default=True,
    help="Their unit; auto: degrees if one is beyond 2π.",
)
@click.option("--flip", is_flag=True, help="Angles turn the other way: counter-clockwise, while y points down.")
@click.option("--dpi", type=float, default=500, show_default=True, help="Pixels an inch.")
@click.option("--finger", metavar="COL", help="Column with the finger, if it is known: measures the match rates.")
@click.option("--near", type=float, default=15, show_default=True, help="Minutiae agree within so many pixels …")
@click.option("--turned", type=float, default=20, show_default=True, help="… and so many degrees.")
@click.option(
    "--votes",
    type=float,
    default=0.3,
    show_default=True,
    help="Prints of m and n minutiae are compared if this times √(m·n) triples agree; less: slower, misses less.",
)
@click.option(
    "--as-they-lie",
    is_flag=True,
    help="All prints lie alike, neither turned nor shifted: candidates by random triples of grid squares.",
)
@click.option("--functions", type=int, default=1024, show_default=True, help="As they lie: triples in an OR …")
@click.option("--groups", type=int, default=2, show_default=True, help="… and how many such ORs must agree.")
@click.option("--side", type=float, default=20, show_default=True, help="As they lie: side of a square, in pixels …")
@click.option(
    "--border", type=float, default=5, show_default=True, help="… so near a border a minutia counts in both squares."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the random triples.")
@shared.threads
@shared.as_json
def fingerprints(
    prints: str, others: str | None, only: tuple[str, ...], out: Path, as_json: bool, **options: Any
) -> None:
    """Find prints of one finger by their minutiae, however they lie: one against many, or all against all.

    MINUTIAE, OTHERS: Parquet, Arrow, JSONL, CSV or TSV files with one row a minutia: its print, x, y and angle.
    """
    from likewise.apps.fingerprints import match
    from likewise.apps.fingerprints.answer import COMMAND, TABLES
    from likewise.io.publish import check_output
    from likewise.io.read import Files
    from likewise.io.read.find import find

    given = [Files([one]) for one in (prints, others) if one is not None]
    check_output(out, COMMAND, TABLES, [file.path for one in given for file in find(one)])
    show.announce_compilation()
    with show.progress(as_json) as observer:
        answer = match(*given, only=list(only) or None, progress=observer, **options)
        answer.save(out)
    stats = answer.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in (*_told(stats, options["finger"]), *_best(answer.matches, stats, bool(only) or others is not None)):
        click.echo(line)
    click.echo(show.closing(stats, str(out)))


def _told(stats: dict[str, Any], finger: str | None) -> Iterator[str]:
    """Tell what was read, how the line was drawn, what was found."""
    counts, line = stats["counts"], stats["threshold"]
    looked = f"{counts['queries']:,} of " if counts["queries"] < counts["prints"] else ""
    others = f" and {counts['others']:,} others" if counts["others"] else ""
    yield (
        f"{looked}{show.count(counts['prints'], 'print')}{others}, {counts['minutiae']:,} minutiae; "
        f"{show.count(counts['pairs'], 'pair')}, {counts['compared']:,} of them compared minutia by minutia"
    )
    if "empty" in stats:
        names = ", ".join(stats["empty"]["first"])
        yield f"{show.count(stats['empty']['prints'], 'print')} without minutiae, which can match nothing: {names}"
    if "repeated_minutiae" in stats:
        yield f"{show.count(stats['repeated_minutiae'], 'row')} with a minutia that was there already left out"
    expected = line["expected_false"]
    told = f"; false matches to be expected: {expected:.2g}" if expected is not None else ""
    yield {
        "given": f"threshold {line['value']:.3f}, as given{told}",
        "few": f"threshold {line['value']:.3f}: too few prints to find one; look at the scores",
    }.get(line["how"], f"threshold {line['value']:.3f}, by {line['mirrored']:,} comparisons in a mirror{told}")
    grouped = (
        f"; {counts['in_groups']:,} prints in {show.count(counts['groups'], 'group')}" if "groups" in counts else ""
    )
    yield f"{counts['matches']:,} {'match' if counts['matches'] == 1 else 'matches'}{grouped}"
    if "identical" in stats:
        first = ", ".join(" = ".join(pair) for pair in stats["identical"]["first"])
        yield f"{show.count(stats['identical']['prints'], 'print')} with the very minutiae of another: {first}"
    if finger is not None:
        yield from _rates(stats.get("rates"), finger)


def _rates(rates: dict[str, Any] | None, finger: str) -> Iterator[str]:
    from likewise.apps.fingerprints import Rate

    if rates is None:
        yield f"rates: '{finger}' has no two prints of one finger, or no two of different ones; nothing to measure"
        return
    true, false, whole, kept, passed = (
        Rate(rates[name]["count"], rates[name]["of"])
        for name in ("true_match", "false_match", "fingers_complete", "candidates_true", "candidates_false")
    )
    yield f"against '{finger}':"
    yield f"  true match rate   {true}"
    yield f"  false match rate  {false}"
    yield f"  equal error rate  {rates['equal_error']:.4f}"
    yield f"  fingers complete  {whole}"
    yield f"  compared          {kept.value:.3f} of the true pairs, {passed.value:.3f} of the others"
    yield "  pairs that share a print or a finger are not independent: the intervals of pairs are too narrow"


def _best(matches: Any, stats: dict[str, Any], asked: bool) -> Iterator[str]:
    """Show the best matches of prints that were looked for, and what lies just below the threshold."""
    rows = matches.slice(0, MOST).to_pylist() if asked else []
    for row in rows:
        yield (
            f"  {row['score']:.3f}  {row['id_a']}  {row['id_b']}  {row['minutiae']} minutiae agree, "
            f"turned by {row['rotation']:.0f}°"
        )
    if stats["below"]:
        yield "just below the threshold:"
        for row in stats["below"][:3]:
            yield f"  {row['score']:.3f}  {row['id_a']}  {row['id_b']}"
