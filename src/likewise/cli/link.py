"""`likewise link`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

KINDS = ("text", "tokens", "name", "address", "phone", "date", "number", "exact")
OUTPUTS = ("matches.parquet", "clusters.parquet", "validation.parquet", "validation.png")
EXAMPLES = 3
WIDEST = 100


@click.command(
    epilog="""\b
Examples:
  likewise link customers.csv subscribers.csv --id email --out linked/
  likewise link people.parquet --out linked/                          duplicates within one table
  likewise link a.csv b.csv --field name:name --field phone:phone --weight name=2 --weight phone=1 --out linked/
  likewise link a.csv b.csv --truth matches.csv --out linked/         how good is it?
  likewise link a.csv b.csv --training labelled.csv --out linked/     learn from pairs you know
  likewise link a.csv b.csv --field name --field address --validate created --out linked/
  likewise link a.csv b.csv --validate created --true 0.95 --out linked/    the threshold from validation

\b
DIR will hold:
  matches.parquet      id_a, id_b, score, and the points of every field
  clusters.parquet     for one table: id, cluster, size
  validation.parquet   with --validate: the fraction of true matches at every score; validation.png: its picture
  run.json             what was found out and used, counts, seconds"""
)
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.option("--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Where to write the answer.")
@click.option(
    "--id", metavar="COL", help="Column with the ids.  [default: a first column called id, else the row number]"
)
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME[:KIND]",
    help=f"Compare this column, as {', '.join(KINDS[:-1])} or {KINDS[-1]}. May be given more than once.  [default: all "
    "columns that both have; kinds are found out]",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Score by 100 points a field times its weight, less a penalty for edits.  [default: what agreement is worth "
    "is learnt from the data]",
)
@click.option(
    "--one-to-one/--many",
    "one_to_one",
    default=None,
    help="A record has one partner at most, or as many as there are.  [default: what the scores tell]",
)
@click.option("--threshold", type=float, help="Least score of a match.  [default: where the expected F1 is greatest]")
@click.option(
    "--nicknames",
    "tables",
    multiple=True,
    metavar="FILE",
    help="Words that stand for each other, two or more a row, CSV or TSV; beside the built-in English ones.",
)
@click.option("--truth", metavar="FILE", help="All pairs that match (id_a, id_b): measure precision and recall.")
@click.option("--training", metavar="FILE", help="Labelled pairs (id_a, id_b, match) to learn from.")
@click.option(
    "--validate",
    metavar="FIELD",
    help="Estimate the fraction of true matches at every score from this column, which is not compared then.",
)
@click.option(
    "--true",
    "fraction",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="FRACTION",
    help="With --validate: set the threshold where at least this fraction of the pairs is true, such as 0.95.",
)
@shared.threads
@click.option("--seed", type=int, default=1, show_default=True)
@shared.as_json
def link(
    a: str,
    b: str | None,
    out: Path,
    fields: tuple[str, ...],
    weights: tuple[str, ...],
    tables: tuple[str, ...],
    validate: str | None,
    fraction: float | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the records of two tables, or of one, that stand for the same person, paper or product.

    A, B: Parquet, Arrow, JSONL, CSV or TSV files. Without B, duplicates within A.
    """
    from likewise.apps.link import link as linked_by
    from likewise.errors import ParameterError
    from likewise.io.publish import check_output
    from likewise.io.write import write_table

    check_output(out, "link", OUTPUTS, [a] if b is None else [a, b])
    if fraction is not None and (validate is None or options["threshold"] is not None):
        rule = "used with --validate, and without --threshold"
        raise ParameterError.of("link", "true", rule, fraction)
    if tables:
        options["tables"] = _tables(tables)
    options |= {"fields": list(fields) or None, "weights": _weights(weights), "without": validate}
    show.announce_compilation()
    with show.progress(as_json) as observer:
        if observer is not None:
            options["progress"] = lambda stage: observer(stage, 0, 0)
        found = linked_by(a, b, **options)
        if validate is not None:
            validation = found.validate(validate)
            if fraction is not None:
                options["threshold"] = _where_true(validation, fraction, validate)
                found = linked_by(a, b, **options)
        found.save(out)
    stats = found.stats
    if validate is not None:
        write_table(validation.table, out / "validation.parquet")
        validation.plot(out / "validation.png", measure=f"apart in {validate}")
        stats = {**stats, "validation": {"field": validate, "true": validation.true, "random": validation.random}}
        stats["validation"]["table"] = validation.table.to_pylist()
    if as_json:
        click.echo(json.dumps(stats, indent=2, default=str))
        return
    for line in (*_told(stats), *_examples(found), *_fractions(stats)):
        click.echo(line)
    click.echo(f"{sum(stats['seconds'].values()):.1f} s → {out}")


