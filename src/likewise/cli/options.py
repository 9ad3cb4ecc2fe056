"""The options that commands share, and the report: each is declared here once, so that it means the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from likewise.base.extras import need
from likewise.cli.progress import QUIET

if TYPE_CHECKING:
    from likewise.io.read import Files

F = TypeVar("F", bound=Callable[..., Any])
REPORT, BY = "likewise.report", "likewise.by"
"""Where the context of a command keeps the options --no-report and --by."""


def number(name: str, default: float, help: str, metavar: str | None = None) -> Callable[[F], F]:
    """Return an option that takes a number."""
    return click.option(name, type=float, default=default, show_default=True, metavar=metavar, help=help)


def whole(name: str, default: int, help: str, metavar: str | None = None) -> Callable[[F], F]:
    """Return an option that takes an integer."""
    return click.option(name, type=int, default=default, show_default=True, metavar=metavar, help=help)


def choice(name: str, choices: Sequence[str], default: str, help: str, callback: Any = None) -> Callable[[F], F]:
    """Return an option that takes one of a few words."""
    kind = click.Choice(choices)
    return click.option(name, type=kind, default=default, show_default=True, help=help, callback=callback)


def needing(extra: str, what: str, when: object = None) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return the callback of an option that needs an extra, always or with one value: that it is missing is said first.

    Nothing has been imported, read or compiled by then.
    """

    def check(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        if value and when in (None, value):
            need(what, extra)
        return value

    return check


def word(name: str, metavar: str, default: str | None, help: str) -> Callable[[F], F]:
    """Return an option that takes any text."""
    return click.option(name, default=default, show_default=default is not None, metavar=metavar, help=help)


def column(name: str, default: str, help: str) -> Callable[[F], F]:
    """Return an option that takes the name of a column."""
    return word(name, "COL", default, help)


def recall(help: str) -> Callable[[F], F]:
    """Return the option --recall."""
    return number("--recall", 0.99, help)


def method(help: str) -> Callable[[F], F]:
    """Return the option --method."""
    return choice("--method", ["auto", "exact", "lsh"], "auto", help)


def shingle(default: str, help: str) -> Callable[[F], F]:
    """Return the option --shingle."""
    return word("--shingle", "SPEC", default, help)


RULES = "first, last, longest, shortest, max:COL, min:COL, or several, the next for ties: max:date,longest"


def keep(default: str | None, help: str) -> Callable[[F], F]:
    """Return the option --keep; `help` says what the keeper is, before or after the rules."""
    return word("--keep", "POLICY", default, help.format(RULES) if "{" in help else f"{help}: {RULES}.")


def k(default: int | None, help: str) -> Callable[[F], F]:
    """Return the option -k: how many neighbours or partners of each item."""
    return click.option("-k", type=int, metavar="K", default=default, show_default=default is not None, help=help)


class Target(click.Path):
    """The path of a result; for a URL, that of the folder or file on this machine where it is made before."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a path."""
        if isinstance(value, str) and "://" in value:
            from likewise.io.disk import is_url
            from likewise.io.upload import stage

            if is_url(value):
                return stage(value)
        return super().convert(value, param, ctx)


TARGET = Target(path_type=Path)

out = click.option("--out", required=True, metavar="DIR", type=TARGET, help="Folder for the result.")
FILE_OR_FOLDER = (
    "A file for the table (.parquet, .csv, .jsonl, .arrow or .feather), or a folder for the table and run.json; - for "
    "JSON lines on standard output."
)
out_table = click.option("--out", required=True, metavar="PATH", type=TARGET, help=FILE_OR_FOLDER)


def _for_spreadsheets(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Write CSV for spreadsheets until the command ends."""
    if wanted:
        from likewise.io.write import spreadsheet

        context.with_resource(spreadsheet())


spreadsheet = click.option(
    "--spreadsheet",
    is_flag=True,
    expose_value=False,
    callback=_for_spreadsheets,
    help="In a .csv file, put an apostrophe before ids that a spreadsheet would run as formulas.",
)
threads = click.option("--threads", type=int, help="Changes the speed, never the result.  [default: all cores]")
on_error = choice(
    "--on-error",
    ["stop", "skip"],
    "stop",
    "stop: a broken row is an error. skip: set broken rows aside, count and list them.",
)
encoding_errors = choice("--encoding-errors", ["strict", "replace"], "strict", "What to do with invalid UTF-8.")
seed = whole("--seed", 1, "Seed of the random hash functions.")
memory = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory to use, such as 4GiB; data that does not fit is spilled to disk. The result is the same.  "
    "[default: half of the free memory]",
)
spill = click.option(
    "--spill",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder for data that does not fit in memory, and for what comes from URLs or goes there.  [default: the "
    "output folder, or that of temporary files; of URLs, the user's cache]",
)
text = column("--text", "text", "Column with the documents.")
id = click.option("--id", metavar="COL", help="Column with the ids.  [default: row number; path for text files]")
id_of_vectors = click.option("--id", metavar="COL", help="Column with the ids.  [default: row number]")
id_of_records = click.option(
    "--id",
    metavar="COL",
    help="Column with the ids, in every table.  [default: a first column called id, or ending in _id, with unique "
    "values; else row number]",
)
others = click.option(
    "--with",
    "others",
    multiple=True,
    metavar="OTHER",
    help="Compare INPUT with this collection instead of with itself. Repeatable.",
)
lsh_or_exact = method(
    "lsh: find pairs by locality-sensitive hashing, with the requested recall. exact: find all of them. auto: "
    "whichever is predicted to be cheaper; the result says which."
)
pair_recall = recall("A pair at the threshold is found with at least this probability.")
any_recall = recall("A pair at the threshold, or a neighbour, is found with at least this probability.")
estimate = click.option(
    "--estimate",
    is_flag=True,
    help="Do not verify pairs: accept those whose signatures agree in at least the fraction --threshold of "
    "their slots. Similarities are then estimates, with a standard error.",
)
DISTANCES = ["angle", "l2", "l1", "hamming"]
within = click.option(
    "--within", type=float, metavar="DISTANCE", help="Maximum distance of a pair of vectors; angles in degrees."
)
vector = column("--vector", "vector", "Column with the vectors.")
length = whole(
    "--length", 8, "Every shared run of this many words is found; a passage has at least this many equal words."
)
gap = whole("--gap", 5, "Runs at most this many words apart, in both documents, form one passage.")
passage_shingle = shingle(
    "chars:7,whitespace=remove,casefold=true",
    "Shingles from which containment is computed: words:K or chars:K, and options.",
)
html = click.option(
    "--html",
    is_flag=True,
    callback=needing("html", "--html"),
    help="Documents are HTML pages; needs pip install 'likewise[html]'.",
)
lines = click.option("--lines", is_flag=True, help="Text files hold one document per line.")
plain = click.option(
    "--plain",
    is_flag=True,
    help="Every file is text, whatever its name (.json, .csv) and even if it has NUL bytes: for trees of source code.",
)
hidden = click.option("--hidden", is_flag=True, help="Also read files and folders whose names begin with a dot.")


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator for several options, listed by --help in this order."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


def _remembering(key: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """Return the callback of an option whose value the context of the command remembers."""

    def remember(context: click.Context, option: click.Parameter, value: Any) -> None:
        context.meta[key] = value

    return remember


quiet = click.option(
    "--quiet",
    is_flag=True,
    expose_value=False,
    callback=_remembering(QUIET),
    help="Print only errors and the requested output (answers, numbers, JSON): no progress, no summary.",
)
as_json = together(
    click.option("--json", "as_json", is_flag=True, help="Print the statistics as JSON, progress as JSON on stderr."),
    quiet,
)


report = click.option(
    "--no-report",
    flag_value=False,
    default=True,
    expose_value=False,
    callback=_remembering(REPORT),
    help="Do not write report.html, a page about the result; it needs pip install 'likewise[report]'.",
)


by = click.option(
    "--by",
    metavar="COL",
    expose_value=False,
    callback=_remembering(BY),
    help="In the report, count removals by this column.  [default: by file or folder]",
)


run = together(seed, on_error, encoding_errors, threads, memory, spill, as_json)
"""How a run reads its input, and what it may use."""

search = together(
    text,
    id,
    shingle(
        "words:5",
        "How a document becomes a set: words:K or chars:K. Without K: 5 words, or the K that suits the lengths of "
        "the documents. tokens for sets of tokens. stopwords:en, stopwords:auto or stopwords:FILE for articles on web "
        "pages. urls for URLs, one per line of a text file. Options follow, separated by commas: "
        "chars:9,whitespace=remove,casefold=true,normalize=NFKC,bag=true,bits=32",
    ),
    number("--threshold", 0.8, "Minimum similarity of a pair."),
    any_recall,
    lsh_or_exact,
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
    choice(
        "--sketch",
        ["fast", "classic"],
        "fast",
        "How MinHash signatures are computed: fast in one pass over a set, classic with one hash per slot.",
    ),
    click.option("--bands", type=int, help="With --rows: use this number of bands instead of tuning it."),
    click.option("--rows", type=int, help="With --bands: rows per band."),
    whole("--max-slots", 2048, "Longest signature to consider."),
    click.option(
        "--certify",
        type=int,
        metavar="N",
        help="Measure the recall of the run on N random documents; 0: skip this.  [default: about 5 % of the run; of "
        "vectors one in 50, at most 1,000]",
    ),
    click.option(
        "--ignore-common",
        type=float,
        metavar="X",
        help="Ignore shingles that occur in more than this fraction of the documents: menus, licences, templates.",
    ),
    on_error,
    encoding_errors,
    lines,
    html,
    plain,
    hidden,
    memory,
    spill,
    as_json,
)
"""What dedup, pairs and plan share."""


engine = together(
    choice(
        "--engine",
        ["auto", "local", "spark"],
        "auto",
        "local: this process. spark: a Spark cluster, with the same result; needs pip install 'likewise[spark]' and "
        "Java 17. auto: local.",
        needing("spark", "--engine spark", "spark"),
    ),
    click.option(
        "--master",
        metavar="URL",
        help="With --engine spark: its master, such as local[4], spark://host:7077, or sc://host:15002 for Spark "
        "Connect.  [default: local[*]]",
    ),
)
"""Where a run takes place."""


def check_report(
    command: str, out: Path | None, given: Files | None = None, options: Mapping[str, Any] | None = None
) -> None:
    """Raise now if --no-report or --by has no effect, or if the input has no column to count by."""
    from likewise.errors import ParameterError
    from likewise.jobs.result import TABLE_FILES

    meta = click.get_current_context().meta
    column, wanted = meta.get(BY), meta.get(REPORT, True)
    if not wanted and (out is None or (out.suffix.lower() in TABLE_FILES and command in TABLES)):
        raise ParameterError(
            "--no-report has no effect without a folder for the result, to which the report would be written"
        )
    if column is not None and not wanted:
        raise ParameterError("--by has no effect with --no-report")
    if column is not None and given is not None and options is not None and options.get("engine") != "spark":
        from likewise.io.read import ReadOptions, open_source

        html = {"html": options["html"]} if "html" in options else {}
        reading = {name: options[name] for name in ("text", "id", "lines", "plain", "hidden")}
        open_source(given, ReadOptions(**reading, **html, score=column, owner=command))


def to_stdout(out: Path | None, as_json: bool, engine: str = "local") -> bool:
    """Tell whether the table goes to standard output; raise if something else would go there, too."""
    from likewise.errors import ParameterError

    if out is None or str(out) != "-":
        return False
    if as_json:
        raise ParameterError("--json and --out - both write to standard output: use one of them.")
    if engine == "spark":
        raise ParameterError("--out - has no effect with --engine spark, which writes to files: name a file or folder.")
    return True


TABLES = ("pairs", "nearest", "index query")
"""Commands whose result can be one file."""


def location(out: Path, engine: str) -> Path | str:
    """Return where a result goes: on Spark, a URI as the user wrote it, of which a Path has lost a slash.

    >>> location(Path("s3a://bucket/clean"), "spark")
    's3a://bucket/clean'
    """
    from likewise.io.upload import abandon, url_of

    url = url_of(out)
    if url is not None:
        if engine == "spark":
            abandon(out)
        return url if engine == "spark" else out
    scheme, colon, rest = out.as_posix().partition(":/")
    if engine != "spark" or not colon or len(scheme) < 2 or "/" in scheme:
        return out
    return f"{scheme}://{'/' * (scheme == 'file')}{rest}"


def files(*given: Files | None, plain: bool = False, hidden: bool = False) -> list[Path]:
    """Return the files that the inputs name as paths, folders and globs, but for standard input, which no result
    replaces and which is read when all else is known to be right."""
    from likewise.io.read import Files

    found: list[Path] = []
    for some in given:
        if some is not None and "-" in some.paths:
            some = Files([path for path in some.paths if path != "-"])
        if some is not None and some.paths:
            found += (file.path for file in some.find(plain, hidden).files)
    return found


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
            raise ParameterError(f"--{name} requires --sets")
    if sets:
        options["shingle"] = Tokens(separator=unescaped(separator), bag=bag, counts=counts)


def unescaped(separator: str | None) -> str | None:
    r"""Return a separator as the user means it: \t is a tab.

    >>> unescaped("\\t")
    '\t'
    """
    return "\t" if separator == "\\t" else separator
