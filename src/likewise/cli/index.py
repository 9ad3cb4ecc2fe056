"""`likewise index`: make a persistent index, add to it, query it, remove from it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show
from likewise.errors import LikewiseError


class Subcommands(click.Group):
    """A group whose errors name the options of its commands."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except LikewiseError as error:
            from likewise.cli.wording import reword

            reword(error, self.get_command(ctx, ctx.invoked_subcommand or ""))
            raise


@click.group(
    cls=Subcommands,
    epilog="""\b
Examples:
  likewise index create library/ --threshold 0.7
  likewise index add library/ 'books/*.txt'
  likewise index query library/ new.parquet --id isbn -k 5 --out found.csv
  likewise index remove library/ 'books/old.txt'
  likewise index info library/

INDEX is a folder, or the URL of a Redis server with the name of an index, redis://host:6379/0?name=library; its
password, if not in the URL, is read from the environment variable REDISCLI_AUTH.
Each command has its own --help with examples. docs/persistent-index.md describes the index.""",
)
def index() -> None:
    """Build a persistent index, and query it for items similar to new ones."""


where = click.argument("path", metavar="INDEX")
reading = shared.together(
    shared.text,
    shared.vector,
    shared.id,
    shared.on_error,
    shared.encoding_errors,
    shared.lines,
    shared.html,
    shared.plain,
    shared.hidden,
    shared.threads,
    shared.as_json,
)
"""How items are read from files."""
OF_DOCUMENTS = ("text", "on_error", "encoding_errors", "lines", "html", "plain", "hidden")
"""Options of reading that have no effect for vectors."""


@index.command(
    epilog="""\b
Examples:
  likewise index create library/
  likewise index create library/ --shingle chars:9 --threshold 0.6 --items 10000000
  likewise index create quotations/ --containment          (does a short text occur in a long one?)
  likewise index create baskets/ --sets --threshold 0.5
  likewise index create library/ --from-run clean/         (what a finished dedup kept)
  likewise index create embeddings/ --measure angle --recall 0.95
  likewise index create 'redis://localhost:6379/0?name=library'"""
)
@where
@shared.choice(
    "--measure",
    ["jaccard", "angle", "l2", "l1", "hamming"],
    "jaccard",
    "jaccard for documents and sets; for vectors a distance: the angle in degrees, Euclidean (l2), Manhattan (l1), "
    "or the number of bits that differ (hamming).",
)
@shared.shingle("words:5", "How a document becomes a set, as in dedup: words:K, chars:K, tokens, stopwords:en, urls.")
@shared.number("--threshold", 0.8, "Minimum Jaccard similarity of an answer; a query may ask for a higher one.")
@click.option("--within", type=float, help="Vectors: maximum distance of an answer.  [default: any]")
@click.option("--dimension", type=int, help="Vectors: number of components.  [default: that of the first]")
@click.option(
    "--dtype", type=click.Choice(["float32", "float64"]), help="Vectors: data type.  [default: that of the first]"
)
@shared.recall("An item at the threshold, or one of the nearest vectors, is found with at least this probability.")
@click.option("--sets", is_flag=True, help="Items are sets of tokens: one per line of a text file, or a list column.")
@click.option("--separator", metavar="CHAR", help="With --sets: what separates tokens.  [default: blanks]")
@click.option("--bag", is_flag=True, help="With --sets: repeated tokens count as often as they occur (a bag).")
@click.option("--counts", is_flag=True, help="With --sets: bags in which milk:3 means milk three times.")
@click.option(
    "--containment", is_flag=True, help="Also answer queries with --measure containment; about doubles the size."
)
@click.option(
    "--no-texts", "texts", flag_value=False, default=None, help="Do not keep the documents themselves, compressed."
)
@shared.whole("--items", 1_000_000, "How many items to expect; more can be added.")
@shared.seed
@shared.choice("--sketch", ["fast", "classic"], "fast", "How MinHash signatures are computed.")
@click.option("--bands", type=int, help="With --rows: use this number of bands instead of tuning it.")
@click.option("--rows", type=int, help="With --bands: rows per band.")
@shared.whole("--max-slots", 2048, "Longest signature to consider.")
@click.option(
    "--from-run",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Fill it with the documents that this finished dedup run kept, using its settings.",
)
@shared.threads
@shared.as_json
@click.pass_context
def create(context: click.Context, /, path: str, from_run: Path | None, as_json: bool, **options: Any) -> None:
    """Create an empty index in the folder INDEX, or on a Redis server: redis://host:6379/0?name=library."""
    import likewise
    from likewise.errors import ParameterError

    shared.take_sets(context, options)
    if from_run is not None:
        default = click.core.ParameterSource.DEFAULT
        kept = ("containment", "texts", "threads")
        for name in options:
            if name not in kept and context.get_parameter_source(name) != default:
                raise ParameterError(
                    f"--{name.replace('_', '-')} has no effect with --from-run: it is that of the run."
                )
        show.announce_compilation()
        with show.progress(as_json) as observer:
            made = likewise.Index.from_run(from_run, path, progress=observer, **{name: options[name] for name in kept})
    else:
        made = likewise.Index.create(path, **options)
    with made:
        _tell(made.info(), as_json)


