"""`likewise link`."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show
from likewise.cli.questions import Terminal

KINDS = ("text", "tokens", "name", "address", "phone", "date", "number", "exact")
EXAMPLES = 3
"""Pairs shown on each side of the threshold."""

USED_AGAIN = ("earlier", "threshold", "out", "as_json", "quiet", "no_report")
"""Options that have an effect with --from."""

WIDEST = 100
"""Characters of a record that are shown."""


@click.command(
    epilog="""\b
Examples:
  likewise link customers.csv subscribers.csv --id email --out linked/
  likewise link people.parquet --out linked/                          duplicates within one table
  likewise link a.csv b.csv --field name:name --field phone:phone --weight name=2 --weight phone=1 --out linked/
  likewise link a.csv b.csv --map cast=actors --out linked/           columns with different names
  likewise link a.csv b.csv --missing 0.0 --missing 1900-01-01 --out linked/    values that mean "no value"
  likewise link a.csv b.csv --scored --out linked/                    keep the scores of all pairs, and then
  likewise link --from linked/ --threshold 12 --out stricter/         decide again: no table is read
  likewise link new.csv --against linked/ --out linked2/              add records to the entities of an earlier run
  likewise link a.csv b.csv --truth matches.csv --out linked/         measure precision and recall
  likewise link a.csv b.csv --training labelled.csv --out linked/     learn from labelled pairs
  likewise link a.csv b.csv --label labels.csv --out linked/          learn from your answers to 30 questions
  likewise link a.csv b.csv --explain c17 s402                        why are these two a match, or not?
  likewise link a.csv b.csv --field name --field address --validate created --out linked/
  likewise link a.csv b.csv --validate created --true 0.95 --out linked/    the threshold from validation
  likewise link a.csv b.csv --window created=0:90 --validate created --out linked/    registered within 90 days

