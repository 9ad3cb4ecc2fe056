"""likewise's exact join beside its peers: from lists of tokens to all pairs at or above a threshold.

    python benchmarks/exact.py                                     everything; hours, most of them the peers'
    python benchmarks/exact.py --sets 2000                         the same on the first 2,000 sets of each collection
    python benchmarks/exact.py --collections zipf --thresholds 0.9 --peers SetSimilaritySearch
    python benchmarks/exact.py --growth                            likewise alone, on more and more sets

zipf: 100,000 sets of about 100 whole numbers below 100,000, drawn by Zipf's law; one in twenty is a copy of an earlier
one with up to a quarter of its elements changed. retail: the shopping baskets of a file, one a line (--retail). names:
the 3-grams of a million names of npm packages (the list is fetched with npm, or --names FILE).

Every measurement is a fresh process in the tool's own environment, timed from Python lists of tokens to the pairs in
memory; reading the lists is not timed, nor is loading likewise's kernels. Quick ones are repeated and the best counts.
All tools must find the same pairs: their checksums are compared. SetSimilaritySearch runs in one process.
py_stringsimjoin runs in one and in two, each time on strings as it is shipped, and on the lists as they are ("ready").
Below 0.8 the peers take many minutes: there they get the first 20,000 sets of zipf, and likewise these and all.

"x likewise" is the time of a tool divided by that of likewise with two threads. The tables that follow tell how many
pairs likewise's filters let through (from the metadata of its answer), and each filter of the chapter by itself
(`exact.explain`, not timed).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import platform
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from corpus import DATA
from growth import exponent
from runs import HERE, MemoryWatch, Unavailable, last_line, pinned, python_of

PEERS: dict[str, tuple[str, list[str]]] = {
    "SetSimilaritySearch": ("SetSimilaritySearch", []),
    "py_stringsimjoin": ("py_stringsimjoin", ["--strings"]),
    "py_stringsimjoin, 2 jobs": ("py_stringsimjoin", ["--strings", "--threads", "2"]),
    "py_stringsimjoin ready": ("py_stringsimjoin", []),
    "py_stringsimjoin ready, 2 jobs": ("py_stringsimjoin", ["--threads", "2"]),
}
TOOLS = list(dict.fromkeys(tool for tool, _ in PEERS.values()))
LIKEWISE = {"likewise, 1 thread": ["--threads", "1"], "likewise, 2 threads": ["--threads", "2"]}
OURS = "likewise, 2 threads"
PEERS_FROM = 0.8
"""Below this threshold the peers get a part of zipf only."""

REPEATS = 3
PATIENCE = 30.0
"""A measurement is not repeated once its runs have taken this many seconds."""

UNIVERSE = 100_000
MEAN = 100
COPIES = 0.05
MOST_CHANGED = 0.25
BLOCK = 1_000
DRAWS = 256
"""So many draws by Zipf's law have more different elements than any set needs."""

NAMES = "all-the-package-names", "2.0.2578"
GRAM = 3
RETAIL = DATA / "retail.sets.gz"
OUT = DATA / "out" / "exact"
Integers = npt.NDArray[np.int32]
console = Console(highlight=False, width=150)


@dataclass(frozen=True)
class Sets:
    """The first so many sets of a file, which holds a JSON list of tokens on each line."""

    name: str
    path: Path
    count: int


@dataclass(frozen=True)
class Row:
    """One measurement. `failed` says why there is no answer; then `seconds` is the time limit, if it was that."""

    collection: str
    sets: int
    threshold: float
    tool: str
    seconds: float | None = None
    runs: list[float] = field(default_factory=list)
    pairs: int | None = None
    checksum: str | None = None
    before_mb: float | None = None
    peak_mb: float | None = None
    counts: dict[str, int] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    failed: str | None = None

    @property
    def answered(self) -> bool:
        """Whether the tool came to an end."""
        return self.failed is None

    def times(self, ours: Row) -> str:
        """This time divided by that of likewise; more than that if the tool was stopped."""
        if self.seconds is None or ours.seconds is None or not ours.answered:
            return ""
        return f"{'' if self.answered else '>'}{self.seconds / ours.seconds:.2f}"


def zipf(count: int) -> Sets:
    """Random sets with near-duplicates among them; fewer sets are the first of more."""
    path = DATA / f"exact-zipf-{count}.jsonl"
    if not path.exists():
        _write(islice(_zipf(), count), path)
    return Sets("zipf", path, count)