@index.command(
    epilog="""\b
Examples:
  likewise index add library/ corpus.parquet --id url
  likewise index add library/ 'crawl/*.jsonl.gz' --text body --id url --replace
  likewise index add library/ essays/                      (the id of a text file is its path)
  likewise index add embeddings/ vectors.npy
  likewise index add embeddings/ pages.parquet --vector embedding --id url"""
)
@where
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--replace", is_flag=True, help="Replace items with the same ids; without it, they are an error.")
@reading
def add(path: str, inputs: tuple[str, ...], replace: bool, threads: int | None, as_json: bool, **options: Any) -> None:
    """Add the items of files to an index: all of them or, if there is an error, none.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV, WARC or text files, compressed or not, folders, globs; for an index of
    vectors .npy files with one vector per row, or Parquet, Arrow or JSONL files with a column of lists. Without --id,
    the rows of tables are numbered, from the first number that is free.
    """
    import likewise
    from likewise.base.runlog import RunLog
    from likewise.index.files import item_batches, open_items, open_vectors, vector_batches
    from likewise.io.read import Files

    show.announce_compilation()
    begun = time.perf_counter()
    with likewise.Index.open(path, threads=threads) as opened, show.progress(as_json) as observer:
        log = RunLog.of(observer)
        kind = opened.info()["ids"]
        if _holds_vectors(opened, options):
            given = open_vectors(Files(inputs), options["vector"], options["id"], "index add")
            with log.stage("add", len(given.table)) as tick:
                count = opened.add_batches(vector_batches(given, kind, tick), replace=replace)
            aside = 0
        else:
            source = open_items(opened.scheme, Files(inputs), opened.where, owner="index add", **_read(options))
            with log.stage("add", source.total_rows or 0) as tick:
                batches = item_batches(source, kind, opened.threads, tick)
                count = opened.add_batches(batches, replace=replace)
            aside = len(source.aside)
        stats = {"added": count, "items": len(opened), "set_aside": aside}
    if as_json:
        click.echo(json.dumps(stats))
    elif not show.quiet():
        broken = f"; {show.count(aside, 'row')} set aside as broken" if aside else ""
        show.say(f"added {show.count(count, 'item')}{broken}; {opened.where} has {stats['items']:,}")
        show.say(f"{time.perf_counter() - begun:.1f} s → {opened.where}")