\b
DIR will contain:
  matches.parquet      id_a, id_b, score, and the points of every field
  clusters.parquet     for one table: id, cluster, size, keeper
  validation.parquet   with --validate: the fraction of true matches by score; validation.png: its plot
  added.parquet        with --against: the new records (id, cluster, joined); merged.parquet: entities now one
  scored.parquet       with --scored: all pairs that were compared (copies.parquet: copies that were not)
  model.json           for one table: what was learned, for --against
  weights.parquet      points of every field by agreement, as learned
  run.json             parameters, counts, what was learned, seconds
  report.html          the report on the run"""
)
@click.argument("a", metavar="A", required=False)
@click.argument("b", metavar="[B]", required=False)
@click.option(
    "--out",
    metavar="DIR",
    type=shared.TARGET,
    help="Folder for the result. Required, except with --explain.",
)
@click.option(
    "--from",
    "earlier",
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="Instead of A and B: the folder of a run with --scored. Decide again with another --threshold, by the same "
    "rule, from its scores; values are not compared.",
)
@click.option(
    "--against",
    metavar="RUN",
    type=click.Path(path_type=Path),
    help="The folder of an earlier run of one table: the records of A are new, and join its entities or found new "
    "ones, by what that run learned. Its tables are read again.",
)
@shared.id_of_records
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME[:KIND]",
    help=f"Compare this column, as {', '.join(KINDS[:-1])} or {KINDS[-1]}. Repeatable.  [default: all columns that "
    "both tables have; kinds are guessed]",
)
@click.option(
    "--map",
    "columns",
    multiple=True,
    metavar="A=B",
    help="With B: column A of the first table corresponds to column B of the second; join several with +, as in "
    "name=first+last; nothing after = means that A has no counterpart. Repeatable.  [default: columns of the same "
    "name, and those that share many words]",
)
@click.option(
    "--missing",
    multiple=True,
    metavar="VALUE",
    help="Treat this value, such as 0.0 or 1900-01-01, as missing in every column that is compared, however it "
    "is written there (0, 0.00). Repeatable.  [default: empty, nan, null, none, n/a, -, ?, unknown]",
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="NAME=NUMBER",
    help="Score by 100 points per field, less a penalty for edits, times this weight. Repeatable.  [default: weights "
    "are learned from the data]",
)
@click.option(
    "--one-to-one/--many",
    "one_to_one",
    default=None,
    help="With B: a record has at most one match, or any number.  [default: decided from the scores]",
)
@click.option("--threshold", type=float, help="Minimum score of a match.  [default: maximises the expected F1]")
@click.option(
    "--nicknames",
    multiple=True,
    metavar="FILE",
    help="Synonyms, two or more per row, CSV or TSV; added to the built-in English ones. Repeatable.",
)
@click.option("--truth", metavar="FILE", help="All pairs that match (id_a, id_b): measure precision and recall.")
@click.option(
    "--training",
    metavar="FILE",
    help="Labelled pairs (id_a, id_b, match) to learn from; pairs (id_a, id_b) alone all match.",
)
@click.option(
    "--label",
    metavar="FILE",
    help="Ask at the terminal about the most informative pairs, learn from the answers, and show the gain. "
    "Answers are saved in this CSV file (id_a, id_b, match); pairs already in it are not asked again.",
)
@click.option("--questions", type=int, metavar="N", help="With --label: maximum number of questions.  [default: 30]")
@click.option(
    "--explain",
    nargs=2,
    multiple=True,
    metavar="ID_A ID_B",
    help="Show why two records are a match or not: points field by field, and what decided. Repeatable.",
)
@click.option(
    "--window",
    "windows",
    multiple=True,
    metavar="COL=LOW:HIGH",
    help="With B: compare only records whose date (in days) or number in B is LOW to HIGH after that in A. Repeatable.",
)
@click.option(
    "--validate",
    metavar="COL",
    help="Estimate the fraction of true matches by score from this column, which is not compared.",
)
@click.option(
    "--true",
    type=float,
    metavar="FRACTION",
    help="With --validate: choose the threshold above which this fraction of the pairs are true matches, such as 0.95.",
)
@click.option(
    "--scored",
    is_flag=True,
    help="Also write the scores of all pairs that were compared, from which --from decides again.",
)
@click.option("--fresh", is_flag=True, help="Start over instead of resuming an interrupted run in DIR.")
@shared.threads
@shared.memory
@shared.seed
@shared.report
@shared.as_json
def link(
    a: str | None,
    b: str | None,
    out: Path | None,
    earlier: Path | None,
    explain: tuple[tuple[str, str], ...],
    fields: tuple[str, ...],
    columns: tuple[str, ...],
    weights: tuple[str, ...],
    windows: tuple[str, ...],
    nicknames: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> None:
    """Entity resolution: find the records of two tables, or of one, that are the same person, paper or product.

    A, B: Parquet, Arrow, JSONL, CSV or TSV files. Without B, duplicates within A. Without --id, the ids are in a first
    column called id, or else row numbers. Instead of A and B, --from names a run whose scores are decided again; with
    --against, A has new records for the entities of an earlier run.
    """
    from likewise.apps.link import link as link_records
    from likewise.base.checks import unused

    if earlier is not None:
        _again(earlier, out, as_json)
        return
    if a is None:
        raise click.UsageError("Missing argument 'A'.")
    if out is None and not explain:
        raise click.UsageError("Missing option '--out'.")
    options |= {"fields": list(fields) or None, "weights": _weights(weights), "nicknames": list(nicknames) or None}
    options |= {"window": _windows(windows), "columns": _columns(columns)}
    terminal = None if options["label"] is None else _terminal()
    if terminal is None:
        unused("link", {"questions": (options["questions"], None)}, "without 'label'")
    shared.check_report("link", out)
    show.announce_compilation()
    with show.progress(as_json) as observer:
        if terminal is not None:
            options["ask"] = terminal.beside(observer)
        found = link_records(a, b, progress=observer, out=out, **options)
        reasons = [found.explain(*pair) for pair in explain]
    if reasons and as_json:
        click.echo(json.dumps([one.to_dict() for one in reasons], indent=2, default=str))
        return
    if out is not None:
        lines = itertools.chain(_report(found.stats), _examples(found), _fractions(found))
        show.report(found.stats, as_json, lines, out)
    for one in reasons:
        for line in str(one).split("\n"):
            show.say(line)


def _again(earlier: Path, out: Path | None, as_json: bool) -> None:
    """Decide again from the scores of a run; raise if an option was given that has no effect then."""
    from likewise.apps.link import relink
    from likewise.base.checks import unused
    from likewise.errors import ParameterError

    context = click.get_current_context()
    given = [
        str(one.name)
        for one in context.command.params
        if context.get_parameter_source(str(one.name)) == click.core.ParameterSource.COMMANDLINE
    ]
    if "a" in given:
        raise ParameterError(f"'{context.params['a']}' has no effect with --from: no table is read. Leave it out.")
    unused("link", {name: (True, False) for name in given if name not in USED_AGAIN}, "with --from")
    for name in ("threshold", "out"):
        if name not in given:
            raise click.UsageError(f"Missing option '--{name}', which --from needs.")
    shared.check_report("link", out)
    show.announce_compilation()
    with show.progress(as_json) as observer:
        found = relink(earlier, context.params["threshold"], out=out, progress=observer)
    lines = itertools.chain((f"from the scores of the run in {earlier}",), _report(found.stats), _examples(found))
    show.report(found.stats, as_json, lines, out)


def _terminal() -> Terminal:
    """Return the terminal to ask at; raise if there is none."""
    from likewise.errors import ParameterError

    if sys.stdin is None or not sys.stdin.isatty():
        raise ParameterError(
            "--label needs a terminal for its questions; to learn from labelled pairs in a file, use --training"
        )
    return Terminal(sys.stdin.readline)


def _weights(given: tuple[str, ...]) -> dict[str, float] | None:
    """Parse the weights.

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


