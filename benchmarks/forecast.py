"""How good is the forecast? `likewise plan` beside the run it predicts, on planted corpora and on others.

    python benchmarks/forecast.py                             10^5 to 10^7 documents, environment-500, 10^5 of templates
    python benchmarks/forecast.py --sizes 100000 --others ""              one size only
    python benchmarks/forecast.py --memory 4GiB --repeat 3                within a budget, the best of three runs
    python benchmarks/forecast.py --constants                             the constants of jobs/plan/model.py, measured

Every run is the whole command in a fresh process. The forecast is made for a machine that has nothing else to do: the
CPU seconds of the run are given, too, and the load of the machine when it began. A ratio is forecast / truth.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from corpus import DATA, environment
from hostile import KINDS
from hostile import corpus as hostile
from planted import planted
from runs import HERE, Unavailable
from scale import LIKEWISE
from watch import Cost, watched

OUT = DATA / "out" / "forecast"
WITHIN = 1.5
console = Console(highlight=False, width=150)


@dataclass(frozen=True)
class Comparison:
    """What was predicted for a corpus, and what happened."""

    corpus: str
    options: list[str]
    load: float
    plan_seconds: float
    forecast: dict[str, Any]
    cost: Cost
    cpu: float
    run: dict[str, Any]

    @property
    def stages(self) -> dict[str, tuple[float, float]]:
        """Seconds of every stage, predicted and true; `start` and `rest` together are what is outside of the stages."""
        said, true = self.forecast["seconds"], self.run["seconds"]
        pairs = {stage: (said.get(stage, 0.0), seconds) for stage, seconds in true.items()}
        outside = sum(seconds for stage, seconds in said.items() if stage not in true)
        return {**pairs, "start, rest": (outside, self.cost.seconds - sum(true.values()))}

    @property
    def totals(self) -> dict[str, tuple[float, float]]:
        """Seconds, memory and disk (in MB), predicted and true."""
        said = self.forecast
        return {
            "seconds": (said["total_seconds"], self.cost.seconds),
            "CPU seconds": (said["cpu_seconds"], self.cpu),
            "memory MB": (said["memory_bytes"] / 1e6, self.cost.peak_mb),
            "disk MB": (said["disk_bytes"] / 1e6, self.cost.disk_mb),
            "answer MB": (said["answer_bytes"] / 1e6, self.cost.left_mb),
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        counts = {
            name: self.run["counts"].get(name) for name in ("items", "different", "removed", "candidates", "pairs")
        }
        return {
            "corpus": self.corpus,
            "options": self.options,
            "load": self.load,
            "plan_seconds": self.plan_seconds,
            "cpu_seconds": self.cpu,
            "totals": {name: _told(*both) for name, both in self.totals.items()},
            "stages": {name: _told(*both) for name, both in self.stages.items()},
            "counts": counts,
            "method": self.run["method"],
            "banding": self.run["details"].get("banding"),
            "forecast": self.forecast,
        }


def _told(said: float, true: float) -> dict[str, float | None]:
    return {"forecast": round(said, 3), "truth": round(true, 3), "ratio": round(said / true, 3) if true else None}


def compare(corpus: Path, options: list[str], repeat: int) -> Comparison:
    """Plan, then run, so many times; the quickest run counts."""
    best: Comparison | None = None
    for _ in range(repeat):
        load = os.getloadavg()[0]
        planning, printed = watched([*LIKEWISE, "plan", str(corpus), "--id", "id", "--json", *options], OUT)
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        cost, _ = watched([*LIKEWISE, "dedup", str(corpus), "--id", "id", "--out", str(OUT), *options], OUT)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        run = json.loads((OUT / "run.json").read_text())
        shutil.rmtree(OUT)
        one = Comparison(corpus.stem, options, load, planning.seconds, json.loads(printed), cost, cpu, run)
        if best is None or cost.seconds < best.cost.seconds:
            best = one
    assert best is not None
    return best


def show(comparison: Comparison) -> None:
    """Print one comparison."""
    table = Table(comparison.corpus, "forecast", "truth", "ratio")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, (said, true) in (*comparison.stages.items(), *comparison.totals.items()):
        total = name in comparison.totals
        ratio = said / true if true else 0.0
        style = "" if not total else "green" if 1 / WITHIN <= ratio <= WITHIN else "red"
        digits = 0 if name.endswith("MB") else 2
        table.add_row(name, f"{said:,.{digits}f}", f"{true:,.{digits}f}", f"{ratio:.2f}" if true else "", style=style)
    console.print(table)
    plan, run = comparison.forecast, comparison.run
    console.print(
        f"planned in {comparison.plan_seconds:.1f} s; load {comparison.load:.1f};"
        f" {plan['method']['taken']}, {_bands(plan['banding'])},"
        f" in the run {run['method']['taken']}, {_bands(run['details'].get('banding'))};"
        f" removed {plan['removed']:,}, in the run {run['counts']['removed']:,}"
    )


def _bands(banding: dict[str, int] | None) -> str:
    return "no bands" if banding is None else f"{banding['bands']} bands of {banding['rows']} rows"


def constants(sizes: list[int]) -> None:
    """Print what the constants of memory and disk would have to be to give what runs of these sizes took."""
    from likewise.jobs.plan import model

    rows = []
    for documents in sizes:
        one = compare(planted(documents)[0], [], 1)
        counts, said = one.run["counts"], one.forecast
        text = counts["bytes"]
        rows.append((documents, text, one.cost.peak_mb * 1e6, said["memory_bytes"], one.cost.left_mb * 1e6))
    (n, text, peak, _, left), (more, larger, higher, _, rest) = rows[0], rows[-1]
    each = (higher - peak - model.TEXT * (larger - text)) / (more - n)
    console.print(f"memory for a document besides its text: {each:.0f} bytes (EACH {model.EACH:g}, keys, sets, ids)")
    console.print(f"memory before the first document: {(peak - model.TEXT * text - each * n) / 1e6:.0f} MB")
    console.print(f"answer: {(rest - left) / (more - n):.0f} bytes a document")


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """What the user asks for, and what likewise shall be told."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100000,1000000,10000000", help="planted corpora (%(default)s)")
    parser.add_argument("--others", default="environment-500,newsgroups", help="files of .data (%(default)s)")
    parser.add_argument("--templates", default="100000", help="sizes of corpora of each hostile template (%(default)s)")
    parser.add_argument("--repeat", type=int, default=1, help="take the quickest of so many runs")
    parser.add_argument("--constants", action="store_true", help="measure constants of the model")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "forecast.json")
    return parser.parse_known_args()


