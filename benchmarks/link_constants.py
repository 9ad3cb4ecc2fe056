"""Constants of `likewise link` that were chosen by looking at data: what would the other collections have chosen?

    python benchmarks/link_constants.py --data FOLDER
    python benchmarks/link_constants.py --data FOLDER --sets "abt-buy;names" --constants "mutual_best.*"

Every constant takes each of a few values while all others stay as they are. For each collection that is left out, the
value with the best mean over the other collections is chosen (of equally good ones, the one in use), and the F1 that
it gives on the one left out is what a choice without looking at it would have reached. The tasks of name joining are
one collection, with the mean F1: they are of one kind, and none may choose for another. Columns are paired by content
only where their names differ: of other collections, the columns of the second table are renamed.

"labels" are F1 after 30 answers (link_labels.py). Constants of the stated F1 are measured by their cost: the distance
of the stated F1 from the true one, and NOT_STATED where none is stated; for the width of its interval, the interval
score of nine in ten (width, and 20 times what the true F1 is outside).

What is measured is kept in .data/, by collection, constant, value and version of the code, so that a run can be
interrupted and continued. A collection is read and blocked once, and scored once for constants that only decide.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mean
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from corpus import DATA
from link_labels import Oracle
from link_scores import quality
from record_sets import MADE, Collection, answer, febrl, from_csv, made
from runs import HERE, Unavailable

NOT_STATED = 0.05
"""Cost of a run that states no F1: as much as a stated one that is this far from the true one."""

ANSWERS = 30
TWO = "abt-buy;dblp-acm;amazon-google;restaurants, truth completed;names/*;movies;febrl4"
FEW = "abt-buy;dblp-acm;restaurants, truth completed;names/*;people500;febrl1"
"""Collections in which labels are cheap to try."""

ONE = "people500;cora;febrl1;febrl2;febrl3;register;discs"
FILTERED = (
    "people500;febrl1;cora;patentees;schools;abt-buy;dblp-acm;amazon-google;restaurants, truth completed;register"
)
"""Collections of several columns that take seconds, for the filters of columns and placeholders."""

CACHE = DATA / "link-constants.json"
ROOM = "likewise.apps.link."
console = Console(highlight=False, width=170)


@dataclass(frozen=True)
class Constant:
    """A constant, where it is, the values tried, and the collections it acts on."""

    name: str
    values: tuple[Any, ...]
    sets: str
    depth: str = "scores"
    measure: str = "f1"

    @property
    def place(self) -> tuple[Any, str]:
        """The module that has it, and its name there."""
        module, name = self.name.split(".")
        return importlib.import_module(ROOM + module), name

    @property
    def used(self) -> Any:
        """The value in use."""
        return getattr(*self.place)


CONSTANTS = [
    Constant("mutual_best.WEIGHTS", ((), (5.0, 10.0, 20.0), (10.0, 20.0, 40.0), (20.0, 40.0, 80.0), (20.0,)), TWO),
    Constant("mutual_best.SURE", (0.0, 0.5, 1.0, 2.0, 3.0), TWO),
    Constant("mutual_best.CONTAINED", (0.0, 0.1, 0.25, 0.5), TWO),
    Constant("mutual_best.NUMBERS", (0.0, 0.15, 0.3, 0.5), TWO),
    Constant("decision.CLOSE", (1.0, 1.5, 2.0, 3.0, 4.0), TWO, "decision"),
    Constant("decision.MOSTLY", (0.0, 0.3, 0.5, 0.7, 1.01), TWO, "decision"),
    Constant("decision.TIED", (0.01, 0.05, 0.1, 0.3), TWO, "decision"),
    Constant("decision.RIVALS", (0.02, 0.05, 0.1, 0.2, 0.4), TWO, "decision"),
    Constant("decision.AMBIGUOUS", (0.0, 0.05, 0.1, 0.2, 1.0), TWO, "decision", "stated"),
    Constant("records.MOST_MISSING", (0.0, 0.05, 0.1, 0.2, 1.0), TWO, "decision", "stated"),
    Constant("mutual_best.ERROR", (0.005, 0.01, 0.02, 0.03, 0.05), TWO, "decision", "interval"),
    Constant("chance_model.USUAL", (0.0, 0.25, 0.5, 0.75, 1.0), ONE),
    Constant("chance_model.LEARNT", (100, 200, 400, 800, 1600), ONE),
    Constant("chance_model.TRUSTED", (5.0, 10.0, 20.0, 40.0), ONE),
    Constant("chance_model.TEXT_WORDS", (4, 8, 16, 10**9), ONE),
    Constant("chance_model.LEAST_RELATED", (0.0, 0.02, 0.05, 0.2, 10.0), ONE),
    Constant("columns.STRONG", (0.15, 0.2, 0.25, 0.3, 0.4), TWO, "records"),
    Constant("columns.STRONG_IF_FEW", (0.4, 0.6, 0.8), TWO, "records"),
    Constant("columns.WHOLE", (1.1, 1.2, 1.5), TWO, "records"),
    *(
        Constant(name, values, FILTERED, "tables")
        for name, values in {
            "repeated_fields.ALWAYS": (0.85, 0.9, 0.95, 0.99),
            "repeated_fields.BY_CHANCE": (0.25, 0.5, 0.75),
            "repeated_fields.SAME_SIZE": (0.2, 1 / 3, 0.5, 0.8),
            "uninformative_fields.SIGNIFICANT": (2.0, 2.5, 3.0, 4.0, 6.0),
            "uninformative_fields.LEAST": (15, 30, 60),
            "uninformative_fields.LEAST_FREQUENT": (5, 10, 20),
            "uninformative_fields.EMPTY": (0.02, 0.1, 0.2),
            "uninformative_fields.FREQUENT": (0.01, 0.05, 0.2),
            "uninformative_fields.BEST": (100, 200, 400),
            "uninformative_fields.SHARED_NAME": (0.0, 0.15, 0.3, 0.5),
            "uninformative_fields.SURE_NAME": (0.25, 0.5, 0.75),
            "uninformative_fields.VARIES": (0.4, 0.65, 0.8),
            "uninformative_fields.SPIKE": (0.01, 0.05, 0.2, 1.01),
            "uninformative_fields.HALF": (0.25, 0.5, 0.75),
        }.items()
    ),
    Constant("training.PULL", (1.0, 3.0, 10.0, 30.0), FEW, "decision", "labels"),
    Constant("training.EVERY", (2, 5, 10, 30), FEW, "decision", "labels"),
    Constant("labels.CURIOSITY", (0.0, 0.005, 0.02, 0.1), FEW, "decision", "labels"),
    Constant(
        "training.FIRST",
        ((0.9, 1.1), (0.2, 0.6, 0.9, 1.1, 1.5, 3.0), (0.5, 0.8, 1.0, 1.2, 1.5, 2.0), (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)),
        FEW, "decision", "labels",
    ),
]  # fmt: skip
"""`depth` is how far back a change reaches: the tables as they are, the records that are read of them with columns of
other names, their scores, or the decision alone."""


class AsBefore(Exception):
    """The fields and their values are those of an earlier run, whose measures are given."""


class Kept:
    """What was read, blocked and scored of the collection at hand, so that it is done once.

    Constants that decide which fields are compared, and which values are none, are judged by these: where they are as
    in an earlier run, that run is not repeated.
    """

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.depth = "records"
        self.fields = ""
        whole, scoring = importlib.import_module(ROOM + "link"), importlib.import_module(ROOM + "scoring")
        for module, name in ((whole, "records_of"), (whole, "block"), (scoring, "neighbours")):
            setattr(module, name, self._once(name, getattr(module, name)))
        whole.scored_candidates = self._scored(whole.scored_candidates)  # type: ignore[attr-defined]

    def _once(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*given: Any, **more: Any) -> Any:
            if self.depth in ("records", "tables"):
                made = function(*given, **more)
                if self.depth == "tables" and name == "records_of":
                    self.fields = repr([(one.name, one.kind, one.present) for one in made.fields])
                    if self.fields in self.held:
                        raise AsBefore(self.fields)
                return made
            if name not in self.held:
                self.held[name] = function(*given, **more)
            return self.held[name]

        return called

    def _scored(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def scored(task: Any, left: Any, right: Any, log: Any) -> Any:
            if self.depth != "decision" or "scores" not in self.held:
                found = function(task, left, right, log)
                if self.depth == "decision":
                    self.held["scores"] = found, log.method
                return found
            found, log.method = self.held["scores"]
            return found

        return scored


@contextmanager
def changed(constant: Constant, value: Any) -> Iterator[None]:
    """The constant with another value."""
    (module, name), before = constant.place, constant.used
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def tables_of(collection: Collection, depth: str) -> list[pa.Table]:
    """The tables; for the pairing of columns, those of the second have names that say nothing."""
    tables = collection.tables()
    if depth == "records" and len(tables) == 2 and set(tables[0].column_names) == set(tables[1].column_names):
        names = [name if name == "id" else f"column {place}" for place, name in enumerate(tables[1].column_names)]
        tables[1] = tables[1].rename_columns(names)
    return tables


def measured(collection: Collection, constant: Constant, value: Any, kept: Kept) -> dict[str, Any]:
    """Link a collection with a changed constant."""
    from likewise import link
    from likewise.errors import LikewiseError

    kept.depth = constant.depth
    truth = collection.truth()
    more: dict[str, Any] = (
        {"ask": Oracle(truth, collection.two), "questions": ANSWERS} if constant.measure == "labels" else {}
    )
    start = time.process_time()
    with changed(constant, value):
        try:
            found = link(*tables_of(collection, constant.depth), id="id", threads=1, **more)
        except AsBefore:
            return dict(kept.held[kept.fields])
        except LikewiseError as error:
            return {"f1": 0.0, "stated": None, "range": None, "seconds": 0.0, "error": str(error)}
    f1 = quality(answer(found.matches, found.clusters), truth)[2]
    details = found.stats["details"]
    told = {"stated": details.get("expected_f1"), "range": details.get("expected_f1_range")}
    row = {"f1": f1, **told, "seconds": time.process_time() - start}
    if constant.depth == "tables":
        kept.held[kept.fields] = row
    return row


def worth(row: dict[str, Any], measure: str) -> float:
    """What a run is worth: its F1, or less the more its statement costs."""
    if measure == "stated":
        return -NOT_STATED if row["stated"] is None else -abs(float(row["stated"]) - float(row["f1"]))
    if measure == "interval" and row["range"] is not None:
        low, high = map(float, row["range"])
        return -(high - low + 20 * max(low - float(row["f1"]), float(row["f1"]) - high, 0.0))
    return float(row["f1"]) if measure != "interval" else 0.0


def left_out(table: dict[str, dict[str, float]], used: str) -> dict[str, str]:
    """The value that the other collections choose for each; of equally good ones, the one in use if it is one."""
    chosen = {}
    for one in table:
        means = {value: mean(table[other][value] for other in table if other != one) for value in table[one]}
        best = max(means.values())
        among = [value for value, found in means.items() if found >= best - 1e-12]
        chosen[one] = used if used in among else among[0]
    return chosen


def summary(constant: Constant, rows: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any] | None:
    """What the choice of a constant is worth, by collection and left out; None where too few were measured."""
    values = [json.dumps(value) for value in constant.values]
    used = json.dumps(constant.used)
    by_set: dict[str, dict[str, float]] = {}
    for name, found in rows.items():
        if all(value in found for value in values):
            by_set[name] = {value: worth(found[value], constant.measure) for value in values}
    joins = [name for name in by_set if name.startswith("names/")]
    table = {name: found for name, found in by_set.items() if name not in joins}
    if joins:
        table["names"] = {value: mean(by_set[name][value] for name in joins) for value in values}
    if constant.measure == "interval":
        table = {name: found for name, found in table.items() if any(found.values())}
    if len(table) < 2 or used not in values:
        return None
    chosen = left_out(table, used)
    return {
        "constant": constant.name,
        "measure": constant.measure,
        "used": used,
        "values": values,
        "table": table,
        "chosen": chosen,
        "default": mean(found[used] for found in table.values()),
        "left_out": mean(table[name][value] for name, value in chosen.items()),
        "lowest": min(mean(found[value] for found in table.values()) for value in values),
        "highest": max(mean(found[value] for found in table.values()) for value in values),
        "reacting": sum(max(found.values()) - min(found.values()) > 5e-4 for found in table.values()),
    }


def show(found: list[dict[str, Any]]) -> None:
    """Print a table of the constants, and one of the collections that would have fared otherwise."""
    table = Table("constant", "measure", "in use", "others", "sets", "react", "default", "left out", "means of others")
    for row in found:
        others = ", ".join(value for value in row["values"] if value != row["used"])
        numbers = f"{row['default']:.4f}", f"{row['left_out']:.4f}", f"{row['lowest']:.4f} to {row['highest']:.4f}"
        counts = str(len(row["table"])), str(row["reacting"])
        table.add_row(row["constant"], row["measure"], row["used"], others, *counts, *numbers)
    console.print(table)
    each = Table("constant", "left out", "chosen by the others", "default", "left out", "range")
    for row in found:
        for name, value in row["chosen"].items():
            mine = row["table"][name]
            if value != row["used"] or max(mine.values()) - min(mine.values()) > 5e-3:
                ends = f"{min(mine.values()):.4f} to {max(mine.values()):.4f}"
                each.add_row(row["constant"], name, value, f"{mine[row['used']]:.4f}", f"{mine[value]:.4f}", ends)
    console.print(each)


def version_of() -> str:
    """A digest of the code of record linkage."""
    digest = hashlib.sha256()
    for file in sorted(Path(importlib.import_module("likewise.apps.link").__file__ or "").parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def main() -> None:
    """Measure what is not known yet, print the tables, write them as JSON beside constants that an earlier run has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of collections as CSV")
    parser.add_argument("--sets", default="*", help="collections by name, such as abt-buy;names/*")
    parser.add_argument("--constants", default="*", help="constants by name, such as decision.*;columns.STRONG")
    parser.add_argument("--known", action="store_true", help="measure nothing, show what is known")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "link-constants.json")
    asked = parser.parse_args()
    code = version_of()
    known: dict[str, Any] = json.loads(CACHE.read_text()) if CACHE.exists() else {}
    known = known if known.get("code") == code or asked.known else {"code": code, "rows": {}}
    rows: dict[str, dict[str, dict[str, Any]]] = known["rows"]
    chosen = [one for one in CONSTANTS if any(fnmatchcase(one.name, some) for some in asked.constants.split(";"))]
    if not asked.known:
        found = from_csv(asked.data) if asked.data else []
        try:
            found += febrl(install=False)
        except Unavailable as reason:
            console.print(f"FEBRL 1 to 4 are left out: {reason}")
        found += [made(name) for name in MADE]
        picked = [one for one in found if any(fnmatchcase(one.name, some) for some in asked.sets.split(";"))]
        kept = Kept()
        for collection in sorted(picked, key=lambda one: (one.name in ("movies", "discs"), one.records)):
            kept.held.clear()
            for constant in chosen:
                if not any(fnmatchcase(collection.name, some) for some in constant.sets.split(";")):
                    continue
                mine = rows.setdefault(constant.name, {}).setdefault(collection.name, {})
                for value in constant.values:
                    if json.dumps(value) not in mine:
                        mine[json.dumps(value)] = measured(collection, constant, value, kept)
                        CACHE.write_text(json.dumps(known))
                told = ", ".join(f"{value}: {row['f1']:.3f}" for value, row in mine.items())
                console.print(f"{collection.name}, {constant.name}: {told}")
    summaries = [one for one in (summary(constant, rows.get(constant.name, {})) for constant in CONSTANTS) if one]
    show(summaries)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(asked.out.read_text())["table"] if asked.out.exists() else []
    now = {one["constant"] for one in summaries}
    table = [one for one in before if one["constant"] not in now] + summaries
    asked.out.write_text(json.dumps({"answers": ANSWERS, "not_stated": NOT_STATED, "table": table}, indent=1) + "\n")


if __name__ == "__main__":
    main()
