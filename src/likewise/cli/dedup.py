"""`likewise dedup`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise dedup corpus.parquet --out clean/
  likewise dedup 'crawl/*.jsonl.gz' --text body --id url --keep longest --out clean/
  zcat crawl-*.jsonl.gz | likewise dedup - --text body --out clean/          (- is JSON lines or an Arrow stream)
  likewise dedup papers/ --shingle chars --threshold 0.7 --out clean/
  likewise dedup project/ --plain --on-error skip --out clean/       (a tree of source code)
  likewise dedup crawl.warc.gz --out clean/
  likewise dedup reviews.csv --text review --keep max:stars --on-error skip --out clean/
  likewise dedup reviews.csv --text review --keep max:stars,max:date,longest --out clean/
  likewise dedup crawl.parquet --measure containment --threshold 0.9 --out clean/     (parts of others go)
  likewise dedup answers.jsonl --keep none --out single/             (all copies, not all but one)
  likewise dedup code.parquet --group repository --keep max:stars --out clean/     (a repository is one item)
  likewise dedup crawl.parquet --unit lines --out clean/             (lines of earlier pages are cut out of later ones)
  likewise dedup crawl.parquet --unit paragraphs --more-than 10 --min-left 20 --keep none --out clean/   (boilerplate)
  likewise dedup embeddings.npy --measure angle --within 15 --out clean/
  likewise dedup images.parquet --vector clip --id path --measure angle --within 15 --keep max:width --out clean/
  likewise dedup monday.npy --measure angle --within 15 --against clean/ --out monday/
  likewise dedup monday.npy --measure angle --within 15 --against seen/ --add --out monday/    (seen/: an index)
  likewise dedup huge/*.parquet --memory 4GiB --spill /fast/disk --out clean/     (interrupted? run it again)
  likewise dedup 's3://bucket/crawl/*.parquet' --id url --out s3://bucket/clean   (also gs, az, hf, https)
  likewise dedup monday.jsonl --against clean/ --out monday/
  likewise dedup monday.jsonl --id url --against seen/ --add --out monday/    (seen/ is an index: likewise index create)
  likewise dedup 's3a://crawl/*.parquet' --engine spark --master spark://host:7077 --out s3a://clean/

\b
DIR will contain:
  kept/              the surviving rows, all columns, in the input's format and order
  removed.parquet    id, kept_id (with --keep none: a similar one), similarity, kind (identical or near)
  pairs.parquet      id_a, id_b, similarity: every pair found, verified
  clusters.parquet   id, cluster (a connected component: the id of its first document), size, keeper
  run.json           parameters, counts, method, recall, seconds, memory: docs/run-json.md
  report.html        the report on the run

\b
With --unit, DIR will contain kept/, run.json, report.html, and:
  cuts.parquet       id of the document, start and end in it (in characters; the end is exclusive), words, text,
                     repeated_id (the first document that has it), documents (how many have it)
  removed.parquet    id, why (empty or short), words_left: documents of which too little is left

\b
For vectors, the tables have a distance instead of the similarity."""
)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@shared.out
@shared.choice(
    "--measure",
    ["jaccard", "containment", *shared.DISTANCES],
    "jaccard",
    "What is removed: documents similar to a kept one (jaccard), or with at least the share --threshold of their "
    "shingles in a kept one, however long that is (containment); vectors at most --within from a kept one.",
)
@shared.within
@shared.vector
@shared.keep(
    None,
    "Which document to keep: {}. With none, all documents similar to another are removed.  [default: first; by "
    "containment longest]",
)
@click.option(
    "--group",
    metavar="COLUMN",
    help="Documents with the same value, such as a repository, a host or a book, are one item, compared, kept and "
    "removed as a whole.",
)
@click.option(
    "--unit",
    type=click.Choice(["lines", "paragraphs"]),
    help="Instead of removing similar documents, cut lines (or paragraphs, between blank lines) that also occur in "
    "earlier documents.",
)
@shared.whole("--min-words", 5, "With --unit: shorter lines or paragraphs stay.", "N")
@shared.whole("--more-than", 1, "With --unit: cut only what occurs in more than this many documents.", "N")
@shared.whole("--min-left", 1, "With --unit: remove documents with fewer words left.", "N")
@click.option(
    "--against",
    multiple=True,
    metavar="DIR|INDEX",
    help="Also remove documents similar to those that this finished run kept, or that this index holds; its "
    "settings are used. Repeatable.",
)
@click.option(
    "--add",
    is_flag=True,
    help="Then add the kept documents to the index in --against; needs --id, except for text files. Vectors without "
    "ids are numbered from the first number that the index has free.",
)
@click.option(
    "--no-state",
    "state",
    flag_value=False,
    default=True,
    help="Do not write state/, which rethreshold and --against need.",
)
@shared.by
@shared.report
@shared.estimate
@click.option("--fresh", is_flag=True, help="Start over instead of resuming an interrupted run in DIR.")
@shared.search
@shared.engine
@click.pass_context
def dedup(
    context: click.Context,
    /,
    inputs: tuple[str, ...],
    out: Path,
    as_json: bool,
    against: tuple[str, ...],
    **options: Any,
) -> None:
    """Remove near-duplicates, and record for each removed document which one was kept.

    With --unit, cut the lines or paragraphs that also occur in other documents.

    INPUT: Parquet, Arrow, JSONL, CSV, TSV, WARC or text files, compressed or not, folders, globs, URLs; - for JSONL or
    an Arrow stream on standard input. Vectors: .npy files with one vector per row, or Parquet, Arrow or JSONL files
    with a column of lists.
    """
    _read_ahead(inputs, out, {**options, "against": against})
    import likewise
    from likewise.base import checks
    from likewise.errors import ParameterError
    from likewise.io.read import Files
    from likewise.jobs.result import Dedup

    of_vectors = options["measure"] in shared.DISTANCES
    for option, told in (("--sets", options["sets"]), ("--by", context.meta.get(shared.BY))):
        if of_vectors and told:
            raise ParameterError(f"{option} has no effect with --measure {options['measure']}, which compares vectors.")
    shared.take_sets(context, options)
    given = Files(inputs)
    target = shared.location(out, options["engine"])
    if options["engine"] != "spark":
        Dedup.check_folder(out, shared.files(given, plain=options["plain"], hidden=options["hidden"]))
    shared.check_report("dedup", out, given, options)
    if options["unit"] and context.meta.get(shared.BY):
        raise ParameterError("--by has no effect with --unit")
    show.announce_compilation()
    if against:
        if not of_vectors:
            estimate = {"estimate": (options["estimate"], False)}
            checks.unused("dedup", estimate, "with 'against', which compares documents")
        options.update(_settings_of(context, list(against)))
    with show.progress(as_json) as observer:
        result = likewise.dedup(given, out=target, against=list(against), progress=observer, **options)
    if options["unit"]:
        show.report(result.stats, as_json, _cut(result.stats), target)
        return
    opening = show.opening_vectors(result.stats) if of_vectors else show.opening(result.stats)
    lines = [*opening, show.outcome(result.stats)]
    if "added" in result.stats["counts"]:
        what = "vector" if of_vectors else "document"
        lines.append(f"added {show.count(result.stats['counts']['added'], what)} to the index")
    show.report(result.stats, as_json, lines, target, getattr(result, "held", None))


