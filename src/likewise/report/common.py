"""What the pages of all commands share: what the run cost, its settings, its inputs, and what went wrong."""

from __future__ import annotations

from typing import Any

from likewise.base.words import counted, size
from likewise.io.upload import named
from likewise.jobs.finished_run import FinishedRun
from likewise.report import pictures
from likewise.report.page import Alarm, Bar, PageTable, Picture, ReportPage, Section, Tile
from likewise.report.samples import ClusterSizes, SampledPairs
from likewise.report.words import duration, large, share, short

MOST_ROWS = 30
"""Rows of a table in the page."""
LEAST_PAIRS, LEAST_CLUSTERS = 50, 10
"""Of fewer there is no histogram: the page lists them all."""


def cost(run: FinishedRun) -> str:
    """Return a sentence on time and memory."""
    memory = run.stats["peak_memory_bytes"]
    needed = f" and at most {size(memory)} of memory" if memory else ""
    threads = run.parameters.get("threads")
    cores = f" on {counted(threads, 'core')}" if isinstance(threads, int) else ""
    return f"It took {duration(until_result(run))}{cores}{needed}."


def until_result(run: FinishedRun) -> float:
    """Return the seconds until the result was complete: those of a page that was made then are not known to it."""
    return float(run.stats["total_seconds"] - run.stats["seconds"].get("report", 0.0))


def compared(run: FinishedRun, items: int, nouns: str) -> str:
    """Return a sentence on how many of all pairs were compared; each text once, however many copies it has."""
    candidates, groups = run.counts.get("candidates"), run.counts.get("groups", items)
    possible = groups * (groups - 1) / 2
    if not candidates or possible <= candidates:
        return ""
    different, once = ("different ", " (copies are compared once)") if groups < items else ("", "")
    were = counted(candidates, "candidate pair was", "candidate pairs were")
    return f"Of {large(possible)} possible pairs of {different}{nouns}, {were} compared{once}."


def sample_note(number: int, shown: int, how: str = ": the same number of each range") -> str:
    """Say that entries of a browser are a sample, if they are."""
    return f"A sample of {number:,}{how}." if number > shown else ""


def histogram(
    section: Section, title: str, sample: SampledPairs, what: str, caption: str = "",
    threshold: float | None = None, nouns: tuple[str, str] = ("pair", "pairs"),
) -> None:  # fmt: skip
    """Put a histogram of some pairs in a section; a sentence instead, if it would have a single bar."""
    if not sample.several:
        low, high = (f"{value:.4g}".replace("-", "−") for value in sample.ends)
        here = f"the {what} {low}" if low == high else f"a {what} from {low} to {high}"
        number = int(sample.counts.sum())
        all_have = f"The {nouns[0]} has" if number == 1 else f"All {number:,} {nouns[1]} have"
        section.intro = f"{section.intro} {all_have} {here}.".strip()
        return
    svg = pictures.similarity_histogram(sample.edges, sample.counts, threshold, what)
    section.pictures.append(Picture(title, svg, caption))


def size_histogram(section: Section, found: ClusterSizes, noun: str, caption: str = "") -> None:
    """Put the sizes of clusters in a section as a histogram; as a sentence if it would have a single bar."""
    if found.counts.sum() < LEAST_CLUSTERS:
        return
    if len(found.sizes) == 1:
        section.intro = f"{int(found.counts[0]):,} clusters of {counted(int(found.sizes[0]), noun)} each."
        return
    svg = pictures.cluster_sizes(found.sizes, found.counts, f"{noun}s")
    section.pictures.append(Picture("Cluster sizes", svg, caption))


def common_alarms(run: FinishedRun) -> list[Alarm]:
    """Return what any command can find: rows set aside, notes."""
    alarms = []
    broken = run.counts.get("set_aside", 0)
    if broken:
        some = []
        for entry in run.stats["set_aside"][:5]:
            row = "" if entry["row"] is None else f", row {entry['row']:,}"
            some.append(f"{short(entry['file'])}{row}: {short(entry['reason'], 300)}")
        what, they = ("One row was", "It was") if broken == 1 else (f"{broken:,} rows were", "They were")
        where = " See aside.parquet." if run.table("aside") else ""
        told = f"{they} left out of the run.{where}"
        alarms.append(Alarm(f"{what} set aside as broken", told, ("\n".join(some),)))
    alarms += [Alarm(note, urgent=False) for note in run.stats["notes"]]
    return alarms


def about(run: FinishedRun) -> list[PageTable]:
    """Return the tables at the end: inputs, time by stage, parameters."""
    tables = []
    files: list[list[Any]] = [
        [
            short(entry.get("file") or entry.get("object") or ""),
            entry.get("format") or "",
            size(entry["bytes"]) if "bytes" in entry else counted(entry.get("rows", 0), "row"),
        ]
        for entry in run.stats["inputs"][:MOST_ROWS]
        if "more_inputs" not in entry
    ]
    rest = sum(entry.get("more_inputs", 1) for entry in run.stats["inputs"]) - len(files)
    more = f"and {rest:,} more" if rest > 0 else ""
    tables.append(PageTable("Inputs", ["file", "format", "size"], files, frozenset({2}), more))
    total = run.stats["total_seconds"] or 1.0
    seconds: list[list[Any]] = [
        [stage, f"{spent:.2f}", Bar(min(1.0, spent / total), share(spent, total))]
        for stage, spent in run.stats["seconds"].items()
    ]
    tables.append(PageTable("Seconds by stage", ["stage", "seconds", "share"], seconds, frozenset({1}), folded=True))
    rows = [[name, short(_written(value), 300)] for name, value in run.parameters.items()]
    tables.append(PageTable("Parameters", ["parameter", "value"], rows, folded=True))
    counts = [[name.replace("_", " "), f"{value:,}"] for name, value in run.counts.items()]
    tables.append(PageTable("Counts", ["what", "count"], counts, frozenset({1}), folded=True))
    return tables


def _written(value: Any) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value[:50])) + (" …" if len(value) > 50 else "")
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


def made(
    run: FinishedRun,
    headline: str,
    tiles: list[Tile],
    story: list[str],
    alarms: list[Alarm],
    sections: list[Section],
    problem: str = "",
) -> ReportPage:
    """Return the page of a run."""
    memory = run.stats["peak_memory_bytes"]
    time = Tile(duration(until_result(run)), "from start to result", f"{size(memory)} of memory" if memory else "")
    return ReportPage(
        title=f"{run.command}: {headline}",
        headline=headline,
        story=[sentence for sentence in story if sentence],
        tiles=[*tiles, time],
        alarms=[*alarms, *common_alarms(run)],
        sections=[section for section in sections if section.filled],
        facts=about(run),
        version=str(run.stats["likewise"]),
        folder=named(str(run.folder.resolve())),
        command=run.command,
        problem=problem,
    )