def main() -> None:
    """Compare for each corpus, print, write as JSON."""
    asked, options = arguments()
    sizes = [int(size) for size in asked.sizes.split(",") if size]
    watched([*LIKEWISE, "warmup"], OUT)
    if asked.constants:
        constants(sizes[:2])
        return
    corpora: list[tuple[Path, tuple[str, ...]]] = [(planted(documents)[0], ()) for documents in sizes]
    for name in filter(None, asked.others.split(",")):
        path = DATA / f"{name}.parquet"
        corpora.append((path if path.exists() else environment(500), ()))
    for size in filter(None, asked.templates.split(",")):
        corpora += [(hostile(name, int(size)), KINDS[name].options) for name in KINDS if "template" in name]
    for corpus, own in corpora:
        try:
            comparison = compare(corpus, [*own, *options], asked.repeat)
        except Unavailable as reason:
            raise SystemExit(f"{corpus.name}: {reason}") from None
        show(comparison)
        keep(comparison.to_dict(), asked.out)


def keep(comparison: dict[str, Any], path: Path) -> None:
    """Write a comparison to the results; of those of the same corpus with the same options the quickest run stays."""
    known = json.loads(path.read_text())["comparisons"] if path.exists() else []
    same = [one for one in known if (one["corpus"], one["options"]) == (comparison["corpus"], comparison["options"])]
    others = [one for one in known if one not in same]
    comparison = min([*same, comparison], key=lambda one: float(one["totals"]["seconds"]["truth"]))
    machine = {"cores": os.cpu_count(), "architecture": platform.machine()}
    content = {"machine": machine, "likewise": version("likewise"), "comparisons": [*others, comparison]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
