"""`likewise dedup` and `likewise pairs`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from likewise.cli import common, show

F = TypeVar("F", bound=Callable[..., Any])

SHARED = [
    click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the documents."),
    click.option("--id", metavar="COL", help="Column with the ids.  [default: row number; path for text files]"),
    click.option(
        "--shingle",
        default="words:5",
        show_default=True,
        metavar="SPEC",
        help="words:K or chars:K. Without K: 5 words, or the K that suits the documents' lengths. stopwords:en, "
        "stopwords:auto or stopwords:FILE for articles on pages with other things around them. Options follow "
        "by comma: chars:9,whitespace=remove,casefold=true,normalize=NFKC,bag=true,bits=32",
    ),
    click.option("--threshold", type=float, default=0.8, show_default=True, help="Least Jaccard similarity of a pair."),
    click.option(
        "--recall",
        type=float,
        default=0.99,
        show_default=True,
        help="A pair at the threshold is found with at least this probability.",
    ),
    click.option(
        "--method",
        type=click.Choice(["auto", "exact", "lsh"]),
        default="auto",
        show_default=True,
        help="lsh: find pairs with the recall asked for. exact: find all of them. auto: whichever is predicted to be "
        "cheaper; the answer says which.",
    ),
    click.option(
        "--sets",
        is_flag=True,
        help="Items are sets of tokens: one a line of a text file, or a column of lists (--text COL). The same as "
        "--shingle tokens.",
    ),
    click.option("--separator", metavar="CHAR", help="With --sets: what stands between tokens.  [default: blanks]"),
    click.option("--bag", is_flag=True, help="With --sets: a token counts as often as it stands there (a bag)."),
    click.option("--counts", is_flag=True, help="With --sets: bags in which milk:3 stands for milk three times."),
    common.threads,
    click.option("--seed", type=int, default=1, show_default=True),
    click.option("--sketch", type=click.Choice(["fast", "classic"]), default="fast", show_default=True),
    click.option("--bands", type=int, help="With --rows: this banding, not the tuned one."),
    click.option("--rows", type=int, help="With --bands."),
    click.option("--max-slots", type=int, default=2048, show_default=True, help="Longest signature to consider."),
    click.option(
        "--certify",
        type=int,
        metavar="N",
        help="Measure the recall of the run on N random documents; 0: do not.  [default: about 5 % of the run]",
    ),
    click.option(
        "--ignore-common",
        type=float,
        metavar="X",
        help="Leave out shingles that more than this fraction of the documents carry: menus, licences, templates.",
    ),
    common.on_error,
    common.encoding_errors,
    click.option("--lines", is_flag=True, help="Text files hold one document a line."),
    click.option("--html", is_flag=True, help="Documents are HTML pages; needs pip install 'likewise[html]'."),
    click.option(
        "--memory",
        metavar="SIZE",
        help="How much memory to use, such as 4GiB. What does not fit is kept on disk; the answer is the same.  "
        "[default: half of what is free]",
    ),
    click.option(
        "--spill", metavar="DIR", type=click.Path(path_type=Path), help="Where to keep what does not fit in memory."
    ),
    common.as_json,
]


def shared(command: F) -> F:
    """Give a command the options that dedup and pairs share."""
    for option in reversed(SHARED):
        command = option(command)
    return command


@click.command(
    epilog="""\b