def _columns(given: tuple[str, ...]) -> dict[str, str | None] | None:
    """Parse the columns that hold the same.

    >>> _columns(("cast=actors", "name=first+last", "note="))
    {'cast': 'actors', 'name': 'first+last', 'note': None}
    """
    from likewise.errors import ParameterError

    found: dict[str, str | None] = {}
    for word in given:
        name, equals, other = word.partition("=")
        if not equals or not name:
            raise ParameterError.of("link", "map", "A=B, such as cast=actors", word)
        found[name] = other or None
    return found or None


def _windows(given: tuple[str, ...]) -> dict[str, tuple[float, float]] | None:
    """Parse the windows.

    >>> _windows(("created=0:90",))
    {'created': (0.0, 90.0)}
    """
    from likewise.errors import ParameterError

    found = {}
    for word in given:
        name, _, ends = word.rpartition("=")
        try:
            low, high = map(float, ends.split(":"))
        except ValueError:
            name, low, high = "", 0.0, 0.0
        if not name or not low <= high:
            raise ParameterError.of("link", "window", "COL=LOW:HIGH, such as created=0:90", word)
        found[name] = (low, high)
    return found or None


def _report(stats: dict[str, Any]) -> Iterator[str]:
    """Say what was read, what was learned, and how good it is if that is known."""
    counts, details = stats["counts"], stats["details"]
    sizes = [counts[name] for name in ("records_a", "records_b") if name in counts] or [counts["records"]]
    if "records_new" in counts:
        yield f"{show.count(counts['records_new'], 'new record')} and {counts['records_earlier']:,} of an earlier run"
    fields = ", ".join(f"{name} ({kind})" for name, kind in details["fields"].items())
    records = "record" if sizes == [1] else "records"
    yield f"{' and '.join(f'{size:,}' for size in sizes)} {records}; fields: {fields}"
    ways = ", ".join(f"{number:,} by {way.replace('_', ' ')}" for way, number in details["candidates_by"].items())
    yield f"{show.count(counts['candidates'], 'candidate')}: {ways}"
    if "points" in details:
        learned = "field weights learned from the data"
        if "records_new" in counts:
            learned = "field weights of the earlier run"
        elif _untaught(stats):
            learned = "default field weights, as nothing was learned"
        yield f"{learned} (points if it disagrees, if it agrees):"
        width = max(map(len, details["points"]))
        for name, points in details["points"].items():
            yield f"  {name:<{width}}  {points['disagree']:+6.1f}  {points['agree']:+6.1f}"
    yield f"{details['rule']}; threshold {details['threshold']:.4g}"
    if "expected_precision" in details:
        yield f"expected precision {details['expected_precision']:.3f}, the mean probability of the matches"
    if "expected_f1" in details:
        low, high = details["expected_f1_range"]
        yield f"expected F1 {details['expected_f1']:.3f} ({low:.3f} to {high:.3f})"
    else:
        yield f"expected F1 not known: {details['expected_f1_unknown']}"
    matches = show.count(counts["matches"], "match", "matches")
    clusters = f" in {show.count(counts['clusters'], 'cluster')}" if "clusters" in counts else ""
    yield f"{matches}{clusters}"
    if "records_new" in counts:
        founded = show.count(counts["founded"], "new entity", "new entities")
        joined = f"{counts['joined']:,} of the new records joined earlier entities"
        yield f"{joined}; {founded}; {show.count(counts['merged'], 'earlier entity', 'earlier entities')} merged"
    if "labels" in details:
        yield from _gained(details["labels"])
    part = details["completeness"]
    if "unknown" in part:
        yield f"blocking recall not known: {part['unknown']}"
    else:
        about, low, high = (f"{100 * part[name]:.3g}" for name in ("estimate", "low", "high"))
        names = " and ".join(part["fields"])
        yield f"blocking recall ≈ {about} % ({low} to {high} %, if errors in {names} are independent)"
    if "truth" in details:
        truth = details["truth"]
        yield (
            f"against the ground truth: precision {truth['precision']:.4f}, recall {truth['recall']:.4f}, "
            f"F1 {truth['f1']:.4f}; blocking recall {truth['completeness']:.4f}"
        )
    yield from show.notes(stats)


