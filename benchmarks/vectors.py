"""likewise's joins of vectors beside FAISS: from an array in memory to all pairs within a distance.

    python benchmarks/vectors.py                     everything
    python benchmarks/vectors.py --only angle        one part: angle, bits, mnist, million or growth
    python benchmarks/vectors.py --small             everything on a few thousand vectors, for a trial
    python benchmarks/vectors.py --constants         the costs of the kernels, for search/vectors/plan.py

angle: 100,000 unit vectors of 128 random components, one in twenty of them a neighbour of an earlier one at up to 30°;
all pairs within 10° and within 20°. million: ten times as many, which likewise maps from the file, with 2 GiB.
bits: a million codes of 64 and of 256 random bits, one in twenty a neighbour that differs in up to 12 bits; all pairs
that differ in at most 3 and at most 10. mnist: the 70,000 pictures of Fashion-MNIST by their L2 distance (Debian's
package, fetched with apt-get). growth: likewise alone, within 20°, from a tenth to ten times of the vectors of angle.

Every measurement is a fresh process; quick ones are repeated and the best counts. FAISS first tries its settings, in a
process of its own that is not counted, on 5,000 of the pairs that are to be found: of those that find 99 % of them the
one with the least time for the index and all searches together is taken. A search that would take longer than
--timeout is done for 10,000 of the vectors, and scaled up ("~").
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from corpus import DATA
from growth import exponent
from runs import HERE, Unavailable, last_line, pinned, python_of
from vector_data import Collection, Rows, distances, fashion, keys, planted, planted_bits
from vector_peers import Contender, Settings, peers_of_bits, peers_of_vectors

PARTS = ("angle", "bits", "mnist", "million", "growth")
ANGLES = 10.0, 20.0
BITS = 3.0, 10.0
WIDTHS = 64, 256
PIXELS = 300.0, 500.0, 800.0
RECALL = 0.99
ROOM = "2GiB"
REPEATS = 3
PATIENCE = 30.0
"""A measurement is not repeated once its runs have taken this many seconds."""
QUERIES = 10_000

console = Console(highlight=False, width=160)


@dataclass
class Row:
    """One measurement. `failed` says why there is no answer; then `seconds` is the time limit, if it was that."""

    part: str
    vectors: int
    dimensions: int
    measure: str
    within: float
    tool: str
    seconds: float | None = None
    runs: list[float] = field(default_factory=list)
    build: float | None = None
    scaled: bool = False
    settings: Settings | None = None
    pairs: int | None = None
    recall: float | None = None
    recall_near: float | None = None
    recall_sample: float | None = None
    precision: float | None = None
    peak_mb: float | None = None
    beyond_mb: float | None = None
    stats: dict[str, Any] = field(default_factory=dict)
    tried: list[Settings] = field(default_factory=list)
    failed: str | None = None

    def times(self, ours: Row) -> float | None:
        """This time divided by that of likewise."""
        if self.seconds is None or ours.seconds is None or ours.failed:
            return None
        return self.seconds / ours.seconds


class Bench:
    """What was asked for, and what is known so far."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.asked = asked
        self.folder: Path = asked.data
        self.scratch = self.folder / "out" / "vectors"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.results: dict[str, Any] = {}

    def process(self, tool: str, which: Collection, within: float, options: list[str], limit: float) -> list[Settings]:
        """What a fresh process of a tool prints; what it printed before, if it was ended after so many seconds."""
        script = HERE / "peers" / "faiss_run.py"
        command = [python_of(tool), str(script), tool, str(which.path), "--measure", which.measure]
        command += ["--within", str(within), "--patience", str(self.asked.timeout), *options]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        late = False
        try:
            if process.stdout is not None:
                process.stdout.readline()  # the vectors are in memory: now the time limit begins
            output, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(process.pid, signal.SIGKILL)
            output, errors = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        if process.returncode and not late:
            ended = f"ended by signal {-process.returncode}: " if process.returncode < 0 else ""
            raise Unavailable(ended + last_line(errors))
        return [json.loads(line) for line in output.splitlines() if line.startswith("{") and line.endswith("}")]

    def choose(self, one: Contender, which: Collection, within: float) -> list[Settings]:
        """The settings that were tried, the best first: quick ones that find enough, then those that find most."""
        options = ["--settings", json.dumps(one.tried), "--tune", str(which.truth_path), "--recall", str(RECALL)]
        lines = self.process("faiss", which, within, options, 4 * self.asked.timeout)
        enough = sorted((line for line in lines if line["recall"] >= RECALL), key=lambda line: _total(line))
        rest = sorted((line for line in lines if line["recall"] < RECALL), key=lambda line: -float(line["recall"]))
        return enough + rest

    def measure(self, one: Contender, part: str, which: Collection, within: float) -> tuple[Row, Rows | None]:
        """The best of some runs, and the pairs."""
        table = which.table
        row = Row(part, len(table), which.dimensions, which.measure, within, one.name)
        options = list(one.options)
        try:
            if one.tool == "faiss":
                row.tried = self.choose(one, which, within)
                if not row.tried:
                    raise subprocess.TimeoutExpired("faiss", self.asked.timeout)
                best = row.tried[0]
                row.settings = best["settings"]
                if _total(best) > self.asked.timeout:
                    options += ["--queries", str(QUERIES)]
                    row.recall = best["recall"]
            reports, found = self.repeated(one, which, within, options, row.settings)
            while row.settings and best["recall"] >= RECALL and "--queries" not in options:
                harder: Settings = {
                    name: 2 * row.settings[name] for name in ("efSearch", "nprobe") if name in row.settings
                }
                if not harder or found_of(which, within, found) >= RECALL:
                    break
                row.settings = {**row.settings, **harder}
                reports, found = self.repeated(one, which, within, options, row.settings)
        except subprocess.TimeoutExpired:
            row.seconds, row.failed = self.asked.timeout, f"more than {self.asked.timeout:g} s"
            return self.say(row), None
        except Unavailable as reason:
            row.failed = str(reason)
            return self.say(row), None
        best = min(reports, key=lambda report: float(report["seconds"]))
        row.seconds, row.build, row.pairs = best["seconds"], best["build"], best["pairs"]
        row.runs = [report["seconds"] for report in reports]
        row.peak_mb = max(report["peak_mb"] for report in reports)
        row.beyond_mb = max(report["beyond_mb"] for report in reports)
        row.scaled = bool(best["more"].pop("scaled", False))
        row.stats = best["more"]
        return self.say(row), found

    def repeated(
        self, one: Contender, which: Collection, within: float, options: list[str], settings: Settings | None
    ) -> tuple[list[Settings], Rows]:
        """What some runs report, and the pairs of the last."""
        target = self.scratch / "pairs.npz"
        options = [*options, "--out", str(target)]
        if settings:
            options += ["--settings", json.dumps([settings])]
        reports: list[Settings] = []
        while len(reports) < self.asked.repeats and sum(report["seconds"] for report in reports) < PATIENCE:
            answer = self.process(one.tool, which, within, options, self.asked.timeout)
            if not answer:
                raise subprocess.TimeoutExpired(one.tool, self.asked.timeout)
            reports += answer
        with np.load(target) as pairs:
            found = keys(pairs["left"], pairs["right"])
        target.unlink()
        return reports, found

    def say(self, row: Row) -> Row:
        """Print a measurement as soon as it is there."""
        told = row.failed or f"{row.seconds:.2f} s, {row.pairs:,} pairs{' (scaled up)' if row.scaled else ''}"
        console.print(f"  {row.part} {row.vectors:,} within {row.within:g}, {row.tool}: {told}")
        return row

    def compare(self, part: str, which: Collection, within: float, contenders: list[Contender]) -> list[Row]:
        """All contenders on the same vectors, and how well they did."""
        measured = [self.measure(one, part, which, within) for one in contenders]
        score(measured, which, within)
        return [row for row, _ in measured]

    def keep(self, part: str, rows: list[list[Row]], more: Settings | None = None) -> None:
        """Show a part and write it to the results, beside the parts of earlier runs."""
        target: Path = self.asked.out
        before = json.loads(target.read_text()) if target.exists() else {}
        self.results[part] = {
            "machine": {
                "cores": os.cpu_count(),
                "architecture": platform.machine(),
                "python": platform.python_version(),
            },
            "versions": {"likewise": version("likewise"), "peers": pinned("faiss")},
            "timeout": self.asked.timeout,
            "table": [asdict(row) for group in rows for row in group],
            **(more or {"ratios": ratios(rows)}),
        }
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps({**before, **self.results}, indent=2) + "\n")