def _zipf() -> Iterator[list[int]]:
    share = np.cumsum(1 / np.arange(1, UNIVERSE + 1))
    known: list[Integers] = []
    block = 0
    while True:
        chance = np.random.default_rng([0, block])
        drawn = np.searchsorted(share / share[-1], chance.random((BLOCK, DRAWS)), side="right")
        _, first = np.unique(drawn + UNIVERSE * np.arange(BLOCK)[:, None], return_index=True)
        first.sort()
        ends = np.searchsorted(first, DRAWS * np.arange(BLOCK + 1))
        sizes = np.maximum(chance.poisson(MEAN, BLOCK), 1)
        elements = drawn.ravel()[first].astype(np.int32)
        for row, size in enumerate(sizes.tolist()):
            tokens = elements[ends[row] : ends[row + 1]][:size]
            if chance.random() < COPIES and known:
                tokens = _near(known[int(chance.integers(len(known)))], tokens, chance)
            known.append(tokens)
            yield tokens.tolist()
        block += 1


def _near(original: Integers, others: Integers, chance: np.random.Generator) -> Integers:
    """A copy of a set in which up to a quarter of the elements are changed to others."""
    new = others[~np.isin(others, original)]
    changed = min(round(chance.uniform(0, MOST_CHANGED) * len(original)), len(new))
    copy = original.copy()
    copy[chance.choice(len(original), changed, replace=False)] = new[:changed]
    return copy


def retail(source: Path, count: int | None) -> Sets:
    """The baskets of a file, plain or compressed, one a line, items separated by blanks."""
    if not source.exists():
        raise Unavailable("no file of baskets; name one with --retail")
    with gzip.open(source, "rt") if source.suffix == ".gz" else source.open() as lines:
        baskets = [list(dict.fromkeys(line.split())) for line in lines if line.strip()][:count]
    if all(item.isdecimal() for basket in baskets for item in basket):
        _write(([int(item) for item in basket] for basket in baskets), OUT / "retail.jsonl")
    else:
        _write(baskets, OUT / "retail.jsonl")
    return Sets("retail", OUT / "retail.jsonl", len(baskets))


def names(source: Path | None, count: int) -> Sets:
    """The 3-grams of names; a shorter name is its own."""
    source = source or fetched_names()
    text = source.read_text()
    listed = (json.loads(text) if source.suffix == ".json" else text.split())[:count]
    _write((grams(name) for name in listed), OUT / "names.jsonl")
    return Sets("names", OUT / "names.jsonl", len(listed))


def grams(name: str) -> list[str]:
    """The different runs of three letters."""
    return list(dict.fromkeys(name[start : start + GRAM] for start in range(max(1, len(name) - GRAM + 1))))


def fetched_names() -> Path:
    """The names of all npm packages, fetched with npm on first use."""
    package, number = NAMES
    target = DATA / f"{package}-{number}.json"
    if not target.exists():
        if shutil.which("npm") is None:
            raise Unavailable("there is no npm to fetch the names with; name a file with --names")
        DATA.mkdir(parents=True, exist_ok=True)
        fetch = ["npm", "pack", "--silent", f"{package}@{number}"]
        result = subprocess.run(fetch, cwd=DATA, capture_output=True, text=True, check=False)
        archive = DATA / f"{package}-{number}.tgz"
        if result.returncode or not archive.exists():
            raise Unavailable(f"npm pack failed: {last_line(result.stderr)}")
        with tarfile.open(archive) as members:
            inside = members.extractfile("package/names.json")
            if inside is None:
                raise Unavailable("the npm package holds no names.json")
            target.write_bytes(inside.read())
        archive.unlink()
    return target


def _write(sets: Iterable[list[Any]], target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    with unfinished.open("w") as file:
        file.writelines(json.dumps(tokens, separators=(",", ":")) + "\n" for tokens in sets)
    unfinished.rename(target)


def join(tool: str, sets: Sets, threshold: float, options: list[str], timeout: float) -> dict[str, Any]:
    """What one run of a tool reports, in a fresh process that is ended after so many seconds."""
    script = HERE / "peers" / "exact_run.py"
    command = [python_of(tool), str(script), tool, str(sets.path), "--first", str(sets.count)]
    command += ["--threshold", str(threshold), *options]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    watch = MemoryWatch(process.pid)
    try:
        if process.stdout is not None:
            process.stdout.readline()  # the sets are in memory: now the time limit begins
        output, errors = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)  # with the processes it started
        process.communicate()
        raise
    finally:
        peak = watch.stop()
    if process.returncode:
        ended = f"ended by signal {-process.returncode}" if process.returncode < 0 else last_line(errors)
        raise Unavailable(ended)
    report: dict[str, Any] = json.loads(output.splitlines()[-1])
    if "peak_mb" in report:
        report["peak_mb"] = max(peak, report["peak_mb"])
    return report