def _read_ahead(inputs: tuple[str, ...], out: Path, options: dict[str, Any]) -> None:
    """Begin to decode a Parquet file while modules are loaded, if it will be read now, and its columns are known."""
    from likewise.io import ahead

    usual = (
        options["engine"] != "spark" and options["on_error"] != "skip" and options["measure"] not in shared.DISTANCES
    )
    usual &= not any(options[name] for name in ("unit", "against", "memory", "plain")) and ":" not in str(
        options["keep"]
    )
    cores = options["threads"] or os.cpu_count() or 1
    if usual and cores > 1 and inputs[0].endswith(".parquet") and not (out / ".likewise").exists():
        columns = [options["text"], options["group"] or options["id"]]
        ahead.begin(inputs[0], list(dict.fromkeys(name for name in columns if name)))


def _cut(stats: dict[str, Any]) -> Iterator[str]:
    """Say what was read, what was cut out of it, and what is left."""
    counts, unit = stats["counts"], stats["parameters"]["unit"].removesuffix("s")
    least = show.count(stats["parameters"]["min_words"], "word")
    yield (
        f"{show.count(counts['documents'], 'document')}, {show.size(counts['bytes'])} of text; "
        f"{show.count(counts['units'], unit)} of at least {least}"
    )
    yield from show.broken(stats)
    yield from show.notes(stats)
    yield (
        f"{show.count(counts['repeated'], f'different {unit}')} repeated: cut {counts['cuts']:,} times, "
        f"{show.count(counts['words_cut'], 'word')}, out of {show.count(counts['documents_cut'], 'document')}"
    )
    yield f"kept {counts['kept']:,}, removed {counts['removed']:,} with too little left"


def _settings_of(context: click.Context, against: list[str]) -> dict[str, Any]:
    """Return the settings of earlier runs and of indexes, but for those that the user gives."""
    from likewise.engines import index_items, known_items, known_vectors

    settings: dict[str, Any]
    if context.params["measure"] in shared.DISTANCES:
        if context.params["engine"] == "spark":
            return {}  # dedup says that this is not possible
        with known_vectors(list(against)) as vectors:
            settings = {"within": next((one.within for one in vectors.known if one.within is not None), None)}
    elif context.params["engine"] == "spark":
        from likewise.spark.against import settings_of

        settings = settings_of(list(against), context.params["master"], index_items)
    else:
        with known_items(list(against)) as known:
            settings = known.settings
    source = click.core.ParameterSource.DEFAULT
    return {name: value for name, value in settings.items() if context.get_parameter_source(name) == source}