def _total(line: Settings) -> float:
    return float(line["build"] + line["search"])


def found_of(which: Collection, within: float, found: Rows) -> float:
    """The share of the known pairs that were found."""
    truth = which.truth
    known = truth.keys[truth.distance <= within]
    return float(np.isin(known, found).mean()) if len(known) else 1.0


def score(measured: list[tuple[Row, Rows | None]], which: Collection, within: float) -> None:
    """Set recall and precision. Pairs that only some contender found count as known to all, if they are near."""
    truth, table = which.truth, which.table
    near = truth.distance <= within
    known, apart = truth.keys[near], truth.distance[near]
    true: list[Rows] = []
    for row, found in measured:
        if found is None:
            true.append(np.zeros(0, np.int64))
            continue
        distance = distances(table, which.measure, found >> 32, found & 0xFFFFFFFF)
        true.append(found[distance <= within])
        row.precision = len(true[-1]) / len(found) if len(found) else 1.0
    new = np.setdiff1d(np.concatenate([*true, np.zeros(0, np.int64)]), known)
    apart = np.concatenate([apart, distances(table, which.measure, new >> 32, new & 0xFFFFFFFF)])
    pool = np.concatenate([known, new])
    for (row, found), mine in zip(measured, true, strict=True):
        if found is None or row.scaled or not len(pool):
            continue
        hit = np.isin(pool, mine)
        row.recall = float(hit.mean())
        last = apart > 0.9 * within
        row.recall_near = float(hit[last].mean()) if last.any() else None
        if truth.sampled is not None:
            inside = np.isin(pool >> 32, truth.sampled) | np.isin(pool & 0xFFFFFFFF, truth.sampled)
            row.recall_sample = float(hit[inside].mean()) if inside.any() else None


