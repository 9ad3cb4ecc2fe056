"""The options that commands share: each is declared here once, so that it means the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

out = click.option(
    "--out", required=True, metavar="DIR", type=click.Path(path_type=Path), help="Folder for the result."
)
FILE_OR_FOLDER = (
    "A file for the table (.parquet, .csv, .jsonl, .arrow or .feather), or a folder for the table and run.json."
)
out_table = click.option("--out", required=True, metavar="PATH", type=click.Path(path_type=Path), help=FILE_OR_FOLDER)
threads = click.option("--threads", type=int, help="Changes the speed, never the result.  [default: all cores]")
on_error = click.option(
    "--on-error",
    type=click.Choice(["stop", "skip"]),
    default="stop",
    show_default=True,
    help="stop: a broken row is an error. skip: set broken rows aside, count and list them.",
)
encoding_errors = click.option(
    "--encoding-errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="What to do with invalid UTF-8.",
)
seed = click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random hash functions.")
memory = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory to use, such as 4GiB; what does not fit goes to disk. The result is the same.  "
    "[default: half of what is free]",
)
spill = click.option(
    "--spill",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder for data that does not fit in memory.  [default: the output folder, or that of temporary files]",
)
text = click.option("--text", default="text", show_default=True, metavar="COL", help="Column with the documents.")
id = click.option("--id", metavar="COL", help="Column with the ids.  [default: row number; path for text files]")
others = click.option(
    "--with",
    "others",
    multiple=True,
    metavar="OTHER",
    help="Compare INPUT with this collection instead of with itself. Repeatable.",
)
method = click.option(
    "--method",
    type=click.Choice(["auto", "exact", "lsh"]),
    default="auto",
    show_default=True,
    help="lsh: find pairs by locality-sensitive hashing, with the recall asked for. exact: find all of them. auto: "
    "whichever is predicted to be cheaper; the result says which.",
)
recall = click.option(
    "--recall",
    type=float,
    default=0.99,
    show_default=True,
    help="A pair at the threshold, or a neighbour, is found with at least this probability.",
)
vector = click.option("--vector", default="vector", show_default=True, metavar="COL", help="Column with the vectors.")
length = click.option(
    "--length",
    type=int,
    default=8,
    show_default=True,
    help="Every shared run of this many words is found; a passage has at least this many equal words.",
)
gap = click.option(
    "--gap",
    type=int,
    default=5,
    show_default=True,
    help="Runs at most this many words apart, in both documents, form one passage.",
)
passage_shingle = click.option(
    "--shingle",
    default="chars:7,whitespace=remove,casefold=true",
    show_default=True,
    metavar="SPEC",
    help="Shingles from which containment is computed: words:K or chars:K, and options.",
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print the statistics as JSON, progress as JSON on stderr."
)

F = TypeVar("F", bound=Callable[..., Any])


def k(default: int | None, help: str) -> Callable[[F], F]:
    """Return the option -k: how many neighbours or partners of each item."""
    return click.option("-k", type=int, metavar="K", default=default, show_default=default is not None, help=help)


SEARCH = [
    text,
    id,
    click.option(
        "--shingle",
        default="words:5",
        show_default=True,
        metavar="SPEC",
        help="How a document becomes a set: words:K or chars:K. Without K: 5 words, or the K that suits the lengths of "
        "the documents. tokens for sets of tokens. stopwords:en, stopwords:auto or stopwords:FILE for articles on web "
        "pages. Options follow, separated by commas: "
        "chars:9,whitespace=remove,casefold=true,normalize=NFKC,bag=true,bits=32",
    ),
    click.option("--threshold", type=float, default=0.8, show_default=True, help="Least similarity of a pair."),
    recall,
    method,
    click.option(
        "--sets",
        is_flag=True,
        help="Items are sets of tokens: one per line of a text file, or a column of lists (--text COL). The same as "
        "--shingle tokens.",
    ),
    click.option("--separator", metavar="CHAR", help="With --sets: what separates tokens.  [default: blanks]"),
    click.option("--bag", is_flag=True, help="With --sets: repeated tokens count as often as they occur (a bag)."),
    click.option("--counts", is_flag=True, help="With --sets: bags in which milk:3 means milk three times."),
    threads,
    seed,
    click.option(
        "--sketch",
        type=click.Choice(["fast", "classic"]),
        default="fast",
        show_default=True,
        help="How MinHash signatures are computed: fast in one pass over a set, classic with one hash per slot.",
    ),
    click.option("--bands", type=int, help="With --rows: this banding instead of the tuned one."),
    click.option("--rows", type=int, help="With --bands: rows of a band."),
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
        help="Leave out shingles that more than this fraction of the documents contain: menus, licences, templates.",
    ),
    on_error,
    encoding_errors,
    click.option("--lines", is_flag=True, help="Text files hold one document per line."),
    click.option("--html", is_flag=True, help="Documents are HTML pages; needs pip install 'likewise[html]'."),
    memory,
    spill,
    as_json,
]


def search(command: F) -> F:
    """Give a command the options that dedup and pairs share."""
    for option in reversed(SEARCH):
        command = option(command)
    return command


def take_sets(context: click.Context, options: dict[str, Any]) -> None:
    """Turn --sets, --separator, --bag and --counts into a shingler."""
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


def unescaped(separator: str | None) -> str | None:
    r"""Return a separator as the user means it: \t is a tab.

    >>> unescaped("\\t")
    '\t'
    """
    return "\t" if separator == "\\t" else separator