def measure(
    name: str, tool: str, sets: Sets, threshold: float, options: list[str], timeout: float, repeats: int = REPEATS
) -> Row:
    """The best of some runs."""
    reports: list[dict[str, Any]] = []
    base = Row(sets.name, sets.count, threshold, name)
    try:
        while len(reports) < repeats and sum(report["seconds"] for report in reports) < PATIENCE:
            reports.append(join(tool, sets, threshold, options, timeout))
    except subprocess.TimeoutExpired:
        if not reports:
            return Row(**{**asdict(base), "seconds": timeout, "failed": f"more than {timeout:g} s"})
    except Unavailable as reason:
        return Row(**{**asdict(base), "failed": str(reason)})
    best = min(reports, key=lambda report: float(report["seconds"]))
    runs = [report["seconds"] for report in reports]
    peak = max(report["peak_mb"] for report in reports)
    return Row(**{**asdict(base), **best, "runs": runs, "peak_mb": peak})


def say(row: Row) -> Row:
    """Print a measurement as soon as it is there."""
    told = row.failed or f"{row.seconds:.3f} s, {row.pairs:,} pairs"
    console.print(f"  {row.collection} {row.sets:,} at {row.threshold:g}, {row.tool}: {told}")
    return row


def compared(sets: Sets, threshold: float, peers: list[str], asked: argparse.Namespace) -> list[Row]:
    """likewise and these peers on the same sets."""
    rows = [
        say(measure(name, "likewise", sets, threshold, options, asked.timeout, asked.repeats))
        for name, options in LIKEWISE.items()
    ]
    for name in peers:
        tool, options = PEERS[name]
        rows.append(say(measure(name, tool, sets, threshold, options, asked.timeout, asked.repeats)))
    return rows


def differences(rows: list[Row]) -> list[str]:
    """Which tools did not find the pairs that the first one with an answer found."""
    answers = [row for row in rows if row.answered]
    return [
        f"{row.collection} {row.sets:,} at {row.threshold:g}: {row.tool} found OTHER PAIRS ({row.pairs:,},"
        f" {row.checksum}) than {answers[0].tool} ({answers[0].pairs:,}, {answers[0].checksum})"
        for row in answers[1:]
        if (row.pairs, row.checksum) != (answers[0].pairs, answers[0].checksum)
    ]


def explained(sets: Sets, threshold: float, timeout: float) -> dict[str, Any]:
    """How many pairs each filter of the chapter leaves; not timed."""
    about = {"collection": sets.name, "sets": sets.count, "threshold": threshold}
    try:
        filters = join("likewise", sets, threshold, ["--explain"], timeout)["explain"]
    except subprocess.TimeoutExpired:
        return {**about, "failed": f"more than {timeout:g} s"}
    except Unavailable as reason:
        return {**about, "failed": str(reason)}
    return {**about, "filters": filters}


def ratios(groups: list[list[Row]]) -> list[dict[str, Any]]:
    """The best time of each peer, of all its ways, divided by that of likewise."""
    found = []
    for rows in groups:
        ours = next(row for row in rows if row.tool == OURS)
        for tool in TOOLS:
            ways = [row for row in rows if row.tool in PEERS and PEERS[row.tool][0] == tool and row.seconds is not None]
            if ways and ours.answered:
                best = min(ways, key=lambda row: (not row.answered, row.seconds))
                where = {"collection": ours.collection, "sets": ours.sets, "threshold": ours.threshold}
                ratio = float(best.seconds or 0) / float(ours.seconds or 1)
                found.append({**where, "peer": tool, "best": best.tool, "ratio": ratio, "stopped": not best.answered})
    return found


def show(groups: list[list[Row]]) -> None:
    """Print the times, and what likewise's filters let through."""
    table = Table("collection", "sets", "at", "tool", "seconds", "pairs", "MB before", "peak MB", "x likewise")
    for column in (*table.columns[1:3], *table.columns[4:]):
        column.justify = "right"
    for rows in groups:
        ours = next(row for row in rows if row.tool == OURS)
        for row in rows:
            where = (row.collection, f"{row.sets:,}", f"{row.threshold:g}") if row is rows[0] else ("", "", "")
            if row.answered:
                costs = f"{row.seconds:.3f}", f"{row.pairs:,}", f"{row.before_mb:,.0f}", f"{row.peak_mb:,.0f}"
            else:
                costs = str(row.failed), "", "", ""
            table.add_row(*where, row.tool, *costs, row.times(ours))
        table.add_section()
    console.print(table)
    counts = [row for rows in groups for row in rows if row.tool == OURS and row.answered]
    if counts:
        table = Table("collection", "at", *counts[0].counts, title="what likewise's filters let through")
        for column in table.columns[1:]:
            column.justify = "right"
        for row in counts:
            table.add_row(row.collection, f"{row.threshold:g}", *(f"{number:,}" for number in row.counts.values()))
        console.print(table)