@index.command(
    epilog="""\b
Examples:
  likewise index query library/ new.parquet --id url --out found.parquet
  likewise index query library/ essay.txt -k 3
  tail -n 100 new.jsonl | likewise index query library/ - --id url --out -
  likewise index query quotations/ quotes.csv --text quote --measure containment --threshold 0.9 --out found.csv
  likewise index query embeddings/ questions.npy -k 10 --out nearest.parquet
  likewise index query embeddings/ new.parquet --vector embedding --id url --within 12

\b
The table has the columns id_a, of INPUT, id_b, of the index, and similarity, or for vectors distance: for each item of
INPUT its answers, the most similar first. Without --out, the answers are printed."""
)
@where
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@shared.k(None, "Only the K most similar items of the index for each item of INPUT.")
@click.option("--threshold", type=float, help="Minimum similarity of an answer.  [default: that of the index]")
@click.option("--within", type=float, help="Vectors: maximum distance.  [default: that of the index, if it has one]")
@shared.choice(
    "--measure",
    ["jaccard", "containment"],
    "jaccard",
    "Of documents and sets; containment: the share of the shingles of an item of INPUT that the item of the index has; "
    "the index must have been created with --containment.",
)
@click.option("--out", metavar="PATH", type=shared.TARGET, help=shared.FILE_OR_FOLDER)
@shared.spreadsheet
@shared.report
@reading
def query(
    path: str,
    inputs: tuple[str, ...],
    k: int | None,
    threshold: float | None,
    within: float | None,
    measure: str,
    out: Path | None,
    threads: int | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find the items of an index that are similar to those of INPUT, each with its exact similarity.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV, WARC or text files, compressed or not, folders, globs; for an index of
    vectors .npy files with one vector per row, or Parquet, Arrow or JSONL files with a column of lists.
    """
    import likewise
    from likewise.base import checks
    from likewise.base.runlog import RunLog
    from likewise.index.files import answered, nearest_answers, open_items, open_vectors
    from likewise.io.read import Files
    from likewise.jobs.result import Pairs

    given, printed = Files(inputs), shared.to_stdout(out, as_json)
    if out is not None and not printed:
        found = shared.files(given, plain=options["plain"], hidden=options["hidden"])
        Pairs.check_target(out, "index", [*found, *Path(path).glob("*/data.mdb")])
    shared.check_report("index query", None if printed else out)
    show.announce_compilation()
    with likewise.Index.open(path, threads=threads) as opened, show.progress(as_json) as observer:
        if _holds_vectors(opened, options, "measure", "threshold"):
            asked = open_vectors(given, options["vector"], options["id"], "index query")
            result = nearest_answers(opened, asked, RunLog.of(observer), k, within)
        else:
            checks.unused("index query", {"within": (within, None)}, "for documents and sets")
            source = open_items(opened.scheme, given, opened.where, owner="index query", **_read(options))
            result = answered(opened, source, RunLog.of(observer), k, threshold, measure)
        if out is not None and not printed:
            result.save(out)
    if printed:
        show.print_table(result)
    elif out is None and not as_json:
        for row in result:
            value = row["distance"] if "distance" in row else row["similarity"]
            show.say(f"{row['id_a']}  {value:.4f}  {row['id_b']}")
    counts = result.stats["counts"]
    lines = [f"{show.count(counts['items'], 'item')}: {show.count(counts['pairs'], 'answer')}"]
    if out is not None or as_json:
        show.report(result.stats, as_json, lines, show.STDOUT if printed else out or opened.where)


@index.command(
    epilog="""\b
Examples:
  likewise index remove library/ a17 a18
  likewise index remove library/ --ids gone.txt --missing skip"""
)
@where
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option(
    "--ids", "file", metavar="FILE", type=click.Path(path_type=Path), help="A text file with one id per line."
)
@shared.choice("--missing", ["error", "skip"], "error", "What to do with an id that is not in the index.")
@shared.as_json
def remove(path: str, ids: tuple[str, ...], file: Path | None, missing: str, as_json: bool) -> None:
    """Remove the items with these ids from an index: all of them or, if there is an error, none."""
    import likewise
    from likewise.errors import ParameterError
    from likewise.index.item_ids import as_ids, fitted_ids

    if bool(ids) == (file is not None):
        raise ParameterError("index remove needs either ids, or a file of them with --ids FILE")
    with likewise.Index.open(path) as opened:
        wanted = list(ids) if file is None else list(_lines(file))
        count = opened.remove(fitted_ids(as_ids(wanted, "index remove"), opened.info()["ids"]), missing=missing)
        stats = {"removed": count, "items": len(opened)}
    if as_json:
        click.echo(json.dumps(stats))
    elif not show.quiet():
        show.say(f"removed {show.count(count, 'item')}; {opened.where} has {stats['items']:,}")


def _holds_vectors(opened: Any, options: dict[str, Any], *others: str) -> bool:
    """Tell whether an index holds vectors; raise if an option was given that has no effect then, or else."""
    from likewise.errors import ParameterError

    vectors = bool(opened.info()["items"] == "vectors")
    context = click.get_current_context()
    unused = (*OF_DOCUMENTS, *others) if vectors else ("vector",)
    for name in unused:
        if context.get_parameter_source(name) != click.core.ParameterSource.DEFAULT:
            why = "which holds vectors" if vectors else "which holds no vectors"
            raise ParameterError(f"--{name.replace('_', '-')} has no effect with {opened.where}, {why}.")
    return vectors


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of reading documents."""
    return {name: value for name, value in options.items() if name != "vector"}


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a text file that are not empty."""
    from likewise.errors import MissingInput, TextError

    try:
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line.removesuffix("\r"):
                yield line.removesuffix("\r")
    except UnicodeDecodeError as error:
        raise TextError(f"{path}: not valid UTF-8: {error}") from error
    except OSError as error:
        raise MissingInput(f"{path}: cannot be read: {error.strerror or error}") from error


@index.command()
@where
@shared.as_json
def info(path: str, as_json: bool) -> None:
    """Show the settings and the contents of an index."""
    import likewise

    with likewise.Index.open(path) as opened:
        _tell(opened.info(), as_json, asked=True)


@index.command(
    epilog="""\b
Examples:
  likewise index check library/
  likewise index check library/ --repair"""
)
@where
@click.option("--repair", is_flag=True, help="Rebuild the index from its undamaged parts; damaged items are lost.")
@shared.threads
@shared.as_json
def check(path: str, repair: bool, threads: int | None, as_json: bool) -> None:
    """Read everything in an index and verify its checksums."""
    import likewise

    with likewise.Index.open(path, threads=threads) as opened:
        report = opened.check(repair=repair)
    if as_json:
        click.echo(json.dumps(report.to_dict()))
    elif not show.quiet():
        show.say(f"{opened.where}: {report}")


@index.command()
@where
@shared.threads
@shared.as_json
def compact(path: str, threads: int | None, as_json: bool) -> None:
    """Reclaim the space of removed items, and merge all segments of an index. Needs space for a second copy."""
    import likewise

    with likewise.Index.open(path, threads=threads) as opened:
        _tell(opened.compact(), as_json)


def _tell(info: dict[str, Any], as_json: bool, asked: bool = False) -> None:
    """Print what an index is and holds; in spite of --quiet if that is what was `asked` for."""
    if as_json:
        click.echo(json.dumps(info, indent=2))
        return
    if show.quiet() and not asked:
        return
    removed = f", {info['removed']:,} removed" if info["removed"] else ""
    each = f", {info['bytes_per_item']:,.0f} an item" if info["bytes_per_item"] else ""
    for line in (
        *(_of_vectors(info, removed) if info["items"] == "vectors" else _of_sets(info, removed)),
        f"{show.size(info['bytes_on_disk'])} on disk, {show.size(info['bytes_used'])} used{each}; "
        f"{show.count(len(info['segments']), 'segment')}",
        f"format {info['format']}, made by likewise {info['likewise']}",
    ):
        show.say(line)


def _of_sets(info: dict[str, Any], removed: str) -> tuple[str, ...]:
    """Say what an index of documents or sets is."""
    shingling = info["shingling"]["shingle"] if info["shingling"] else "sets"
    return (
        f"{show.count(info['count'], 'item')}, {info['different']:,} different{removed}",
        f"{shingling}: jaccard of {info['threshold']:g} or more, recall {info['recall']:g}: "
        f"{show.count(info['bands'], 'band')} of {show.count(info['rows'], 'row')}, {info['sketch']} MinHash, "
        f"seed {info['seed']}",
        f"containment: {'yes' if info['containment'] else 'no'}; documents kept: {'yes' if info['texts'] else 'no'}",
    )


def _of_vectors(info: dict[str, Any], removed: str) -> tuple[str, ...]:
    """Say what an index of vectors is."""
    known = f" of {info['dimension']:,} components" if info["dimension"] else ""
    kind = f", {info['dtype']}" if info["dtype"] else ""
    within = "" if info["within"] is None else f" of {info['within']:g} or less"
    return (
        f"{show.count(info['count'], 'vector')}{known}{kind}{removed}",
        f"{info['measure']}{within}, recall {info['recall']:g}, seed {info['seed']}",
    )