def _untaught(stats: dict[str, Any]) -> bool:
    """Return whether nothing was learned of what matches look like."""
    return "nothing learned" in stats["method"]["taken"]


def _gained(labels: dict[str, Any]) -> Iterator[str]:
    """Say what labels changed."""
    yield f"{show.count(labels['pairs'], 'labelled pair')}, of which {labels['matching']:,} match"
    for when in ("before", "after"):
        if when in labels:
            told = labels[when]
            parts = (
                f"{title} {told[name]:.3f} ({told[f'{name}_low']:.3f} to {told[f'{name}_high']:.3f})"
                for name, title in (("precision", "precision"), ("recall", "recall"), ("f1", "F1"))
            )
            yield f"  {when + ' labels:':<15} {', '.join(parts)}, as estimated from the labels"
    yield f"  {show.count(labels['added'], 'match', 'matches')} added, {labels['removed']:,} removed"


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


def _fractions(found: Any) -> Iterator[str]:
    """Show the fraction of true matches by score."""
    if found.validation is None:
        return
    about = found.stats["details"]["validation"]
    means = f"true matches {about['mean_of_true_matches']:.3g}, random pairs {about['mean_of_random_pairs']:.3g}"
    yield f"true matches by score, from {about['column']} (mean differences: {means}):"
    for row in found.validation.to_pylist():
        ends = f"{row['score_from']:8.1f} to {row['score_to']:.1f}"
        pairs = f"{row['pairs']:>10,} {'pair ' if row['pairs'] == 1 else 'pairs'}"
        yield f"  {ends:<20}{pairs}  {row['fraction']:.3f}  ({row['low']:.3f} to {row['high']:.3f})"
