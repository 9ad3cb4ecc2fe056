"""What the user sees: progress on stderr, a few lines at the end, JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard

import click

from likewise.base.clock import waiting
from likewise.base.words import counted
from likewise.base.words import size as size
from likewise.cli import CLOSE, options
from likewise.cli.progress import COMPILATION, Bars, Events, ProgressLines
from likewise.cli.progress import quiet as quiet
from likewise.cli.wording import escaped

count = counted
FEW_PAIRS = 100
"""With fewer true pairs in the sample of the certificate, the recall is also estimated from the pairs found."""
UNITS = {"angle": "°", "l2": "", "l1": "", "hamming": " bits"}
STAGES = {
    "forecast": "forecasting",
    "read": "reading",
    "stopwords": "detecting stop words",
    "identical": "finding identical items",
    "common": "counting common shingles",
    "tune": "measuring a sample",
    "sets": "building sets",
    "narrow": "leaving out what no other contains",
    "join": "joining",
    "explain": "counting pairs left by filters",
    "sketch": "sketching",
    "candidates": "pairing buckets",
    "verify": "verifying pairs",
    "crowds": "comparing crowds",
    "certify": "measuring recall",
    "cluster": "choosing keepers",
    "tables": "building tables",
    "index": "indexing sources",
    "passages": "finding passages",
    "count": "counting lines",
    "cut": "cutting",
    "tests": "reading the tests",
    "search": "searching the corpus",
    "measure": "measuring documents",
    "confirm": "comparing texts of pages",
    "links": "reading links",
    "texts": "finding similar texts",
    "contract": "folding pages",
    "customers": "comparing customers",
    "items": "comparing items",
    "recommend": "recommending",
    "look": "checking vectors",
    "plan": "measuring a sample",
    "meet": "pairing buckets",
    "compare": "comparing all",
    "block": "blocking",
    "compare_fields": "comparing fields",
    "learn": "learning weights",
    "label": "learning from labels",
    "decide": "deciding",
    "validate": "validating",
    "mirror": "comparing mirrored prints",
    "write": "writing",
    "add": "adding items",
    "query": "answering queries",
    "report": "writing the report",
}


def say(line: str, err: bool = False) -> None:
    """Print a line; characters of ids and texts that could change the state of a terminal are escaped."""
    upload = sys.modules.get("likewise.io.upload")
    click.echo(escaped(line if upload is None else upload.named(line)), err=err)


@contextmanager
def progress(as_json: bool = False) -> Iterator[Any]:
    """Yield an observer of a run: JSON lines on stderr for programs, bars on a terminal, else a line now and then."""
    if quiet():
        yield None
        return
    shown: Events | Bars | ProgressLines
    if as_json:
        shown = Events(sys.stderr)
    else:
        shown = Bars(STAGES) if sys.stderr.isatty() else ProgressLines(sys.stderr, STAGES)
    try:
        with COMPILATION.shown_by(shown.compiling):
            yield shown
    finally:
        shown.stop()


COMPILED_BESIDE = {"dedup", "pairs", "demo"}
"""Commands that search text, whose kernels two processes share."""


def announce_compilation() -> None:
    """Say so as soon as a kernel that the command needs has to be compiled, which happens once on a machine.

    What the command needs last is then compiled in a second process.
    """
    from likewise.cli.warmup import compile_beside
    from likewise.kernels import watch_compilation

    context = click.get_current_context()
    command = context.info_name or ""
    COMPILATION.begin(command, quiet())  # asked here: threads that compile have no context
    watch_compilation(COMPILATION.watch)
    if context.params.get("unit"):
        COMPILATION.begin("dedup --unit", quiet())
    elif context.params.get("within") is not None:
        return  # vectors need none of what is compiled beside
    elif command in COMPILED_BESIDE and context.params.get("method") == "lsh":
        compile_beside("pairs.scan_band", "clusters", "tuning", "bands")
    elif command in COMPILED_BESIDE:
        compile_beside("strings.strings", "clusters", "tuning", "join")


def estimates(stats: dict[str, Any]) -> Iterator[str]:
    """Say how good the similarities are, if they are estimates."""
    if "estimate" in stats["details"]:
        known, threshold = stats["details"]["estimate"], stats["parameters"]["threshold"]
        yield (
            f"similarities are estimated from {count(known['slots'], 'slot')}, standard error "
            f"{known['standard_error']:.3f} at {threshold:g}; documents were not compared"
        )


def opening(stats: dict[str, Any]) -> Iterator[str]:
    """Say what was read and how it was searched."""
    counts = stats["counts"]
    amount = f", {size(counts['bytes'])} of text" if "bytes" in counts else ""
    items = count(counts.get("items", 0), "document")
    if stats["parameters"].get("group"):
        groups = f"{count(counts['items'], 'group')} ({stats['parameters']['group']})"
        items = f"{groups} of {count(counts['documents'], 'document')}"
    yield f"{items}{amount}; {counts.get('different', 0):,} different"
    if counts.get("earlier"):
        yield f"compared with the {count(counts['earlier'], 'document')} that are known already"
    yield from broken(stats)
    yield from stop_words(stats)
    if "banding" in stats["details"]:
        banding, threshold = stats["details"]["banding"], stats["parameters"]["threshold"]
        yield (
            f"{stats['parameters']['shingle'] or 'sets'}: {count(banding['bands'], 'band')} of "
            f"{count(banding['rows'], 'row')} find a pair at {threshold:g} with probability "
            f"{stats['details']['predicted_recall']:.4f}; {count(counts['candidates'], 'candidate pair')} compared"
        )
    yield from estimates(stats)
    if "filters" in stats["details"]:
        parameters = stats["parameters"]
        measure = parameters.get("measure", "jaccard")
        measure = "" if measure == "jaccard" else f" ({measure})"
        every = f"every pair at {parameters['threshold']:g} or more{measure} is found"
        if not stats["details"].get("crowds", {"complete": True})["complete"]:
            every = f"too many pairs at {parameters['threshold']:g} or more to list them all"
        yield (
            f"{parameters['shingle'] or 'sets'}: exact, {every}; "
            f"{count(counts['candidates'], 'candidate pair')} compared"
        )
    if stats["method"] and stats["method"]["asked"] == "auto":
        yield f"method: {stats['method']['taken']}, {stats['method']['why']}"
    if stats["certificate"]:
        from likewise.search.recall.certificate import Certificate

        yield str(Certificate(**stats["certificate"]))
        expected = stats["details"].get("expected_recall")
        if stats["certificate"]["true_pairs"] < FEW_PAIRS and expected is not None:
            yield (
                f"expected recall {expected:.4f}, by the similarities of the "
                f"{count(counts['verified'], 'pair')} of different documents that were found"
            )
    if "ignored" in stats["details"]:
        yield from ignored(stats["details"]["ignored"], stats["parameters"]["ignore_common"])
    if "crowds" in stats["details"]:
        yield from crowds(stats["details"]["crowds"])
    yield from notes(stats)
    yield from abridged(stats, "documents")


def abridged(stats: dict[str, Any], nouns: str) -> Iterator[str]:
    """Say how many groups of copies are not listed pair by pair."""
    if "abridged" in stats["details"]:
        groups = stats["details"]["abridged"]
        yield (
            f"{count(groups['groups'], 'large group')} of copies ({groups['items']:,} {nouns}) "
            "listed as pairs with the first copy only"
        )


def set_aside(stats: dict[str, Any]) -> None:
    """Say on stderr the first rows that were set aside, and why."""
    for entry in stats["set_aside"][:5]:
        row = "" if entry["row"] is None else f", row {entry['row']}"
        say(f"  set aside: {entry['file']}{row}: {entry['reason']}", err=True)


def stop_words(stats: dict[str, Any]) -> Iterator[str]:
    """Say which languages were found, and how many documents have no stop word to begin a shingle with."""
    if "languages" in stats["details"]:
        found = sorted(stats["details"]["languages"].items(), key=lambda entry: (-entry[1], entry[0]))
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        yield "languages: " + ", ".join(f"{code} {number:,}" for code, number in found[:6]) + more
    bare = stats["counts"].get("without_stop_words", 0)
    if bare:
        have = "has" if bare == 1 else "have"
        yield f"{count(bare, 'document')} {have} no stop-word shingle: similar only to documents with the same words"


def ignored(common: dict[str, Any], fraction: float) -> Iterator[str]:
    """Say which shingles were left out."""
    yield f"{count(common['shingles'], 'shingle')} in more than {fraction:.3g} of the documents left out"
    for example in common["most_common"][:3]:
        yield f"  in {example['documents']:,} of {common['of_documents']:,}: {example['shingle']}"


def crowds(found: dict[str, Any]) -> Iterator[str]:
    """Say which documents are too many and too similar to be compared pair by pair, and why."""
    kind = "" if found["complete"] else "; too many pairs to list them all"
    yield f"{count(found['crowds'], 'crowd')} of {count(found['documents'], 'document')} that have much in common{kind}"
    if found["unchecked"]:
        yield f"  {count(found['unchecked'], 'document')} kept without being compared with all other kept documents"
    for crowd in found["largest"][:3]:
        if crowd["shingles"]:
            worst = crowd["shingles"][0]
            yield f"  {crowd['documents']:,} documents, {worst['documents']:,} of them with: {worst['shingle']}"


def opening_vectors(stats: dict[str, Any]) -> Iterator[str]:
    """Say how many vectors there are, and how they were searched."""
    counts = stats["counts"]
    copies = counts["items"] - counts["different"]
    yield count(counts["items"], "vector") + (f", {copies:,} of them copies of another" if copies else "")
    if counts.get("earlier"):
        yield f"compared with the {count(counts['earlier'], 'vector')} that are known already"
    method, tables, cells = stats["method"], stats["details"].get("tables"), stats["details"].get("cells")
    if method is not None and method["taken"] == "exact":
        yield "exact: all vectors were compared" + (f" ({method['why']})" if method["asked"] == "auto" else "")
    elif cells is not None:
        rest = f"; {counts['left_over']:,} compared with all" if counts["left_over"] else ""
        visited = f"{cells['visited']:,} of {cells['count']:,} cells visited"
        yield f"{visited}; recall {cells['recall']:.4f} on a sample{rest}"
    elif tables is not None:
        rest = f"; {counts['left_over']:,} compared with all" if counts.get("left_over") else ""
        compared = count(counts["compared"], "candidate")
        yield f"{tables['plan']}; recall {tables['recall']:.4f}; {compared} compared{rest}"
    if stats["certificate"]:
        from likewise.search.recall.certificate import Certificate

        yield str(Certificate(**stats["certificate"])).replace("document", "vector")
    yield from notes(stats)
    yield from abridged(stats, "vectors")


def found(stats: dict[str, Any], noun: str) -> str:
    """Say how many pairs or neighbours were found."""
    parameters = stats["parameters"]
    line = count(stats["counts"]["pairs"], noun)
    if parameters.get("within") is not None:
        line += f" within {parameters['within']:g}{UNITS[parameters['measure']]}"
    return line


def outcome(stats: dict[str, Any]) -> str:
    """Say what was kept and what was removed."""
    counts = stats["counts"]
    documents = f" ({count(counts['documents_kept'], 'document')})" if "documents_kept" in counts else ""
    return (
        f"kept {counts['kept']:,}{documents}, removed {counts['removed']:,} ({counts['identical']:,} identical, "
        f"{counts['near']:,} near); {count(counts['clusters'], 'cluster')}, "
        f"the largest of {stats['details']['largest_cluster']:,}"
    )


def saved(command: str, kind: Any, out: Path, inputs: Iterable[Path], as_json: bool, run: Callable[..., Any]) -> Any:
    """Run an application and save its result, of the class `kind`, to a folder that is checked before; return it."""
    from likewise.io.publish import check_output

    check_output(out, command, kind.files, inputs)
    announce_compilation()
    with progress(as_json) as observer:
        result = run(progress=observer)
        result.save(out)
    return result


STDOUT = "standard output"
"""Where a table goes with --out -."""


def print_table(result: Any) -> None:
    """Write the rows of a table to standard output, as JSON lines."""
    from likewise.io.write import write_json_lines

    out = sys.stdout.buffer
    write_json_lines(result.batches(), out)
    out.flush()


def report(stats: dict[str, Any], as_json: bool, lines: Iterable[str], where: object, held: Any = None) -> None:
    """Print these lines and what was set aside, and write the page; at the very end, what the run cost, or its JSON.

    held: the documents of the run, if they are in memory, for its page. If the table went to standard output, all of
    this goes to stderr.
    """
    if not as_json and not quiet():
        for line in lines:
            say(line, err=where is STDOUT)
        set_aside(stats)
    seconds = page(where, as_json, held)
    at_the_end(stats, where, seconds, as_json)


def wanted(where: object, asked: Mapping[str, Any]) -> TypeGuard[Path]:
    """Tell whether a result is a folder that shall have a report."""
    return isinstance(where, Path) and bool(asked.get(options.REPORT, False)) and (where / "run.json").is_file()


def write_page(
    where: Path, asked: Mapping[str, Any], progress: Any = None, held: Any = None
) -> tuple[Path | None, str]:
    """Write the report of a result; return its path, or why there is none.

    held: the documents of the run, if they are in memory. The result is complete by now: whatever goes wrong here, it
    stays.
    """
    from likewise.errors import LikewiseError
    from likewise.report import can_report
    from likewise.report.write import report_with

    if not can_report():
        return None, "no report: pip install 'likewise[report]' for a page about the result (or --no-report)"
    try:
        return report_with(where, held, by=asked.get(options.BY), progress=progress), ""
    except LikewiseError as error:
        return None, f"no report: {error}"
    except Exception as error:
        fault = f"{type(error).__name__}: {str(error)[:200]}"
        return None, f"no report: internal error, please report ({fault}); the result is complete"


def page(where: object, as_json: bool = False, held: Any = None) -> float:
    """Write the report of a folder, say where it is, and return the seconds it took; 0 if there is none.

    A report that cannot be made leaves the result as it is.
    """
    context = click.get_current_context(silent=True)
    asked = context.meta if context else {}
    if not wanted(where, asked):
        return 0.0
    begun = time.perf_counter()
    with progress(as_json) as observer:
        if observer is not None:
            observer("report", 0, 0)
        made, problem = write_page(where, asked, observer, held)
    if problem and not quiet():
        say(problem, err=True)
    elif made and not quiet() and not as_json:
        say(f"report: {made}")
    return time.perf_counter() - begun


def at_the_end(stats: dict[str, Any], where: object, report_seconds: float, as_json: bool = False) -> None:
    """When all is done and put away, complete the seconds in run.json, and print them as the last line."""
    silent, total = quiet(), waiting()

    def close() -> None:
        from likewise.io.publish import with_report
        from likewise.io.upload import named, upload_all

        with_report(stats, where, report_seconds, total.seconds)
        closing_line = named(closing(stats, str(where)))
        upload_all()
        if as_json:
            click.echo(json.dumps(stats, indent=2))
        elif not silent:
            say(closing_line, err=where is STDOUT)

    click.get_current_context().meta[CLOSE] = close


def broken(stats: dict[str, Any]) -> Iterator[str]:
    """Say how many rows were set aside."""
    if stats["counts"]["set_aside"]:
        yield f"{count(stats['counts']['set_aside'], 'row')} set aside as broken"


def notes(stats: dict[str, Any]) -> Iterator[str]:
    """Repeat the notes of a run."""
    from likewise.cli.wording import in_options

    context = click.get_current_context(silent=True)
    for note in stats["notes"]:
        yield f"note: {in_options(note, context.command) if context else note}"


def closing(stats: dict[str, Any], where: str) -> str:
    """Say what the run cost and where the result is."""
    seconds = stats["total_seconds"]
    memory = f", peak memory {size(stats['peak_memory_bytes'])}" if stats["peak_memory_bytes"] else ""
    forecast = (
        f" (forecast {stats['details']['forecast']['total_seconds']:.0f} s)" if "forecast" in stats["details"] else ""
    )
    return f"{seconds:.1f} s{forecast}{memory} → {where}"