def ratios(groups: list[list[Row]]) -> list[Settings]:
    """How many times as long as likewise each way of FAISS takes, on the same vectors in the same run."""
    told = []
    for rows in groups:
        ours = rows[0]
        for row in rows[1:]:
            if not row.tool.startswith("FAISS") or (times := row.times(ours)) is None:
                continue
            about = {"part": row.part, "vectors": row.vectors, "dimensions": row.dimensions, "within": row.within}
            enough = row.recall is not None and row.recall >= RECALL
            told.append(
                {
                    **about,
                    "peer": row.tool,
                    "ratio": times,
                    "stopped": row.failed is not None,
                    "scaled": row.scaled,
                    "recall_reached": enough,
                }
            )
    return told


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def show(groups: list[list[Row]]) -> None:
    """Print the table of a part."""
    names = ("vectors", "within", "way", "seconds", "x likewise", "recall", "near", "precision")
    table = Table(*names, "pairs", "peak MB", "beyond", "settings")
    for column in (*table.columns[:2], *table.columns[3:11]):
        column.justify = "right"
    for rows in groups:
        for row in rows:
            times = row.times(rows[0])
            sign = ">" if row.failed else "~" if row.scaled else ""
            seconds = "" if row.seconds is None else f"{sign}{row.seconds:,.2f}"
            settings = {name: value for name, value in (row.settings or {}).items() if name != "index"}
            told = ", ".join(f"{name} {value}" for name, value in settings.items())
            method = row.stats.get("method", {})
            told = told or str(method.get("plan", method.get("chosen", ""))) or (row.failed or "")
            table.add_row(
                f"{row.vectors:,} × {row.dimensions}",
                f"{row.within:g}",
                row.tool,
                seconds,
                "" if times is None else f"{sign}{times:.2f}",
                *(_share(value) for value in (row.recall, row.recall_near, row.precision)),
                "" if row.pairs is None else f"{row.pairs:,}",
                "" if row.peak_mb is None else f"{row.peak_mb:,.0f}",
                "" if row.beyond_mb is None else f"{row.beyond_mb:,.0f}",
                told,
            )
        table.add_section()
    console.print(table)


OURS = Contender("likewise")
EXACT = Contender("likewise, exact", ["--method", "exact"])
MAPPED = Contender("likewise, mapped", ["--mapped", "--memory", ROOM])


def angle(bench: Bench) -> None:
    """Unit vectors within an angle."""
    n = bench.asked.n
    which = planted(n, max(ANGLES), bench.folder)
    contenders = [OURS, EXACT, *peers_of_vectors(n, neighbours=True)]
    finish(bench, "angle", [(which, within, contenders) for within in ANGLES])


def million(bench: Bench) -> None:
    """Ten times as many, in bounded memory."""
    n = bench.asked.many
    which = planted(n, max(ANGLES), bench.folder)
    contenders = [MAPPED, OURS, *peers_of_vectors(n, neighbours=False)]
    finish(bench, "million", [(which, within, contenders) for within in ANGLES])