def show_filters(explanations: list[dict[str, Any]]) -> None:
    """Print the pairs that each filter of the chapter leaves, and their share of all."""
    table = Table("collection", "sets", "at", "filter", "pairs", "share", title="exact.explain")
    for column in (*table.columns[1:3], *table.columns[4:]):
        column.justify = "right"
    for one in explanations:
        where = one["collection"], f"{one['sets']:,}", f"{one['threshold']:g}"
        if "failed" in one:
            table.add_row(*where, one["failed"], "", "")
        for place, line in enumerate(one.get("filters", [])):
            cells = line["filter"], f"{line['pairs']:,}", f"{line['share']:.2e}"
            table.add_row(*(("", "", "") if place else where), *cells)
        table.add_section()
    console.print(table)


def collections(asked: argparse.Namespace, times: int = 1) -> tuple[list[Sets], dict[str, str]]:
    """The collections asked for, zipf so many times as large, and why some are left out."""
    makers = {
        "zipf": lambda: zipf((asked.sets or 100_000) * times),
        "retail": lambda: retail(asked.retail, asked.sets),
        "names": lambda: names(asked.names, asked.sets or 1_000_000),
    }
    found, skipped = [], {}
    for name in asked.collections.split(","):
        if name not in makers:
            raise SystemExit(f"There is no collection {name!r}: choose of {', '.join(makers)}.")
        try:
            found.append(makers[name]())
        except Unavailable as reason:
            skipped[name] = str(reason)
            console.print(f"{name} is left out: {reason}")
    return found, skipped


def chosen_peers(asked: argparse.Namespace) -> tuple[list[str], dict[str, str]]:
    """The ways of the peers asked for, and why some are left out; their environments are made now."""
    words = [] if asked.peers == "none" else asked.peers.split(",")
    unknown = [word for word in words if word not in TOOLS]
    if unknown:
        raise SystemExit(f"There is no peer {unknown[0]!r}: choose of {', '.join(TOOLS)}, or none.")
    skipped = {}
    for tool in words:
        try:
            python_of(tool)
        except Unavailable as reason:
            skipped[tool] = str(reason)
            console.print(f"{tool} is left out: {reason}")
    return [name for name, (tool, _) in PEERS.items() if tool in words and tool not in skipped], skipped


def compare(asked: argparse.Namespace, thresholds: list[float]) -> bool:
    """Measure all, print the tables, write them as JSON; whether all found the same pairs."""
    peers, without = chosen_peers(asked)
    found, skipped = collections(asked)
    groups: list[list[Row]] = []
    explanations: list[dict[str, Any]] = []
    wrong: list[str] = []
    for sets in found:
        for threshold in thresholds:
            low = threshold < PEERS_FROM and not asked.patient
            plan = [(sets, [] if low else peers)]
            if low and sets.name == "zipf":
                part = Sets(sets.name, sets.path, min(asked.part, sets.count))
                plan = [(part, peers)] if part == sets else [(part, peers), *plan]
            for some, with_peers in plan:
                groups.append(compared(some, threshold, with_peers, asked))
                for sentence in differences(groups[-1]):
                    console.print(f"[bold red]{sentence}[/]")
                    wrong.append(sentence)
            if not asked.no_explain:
                explanations.append(explained(sets, threshold, asked.timeout))
            result = {"table": [asdict(row) for rows in groups for row in rows], "ratios": ratios(groups)}
            more = {"explain": explanations, "different_answers": wrong, "skipped": {**skipped, **without}}
            write(asked, {**result, **more})
    show(groups)
    if explanations:
        show_filters(explanations)
    for one in ratios(groups):
        where = f"{one['collection']} {one['sets']:,} at {one['threshold']:g}"
        times = f"{'more than ' if one['stopped'] else ''}{one['ratio']:.2f}"
        console.print(f"{where}: {one['peer']} takes {times} times as long as likewise (best: {one['best']})")
    if wrong:
        console.print("[bold red]NOT ALL TOOLS FOUND THE SAME PAIRS:[/]", *wrong, sep="\n")
    elif groups:
        console.print("all tools that came to an end found the same pairs")
    return not wrong