Examples:
  likewise dedup corpus.parquet --out clean/
  likewise dedup 'crawl/*.jsonl.gz' --text body --id url --keep longest --out clean/
  likewise dedup papers/ --shingle chars --threshold 0.7 --out clean/
  likewise dedup reviews.csv --text review --keep max:stars --on-error skip --out clean/
  likewise dedup huge/*.parquet --memory 4GiB --spill /fast/disk --out clean/     (interrupted? run it again)
  likewise dedup monday.jsonl --against clean/ --out monday/

\b
DIR will hold:
  kept/              the surviving rows, all columns, in the input's format and order
  removed.parquet    id, kept_id, similarity, kind (identical or near)
  pairs.parquet      id_a, id_b, similarity: every pair found, verified
  clusters.parquet   id, cluster: connected components, named by their first document
  run.json           parameters, counts, seconds, memory, predicted recall"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@common.out
@click.option(
    "--keep",
    default="first",
    show_default=True,
    metavar="POLICY",
    help="Which document stays: first, last, longest, shortest, max:COL, min:COL.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Remove also what is similar to a document that this finished run kept, with that run's settings. May be "
    "given more than once.",
)
@click.option(
    "--no-state", "state", flag_value=False, default=True, help="Leave out what rethreshold and --against need."
)
@click.option("--fresh", is_flag=True, help="Start over, though an unfinished run in DIR could go on.")
@shared
@click.pass_context
def dedup(
    context: click.Context,
    /,
    inputs: tuple[str, ...],
    out: Path,
    as_json: bool,
    against: tuple[Path, ...],
    **options: Any,
) -> None:
    """Remove near-duplicates, and say for each removed document which one stands for it.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs.
    """
    import likewise
    from likewise.read import Files
    from likewise.read.find import find
    from likewise.write import check_directory

    take_sets(context, options)
    check_directory(out, [file.path for file in find(Files(list(inputs)))])
    show.announce_compilation()
    if against:
        options.update(_settings_of(context, list(against)))
    with show.progress(as_json) as observer:
        result = likewise.dedup(Files(list(inputs)), out=out, against=list(against), progress=observer, **options)
    stats = result.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in show.opening(stats):
        click.echo(line)
    click.echo(show.outcome(stats))
    click.echo(show.closing(stats, str(out)))


def take_sets(context: click.Context, options: dict[str, Any]) -> None:
    """Turn --sets, --separator, --bag and --counts into a shingler."""
    from likewise.cli.exact import unescaped
    from likewise.errors import ParameterError
    from likewise.shingle import Tokens

    sets, separator = options.pop("sets"), options.pop("separator")
    bag, counts = options.pop("bag"), options.pop("counts")
    if sets and context.get_parameter_source("shingle") != click.core.ParameterSource.DEFAULT:
        raise ParameterError("--sets and --shingle exclude each other; options of sets: --shingle tokens,bag=true")
    for name, given in (("separator", separator is not None), ("bag", bag), ("counts", counts)):
        if given and not sets:
            raise ParameterError(f"--{name} goes with --sets")
    if sets:
        options["shingle"] = Tokens(separator=unescaped(separator), bag=bag, counts=counts)


def _settings_of(context: click.Context, against: list[Path]) -> dict[str, Any]:
    """Return the settings of earlier runs that the user has not given anew."""
    from likewise.against import Against

    settings = Against(list(against)).settings
    source = click.core.ParameterSource.DEFAULT
    return {name: value for name, value in settings.items() if context.get_parameter_source(name) == source}


@click.command(
    epilog="""\b
Examples:
  likewise rethreshold clean/ --threshold 0.9
  likewise rethreshold clean/ --keep longest --out longest/"""
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--threshold", type=float, help="At least that of the run.  [default: that of the run]")
@click.option(
    "--keep", metavar="POLICY", help="first, last, longest, shortest, max:COL, min:COL.  [default: the run's]"
)
@click.option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Write here, and leave DIR as it is.")
@common.threads
@common.as_json
def rethreshold(directory: Path, out: Path | None, as_json: bool, **options: Any) -> None:
    """Take a finished run to a higher threshold or to other keepers, from the pairs it stored.

    DIR: the folder of a finished `likewise dedup`. Its answer is replaced; the pairs of the first run are kept, so
    that you can come back to its threshold.
    """
    import likewise

    with show.progress(as_json) as observer:
        result = likewise.rethreshold(directory, out=out, progress=observer, **options)
    stats = result.stats
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    counts = stats["counts"]
    click.echo(f"{show.count(counts['items'], 'document')}; {counts['verified']:,} pairs from the run in {directory}")
    click.echo(show.outcome(stats))
    click.echo(show.closing(stats, str(out or directory)))


@click.command(
    epilog="""\b
Examples:
  likewise pairs corpus.parquet --out pairs.parquet
  likewise pairs new.csv --with old.csv --threshold 0.7 --out pairs.csv
  likewise pairs 'answers/*.txt' --shingle chars:9 --threshold 0.3 --out pairs.jsonl
  likewise pairs corpus.parquet --threshold 0.5 --top 10 --out neighbours.parquet
  likewise pairs baskets.txt --sets --threshold 0.6 --out pairs.parquet
  likewise pairs orders.txt --sets --counts --threshold 0.6 --out pairs.parquet    (milk:3 bread)
  likewise pairs titles.csv --text title --shingle chars:3 --threshold 0.9 --method exact --out pairs.csv
  likewise pairs embeddings.npy --measure angle --within 15 --out pairs.parquet
  likewise pairs images.parquet --vector pixels --id name --measure l2 --within 500 --out pairs.csv"""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option(
    "--with",
    "others",
    multiple=True,
    metavar="OTHER",
    help="Compare INPUT with this collection, not with itself. May be given more than once.",
)
@click.option(
    "--out",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write the pairs: .parquet, .csv, .jsonl or .arrow.",
)
@click.option("--top", type=int, metavar="K", help="Only the K most similar partners of each document, best first.")
@click.option(
    "--measure",
    type=click.Choice(["angle", "l2", "l1", "hamming"]),
    help="Compare vectors (.npy files, or columns of lists) by this distance, with --within.",
)
@click.option("--within", type=float, metavar="DISTANCE", help="The largest distance of a pair; angles in degrees.")
@click.option("--vector", default="vector", show_default=True, metavar="COL", help="Column with the vectors.")
@shared
@click.pass_context
def pairs(
    context: click.Context,
    /,
    inputs: tuple[str, ...],
    others: tuple[str, ...],
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """List all pairs at or above the threshold, with their exact similarity.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV or text files, compressed or not, folders, globs. With --measure: .npy files
    with one row a vector, or Parquet, Arrow or JSON lines files with a column of lists.
    """
    import likewise
    from likewise.cli import vectors
    from likewise.read import Files
    from likewise.read.find import find
    from likewise.write import check_target, write_table

    if options["measure"] is not None or options["within"] is not None:
        vectors.check_options(context)
    take_sets(context, options)
    check_target(out, [file.path for file in find(Files([*inputs, *others]))])
    show.announce_compilation()
    other = Files(list(others)) if others else None
    with show.progress(as_json) as observer:
        table = likewise.pairs(Files(list(inputs)), other, progress=observer, **options)
        stats = json.loads(table.schema.metadata[b"likewise"])
        write_table(table.replace_schema_metadata(None), out)
    if options["measure"] is not None:
        vectors.told(table, str(out), as_json, "pair")
        return
    if as_json:
        click.echo(json.dumps(stats, indent=2))
        return
    for line in show.opening(stats):
        click.echo(line)
    show.set_aside(stats)
    click.echo(show.count(stats["counts"]["pairs"], "pair"))
    click.echo(show.closing(stats, str(out)))
