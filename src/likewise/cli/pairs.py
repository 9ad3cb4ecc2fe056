"""`likewise pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show

SIMILARITIES = ["jaccard", "containment", "cosine", "dice", "overlap"]
FILTERS = {
    "none": "all pairs",
    "length": "of similar length (3.9.3)",
    "prefix": "that share a symbol of their prefixes (3.9.4)",
    "position": "at positions that allow it (3.9.5)",
    "suffix": "with enough symbols after them (3.9.6)",
    "bitmap": "auto: two shared symbols, and bitmaps that agree",
    "similar": "similar",
}


@click.command(
    epilog="""\b
Examples:
  likewise pairs corpus.parquet --out pairs.parquet
  likewise pairs new.csv --with old.csv --threshold 0.7 --out pairs.csv
  likewise pairs 'answers/*.txt' --shingle chars:9 --threshold 0.3 --out pairs.jsonl
  likewise pairs corpus.parquet --threshold 0.5 -k 10 --out similar/
  zcat crawl.jsonl.gz | likewise pairs - --id url --out - | jq .similarity
  likewise pairs baskets.txt --sets --threshold 0.6 --out pairs.parquet
  likewise pairs orders.txt --sets --counts --threshold 0.6 --out pairs.parquet    (milk:3 bread)
  likewise pairs essays.csv --with sources.csv --measure containment --threshold 0.3 --out pairs.csv
  likewise pairs titles.csv --text title --shingle chars:3 --threshold 0.9 --method exact --out pairs.csv
  likewise pairs baskets.txt --sets --threshold 0.9 --explain
  likewise pairs corpus.parquet --estimate --bands 20 --rows 5 --threshold 0.8 --out pairs.parquet
  likewise pairs embeddings.npy --measure angle --within 15 --out pairs.parquet
  likewise pairs embeddings.npy --measure angle --within 30 --beyond 5 -k 10 --out related.parquet
  likewise pairs images.parquet --vector pixels --id name --measure l2 --within 500 --out pairs.csv

\b
The table has the columns id_a, id_b and similarity (documents and sets) or distance (vectors);
with --estimate, id_a, id_b, estimated_similarity and standard_error."""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@shared.others
@click.option("--out", metavar="PATH", type=shared.TARGET, help=shared.FILE_OR_FOLDER)
@shared.spreadsheet
@shared.choice(
    "--measure",
    [*SIMILARITIES, *shared.DISTANCES],
    "jaccard",
    "A similarity of documents and sets, with --threshold (containment: of id_a's set in id_b's; overlap: shared "
    "elements / elements of the smaller set), or a distance of vectors, with --within.",
)
@shared.within
@click.option(
    "--below",
    type=float,
    metavar="SIMILARITY",
    help="Only pairs less similar than this, to leave out copies and mirrors.",
)
@click.option("--beyond", type=float, metavar="DISTANCE", help="Only pairs of vectors farther apart than this.")
@shared.k(None, "Only the K most similar partners of each item of INPUT, best first.")
@click.option(
    "--explain",
    is_flag=True,
    help="Show how many pairs each filter of the exact join leaves; with --out, write the pairs too.",
)
@shared.report
@shared.estimate
@shared.vector
@shared.search
@shared.engine
@click.pass_context
def pairs(
    context: click.Context,
    /,
    inputs: tuple[str, ...],
    others: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """List all similar pairs of documents, sets or vectors, each with its exact similarity or distance.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV, WARC or text files, compressed or not, folders, globs, URLs; - for JSONL or
    an Arrow stream on standard input. Vectors: .npy files with one vector per row, or Parquet, Arrow or JSONL files
    with a column of lists.
    """
    import likewise
    from likewise.errors import ParameterError
    from likewise.io.read import Files
    from likewise.jobs.result import Pairs

    explain = options["explain"]
    if out is None and not explain:
        raise ParameterError("Use --out PATH to write the pairs, or --explain to show how they are found.")
    if options["sets"] and options["measure"] in shared.DISTANCES:
        raise ParameterError(f"--sets has no effect with --measure {options['measure']}, which compares vectors.")
    shared.take_sets(context, options)
    given, other = Files(inputs), Files(others) if others else None
    printed = shared.to_stdout(out, as_json, options["engine"])
    if out is not None and not printed:
        local = [] if options["engine"] == "spark" else [given, other]
        found = shared.files(*local, plain=options["plain"], hidden=options["hidden"])
        Pairs.check_target(out, "pairs", found)
    shared.check_report("pairs", None if printed else out)
    show.announce_compilation()
    with show.progress(as_json) as observer:
        result = likewise.pairs(given, other, progress=observer, **options)
        if out is not None and not printed:
            result.save(out)
    if printed:
        show.print_table(result)
    stats = result.stats
    opening = show.opening_vectors(stats) if options["measure"] in shared.DISTANCES else show.opening(stats)
    explained = (
        [*_table(stats["details"]["explained"]), *_copies(stats["details"]["explained_sets"])] if explain else []
    )
    where = "nothing written (use --out PATH to write the pairs)" if out is None else show.STDOUT if printed else out
    show.report(stats, as_json, (*opening, *explained, show.found(stats, "pair")), where)


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Write the filters as lines."""
    lines = [f"{'filter':<10}{'pairs':>20}{'of all':>12}{'seconds':>10}"]
    for row in rows:
        seconds = f"{row['seconds']:.2f}" if row["filter"] not in ("none", "length") else ""
        numbers = f"{row['filter']:<10}{row['pairs']:>20,}{row['share']:>12.2e}{seconds:>10}"
        lines.append(f"{numbers}   {FILTERS[row['filter']]}")
    return lines


def _copies(numbers: dict[str, list[int]]) -> list[str]:
    """Say how many sets the table is about, if that is not all of them."""
    if numbers["sets"] == numbers["compared"]:
        return []
    parts = [
        f"{compared:,} of {show.count(sets, 'set')}"
        for sets, compared in zip(numbers["sets"], numbers["compared"], strict=True)
    ]
    return [f"these are pairs of different sets ({' and '.join(parts)}); copies and empty sets need no comparison"]