def grow(asked: argparse.Namespace, thresholds: list[float]) -> None:
    """likewise alone on more and more sets (not on retail, which has no more): an exponent of 1 is linear."""
    asked.collections = ",".join(name for name in asked.collections.split(",") if name != "retail")
    found, skipped = collections(asked, times=10)
    table = Table("collection", "at", "sets", "seconds", "exponent", "pairs", "exponent", "compared", "peak MB")
    for column in table.columns[1:]:
        column.justify = "right"
    rows: list[Row] = []
    for sets in found:
        for threshold in thresholds:
            before: Row | None = None
            for part in (100, 10, 1) if sets.name == "zipf" else (10, 1):
                some = Sets(sets.name, sets.path, sets.count // part)
                row = say(measure(OURS, "likewise", some, threshold, LIKEWISE[OURS], asked.timeout, asked.repeats))
                rows.append(row)
                where = row.collection, f"{row.threshold:g}", f"{row.sets:,}"
                if not row.answered:
                    table.add_row(*where, row.failed)
                    continue
                powers = ["", ""]
                if before is not None:
                    values = (before.seconds, row.seconds), (before.pairs, row.pairs)
                    ends = before.sets, row.sets
                    powers = [f"{exponent(ends, (a, b)):.2f}" if a and b else "" for a, b in values]
                before = row
                compared_pairs = f"{row.counts['compared']:,}"
                cells = f"{row.seconds:.3f}", powers[0], f"{row.pairs:,}", powers[1], compared_pairs
                table.add_row(*where, *cells, f"{row.peak_mb:,.0f}")
            write(asked, {"growth": [asdict(row) for row in rows], "skipped": skipped})
        table.add_section()
    console.print(table)


def write(asked: argparse.Namespace, results: dict[str, Any]) -> None:
    """Write what is known so far."""
    parameters = {
        "collections": asked.collections,
        "thresholds": asked.thresholds,
        "sets": asked.sets,
        "part": asked.part,
        "timeout": asked.timeout,
        "repeats": asked.repeats,
        "zipf": {"universe": UNIVERSE, "mean": MEAN, "copies": COPIES, "most_changed": MOST_CHANGED},
        "names": "@".join(NAMES) if asked.names is None else asked.names.name,
    }
    summary = {
        "machine": {"cores": os.cpu_count(), "architecture": platform.machine(), "python": platform.python_version()},
        "versions": {"likewise": version("likewise"), "peers": {tool: pinned(tool) for tool in TOOLS}},
        "parameters": parameters,
        **results,
    }
    target = asked.out or HERE / "results" / ("exact-growth.json" if asked.growth else "exact.json")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(summary, indent=2) + "\n")


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collections", default="zipf,retail,names", help="comma-separated (%(default)s)")
    parser.add_argument("--thresholds", default="0.9,0.8,0.5", help="comma-separated (%(default)s)")
    parser.add_argument("--peers", default=",".join(TOOLS), help="comma-separated, or none (%(default)s)")
    parser.add_argument("--sets", type=int, help="sets of each collection (zipf 100,000; names 1,000,000; retail all)")
    parser.add_argument("--part", type=int, default=20_000, help="sets of zipf for the peers below 0.8 (%(default)s)")
    parser.add_argument("--patient", action="store_true", help="peers below 0.8, too, on all sets of all collections")
    parser.add_argument("--retail", type=Path, default=RETAIL, help="a file of baskets, one a line, .gz or plain")
    parser.add_argument("--names", type=Path, help="a JSON list of names, or a text file of one a line")
    parser.add_argument("--timeout", type=float, default=1500.0, help="seconds for one measurement (%(default)s)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="most runs of a quick measurement (%(default)s)")
    parser.add_argument("--no-explain", action="store_true", help="leave out exact.explain")
    parser.add_argument("--growth", action="store_true", help="likewise alone: zipf from a tenth to ten times, names")
    parser.add_argument("--out", type=Path, help="default: exact.json or exact-growth.json in results/")
    return parser.parse_args()


def main() -> None:
    """Compare or grow."""
    asked = arguments()
    thresholds = [float(threshold) for threshold in asked.thresholds.split(",")]
    try:
        if asked.growth:
            grow(asked, thresholds)
        elif not compare(asked, thresholds):
            raise SystemExit(1)
    finally:
        shutil.rmtree(OUT, ignore_errors=True)


if __name__ == "__main__":
    main()