def _weights(given: tuple[str, ...]) -> dict[str, float] | None:
    """Read weights as the user types them.

    >>> _weights(("name=2", "phone=0.5"))
    {'name': 2.0, 'phone': 0.5}
    """
    from likewise.errors import ParameterError

    found = {}
    for word in given:
        name, equals, number = word.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise ParameterError.of("link", "weight", "NAME=NUMBER, such as phone=2", word)
    return found or None


def _tables(paths: tuple[str, ...]) -> Any:
    """Return the built-in tables of words with those of the user beside them."""
    from likewise.apps.link.names import Table, read_table, table_for

    mine = Table()
    for path in paths:
        mine = mine | read_table(path)
    return {kind: table_for(kind) | mine for kind in ("name", "text", "address")}


def _where_true(validation: Any, fraction: float, field: str) -> float:
    """Return the score from which on so many pairs are true, as another field tells."""
    from likewise.errors import InputError

    found: float | None = validation.threshold(fraction)
    if found is None:
        best = max(validation.table["fraction"].to_pylist(), default=0.0)
        rule = f"a lower fraction (the highest scores have {best:.2f}), or another field"
        raise InputError(f"{field}: no score has {fraction:g} true pairs by this field; choose {rule}")
    return found


def _told(stats: dict[str, Any]) -> Iterator[str]:
    """Tell what was read, what was found out, and how good it is if that is known."""
    sizes = " and ".join(f"{size:,}" for size in stats["records"])
    yield f"{sizes} records; fields: {', '.join(f'{name} ({kind})' for name, kind in stats['fields'].items())}"
    ways = ", ".join(f"{count:,} by {way}" for way, count in stats["candidates by"].items())
    yield f"{show.count(stats['candidates'], 'candidate')}{f': {ways}' if ways else ''}"
    learnt = stats.get("points of disagreement and agreement")
    if learnt:
        yield "points of fields that disagree and that agree, learnt from the data:"
        width = max(map(len, learnt))
        for name, (low, high) in learnt.items():
            yield f"  {name:<{width}}  {low:+6.1f}  {high:+6.1f}"
    expected = f"; expected F1 {stats['expected f1']:.3f}" if "expected f1" in stats else ""
    yield f"{stats['rule']}; threshold {stats['threshold']:.4g}{expected}"
    yield show.count(stats["matches"], "match").replace("matchs", "matches")
    if "f1" in stats:
        yield (
            f"against the truth: precision {stats['precision']:.4f}, recall {stats['recall']:.4f}, "
            f"F1 {stats['f1']:.4f}; {stats['completeness']:.4f} of the true pairs were candidates"
        )
    for note in stats["notes"]:
        yield f"note: {note}"


def _examples(found: Any) -> Iterator[str]:
    """Show a few pairs just above and just below the threshold, where mistakes are likely."""
    for match, title in ((True, "just above the threshold:"), (False, "just below:")):
        some = [example for example in found.examples(EXAMPLES) if example.match == match]
        if some:
            yield title
        for example in some:
            yield f"  {example.score:8.1f}  {_line(example.a)}"
            yield f"            {_line(example.b)}"


def _line(record: dict[str, Any]) -> str:
    """Write a record in one line."""
    line = " | ".join("" if value is None else " ".join(str(value).split()) for value in record.values())
    return line if len(line) <= WIDEST else line[: WIDEST - 1] + "…"


def _fractions(stats: dict[str, Any]) -> Iterator[str]:
    """Tell the fraction of true matches by score."""
    if "validation" not in stats:
        return
    told = stats["validation"]
    ends = f"true pairs {told['true']:.3g}, random pairs {told['random']:.3g}"
    yield f"true matches by score, from {told['field']} ({ends}):"
    for row in told["table"]:
        ends = f"{row['score_from']:8.1f} to {row['score_to']:.1f}"
        yield f"  {ends:<20}{row['pairs']:>10,} pairs  {row['fraction']:.3f}  ({row['low']:.3f} to {row['high']:.3f})"