def bits(bench: Bench) -> None:
    """Codes within a Hamming distance."""
    n = bench.asked.many
    work = []
    for width in WIDTHS:
        which = planted_bits(n, width, max(BITS), bench.folder)
        work += [(which, within, [OURS, *peers_of_bits(n, width, within)]) for within in BITS]
    finish(bench, "bits", work)


def mnist(bench: Bench) -> None:
    """Pictures that are nearly the same."""
    try:
        which = fashion(bench.asked.pictures, max(PIXELS), bench.folder)
    except Unavailable as reason:
        console.print(f"mnist is left out: {reason}")
        return
    contenders = [OURS, EXACT, *peers_of_vectors(len(which.table), neighbours=False)]
    finish(bench, "mnist", [(which, within, contenders) for within in PIXELS])


def finish(bench: Bench, part: str, work: list[tuple[Collection, float, list[Contender]]]) -> None:
    """Measure a part; what is known is written after each distance."""
    groups: list[list[Row]] = []
    for which, within, contenders in work:
        groups.append(bench.compare(part, which, within, contenders))
        bench.keep(part, groups)
    show(groups)
    for one in ratios(groups):
        where = f"{one['vectors']:,} × {one['dimensions']} within {one['within']:g}"
        times = f"{'more than ' if one['stopped'] else 'about ' if one['scaled'] else ''}{one['ratio']:.1f}"
        short = "" if one["recall_reached"] or one["stopped"] else f" and does not find {RECALL:.0%}"
        console.print(f"{where}: {one['peer']} takes {times} times as long as likewise{short}")


def growth(bench: Bench) -> None:
    """likewise alone on more and more vectors, mapped from the file, in the same bounded memory."""
    groups: list[list[Row]] = []
    powers: list[Settings] = []
    for n in (bench.asked.n // 10, bench.asked.n, bench.asked.many):
        which = planted(n, max(ANGLES), bench.folder)
        groups.append(bench.compare("growth", which, max(ANGLES), [MAPPED]))
        if len(groups) > 1:
            before, row = groups[-2][0], groups[-1][0]
            ends = before.vectors, row.vectors
            one: Settings = {"from": ends[0], "to": ends[1]}
            for name in ("seconds", "peak_mb", "beyond_mb"):
                low, high = getattr(before, name), getattr(row, name)
                one[name] = exponent(ends, (low, high)) if low and high else None
            powers.append(one)
        bench.keep("growth", groups, {"exponents": powers})
    show(groups)
    for one in powers:
        told = ", ".join(f"{name} {one[name]:.2f}" for name in ("seconds", "peak_mb", "beyond_mb") if one[name])
        console.print(f"from {one['from']:,} to {one['to']:,} vectors they grow with the power: {told}")


def arguments() -> argparse.Namespace:
    """What the user asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; may be given several times")
    parser.add_argument("--n", type=int, help="vectors of angle (100,000); bits and million have ten times as many")
    parser.add_argument("--small", action="store_true", help="a trial on a few thousand vectors")
    parser.add_argument("--growth", action="store_true", help="the same as --only growth")
    parser.add_argument(
        "--constants", action="store_true", help="measure the costs in search/vectors/plan.py, and nothing else"
    )
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one measurement (%(default)s)")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="most runs of a quick measurement (%(default)s)")
    parser.add_argument("--data", type=Path, default=DATA, help="where vectors and pictures are kept (%(default)s)")
    parser.add_argument("--out", type=Path, help="default: vectors.json in results/, for a trial beside the data")
    asked = parser.parse_args()
    trial = asked.small or asked.n is not None
    asked.n = asked.n or (5000 if asked.small else 100_000)
    asked.many = 2 * asked.n if asked.small else 10 * asked.n
    asked.pictures = asked.n if asked.small else None
    asked.data.mkdir(parents=True, exist_ok=True)
    asked.out = asked.out or (asked.data / "vectors-trial.json" if trial else HERE / "results" / "vectors.json")
    return asked


def main() -> None:
    """Run the parts asked for."""
    asked = arguments()
    if asked.constants:
        from vector_costs import show_costs

        show_costs()
        return
    try:
        python_of("faiss")
    except Unavailable as reason:
        raise SystemExit(f"FAISS cannot be had: {reason}") from None
    bench = Bench(asked)
    work: dict[str, Callable[[Bench], None]] = {
        "angle": angle, "bits": bits, "mnist": mnist, "million": million, "growth": growth
    }  # fmt: skip
    parts = (asked.only or []) + (["growth"] if asked.growth else [])
    try:
        for part in parts or PARTS:
            console.print(f"[bold]{part}[/]")
            work[part](bench)
    finally:
        shutil.rmtree(bench.scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
