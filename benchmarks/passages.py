"""Passages: short answers classified by containment, and planted passages found among many sources.

python benchmarks/passages.py answers --data short-answers.csv      columns id, task, category, text (orig: the source)
python benchmarks/passages.py scale --sources 100000 --suspects 1000 [--memory 1GiB]
python benchmarks/passages.py growth --sources 100000 --suspects 1000     the same at a tenth, and at all
python benchmarks/passages.py structured                                  records of a few kinds: all texts share words
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise.apps.passages import passages
from likewise.base.memory import peak_memory

GRID = [f"words:{k}" for k in range(1, 6)] + [f"chars:{k},whitespace=remove,casefold=true" for k in range(5, 13)]
FOLDS, SEEDS = 10, 20
VOCABULARY, PHRASES = 50_000, 5000
WORDS_A_SOURCE = 300
SIDES = ("suspect", "source")
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def best_threshold(scores: Floats, copied: Flags) -> float:
    """The threshold with the fewest errors; of several, the one in the widest gap."""
    values = np.unique(scores)
    middles, gaps = (values[1:] + values[:-1]) / 2, np.diff(values)
    right = ((scores >= middles[:, None]) == copied).sum(axis=1)
    among = np.flatnonzero(right == right.max())
    return float(middles[among[np.argmax(gaps[among])]])


def folds(copied: Flags, seed: int) -> NDArray[np.int64]:
    """Put the documents in ten folds at random, each with its share of copied ones."""
    rng = np.random.default_rng(seed)
    fold = np.empty(len(copied), np.int64)
    for kind in (False, True):
        rows = np.flatnonzero(copied == kind)
        fold[rng.permutation(rows)] = np.arange(len(rows)) % FOLDS
    return fold


def cross_validated(scores: Floats, copied: Flags, fold: NDArray[np.int64]) -> float:
    """Accuracy on each fold with the threshold that the others choose."""
    right = 0
    for number in range(FOLDS):
        inside = fold == number
        threshold = best_threshold(scores[~inside], copied[~inside])
        right += int(((scores[inside] >= threshold) == copied[inside]).sum())
    return right / len(copied)


def nested(grid: dict[str, Floats], copied: Flags, seed: int) -> float:
    """Accuracy on each fold when the others choose the shingles, too, by a cross-validation of their own."""
    fold, right = folds(copied, seed), 0
    for number in range(FOLDS):
        inside = fold == number
        inner = folds(copied[~inside], seed + 1)
        name = max(grid, key=lambda one: cross_validated(grid[one][~inside], copied[~inside], inner))
        threshold = best_threshold(grid[name][~inside], copied[~inside])
        right += int(((grid[name][inside] >= threshold) == copied[inside]).sum())
    return right / len(copied)


def answers(path: str, show: int) -> dict[str, Any]:
    """Tell copied answers from others by their containment in the source of their task."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sources = {row["task"]: row for row in rows if row["category"] == "orig"}
    given = [row for row in rows if row["category"] != "orig"]
    copied = np.array([row["category"] != "non" for row in given])
    left = pa.table({name: [row[name] for row in given] for name in ("id", "text")})
    right = pa.table({name: [row[name] for row in sources.values()] for name in ("id", "text")})
    grid: dict[str, Floats] = {}
    for shingle in GRID:
        found = passages(left, right, id="id", every=True, shingle=shingle)
        known = {(row["suspect"], row["source"]): row["containment"] for row in found.documents.to_pylist()}
        grid[shingle] = np.array([known[row["id"], sources[row["task"]]["id"]] for row in given])
    table = {}
    for name, scores in grid.items():
        each = [cross_validated(scores, copied, folds(copied, seed)) for seed in range(SEEDS)]
        table[name] = [round(float(np.mean(each)), 4), min(each), max(each), best_threshold(scores, copied)]
        print(f"{name:<42} accuracy {np.mean(each):.4f} ({min(each):.4f} to {max(each):.4f}), at {table[name][3]:.3f}")
    honest = [nested(grid, copied, seed) for seed in range(5)]
    print(f"shingles chosen within each fold: {np.mean(honest):.4f} ({min(honest):.4f} to {max(honest):.4f})")
    found = passages(left, right, id="id")
    shared = found.passages.to_pylist()
    for kind in ("cut", "light", "heavy"):
        names = [row["id"] for row in given if row["category"] == kind][:show]
        for row in (row for row in shared if row["suspect"] in names):
            print(f"\n{kind} {row['suspect']} {row['suspect_start']}-{row['suspect_end']}: {flat(row['suspect_text'])}")
            print(f"{row['source']} {row['source_start']}-{row['source_end']}: {flat(row['source_text'])}")
    return {"accuracy": table, "nested": honest}


def flat(text: str) -> str:
    """Put a text on one line, and not a long one."""
    line = " ".join(text.split())
    return line if len(line) <= 160 else f"{line[:78]} … {line[-78:]}"


class Words:
    """Words drawn as in natural text: the r-th most frequent with probability about 1/r; stock phrases among them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        letters = random.Random(seed)
        syllables = [a + b for a in "bcdfghjklmnprstvw" for b in "aeiou"]
        made = dict.fromkeys("".join(letters.choices(syllables, k=1 + i % 4)) for i in range(4 * VOCABULARY))
        self.words = list(made)[:VOCABULARY]
        self.steps = self._steps(VOCABULARY)
        self.phrases = [self._draw(self.steps, 5 + i % 3) for i in range(PHRASES)]
        self.phrase_steps = self._steps(PHRASES)

    @staticmethod
    def _steps(count: int) -> Floats:
        weights: Floats = np.cumsum(1 / np.arange(1, count + 1))
        weights /= weights[-1]
        return weights

    def _draw(self, steps: Floats, count: int) -> NDArray[np.int64]:
        return np.searchsorted(steps, self.rng.random(count)).astype(np.int64)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Draw words by number; in each forty or so there is a stock phrase of five to seven."""
        drawn = self._draw(self.steps, count)
        for start in range(10, count - 40, 40):
            phrase = self.phrases[self._draw(self.phrase_steps, 1)[0]]
            drawn[start : start + len(phrase)] = phrase
        return drawn

    def text(self, numbers: NDArray[np.int64]) -> str:
        """Write words."""
        return " ".join(self.words[i] if i >= 0 else f"new{-i}" for i in numbers.tolist())


def make(folder: Path, sources: int, suspects: int, seed: int = 1) -> None:
    """Write sources, and suspects with two passages of 30 words each, one of them with every ninth word changed."""
    words, rng = Words(seed), random.Random(seed)
    wanted = sorted(rng.choices(range(sources), k=2 * suspects))
    copies: dict[int, NDArray[np.int64]] = {}
    places: list[int] = []
    schema = pa.schema({"text": pa.string()})
    with pq.ParquetWriter(folder / "sources.parquet", schema) as out:
        for first in range(0, sources, 10_000):
            texts = []
            for number in range(first, min(first + 10_000, sources)):
                drawn = words.draw(rng.randrange(WORDS_A_SOURCE // 2, WORDS_A_SOURCE * 3 // 2))
                texts.append(words.text(drawn))
                while len(places) < len(wanted) and wanted[len(places)] == number:
                    at = rng.randrange(len(drawn) - 30)
                    copies[len(places)] = drawn[at : at + 30].copy()
                    places.append(number)
            out.write_table(pa.table({"text": texts}, schema))
    order = list(range(len(places)))
    rng.shuffle(order)
    texts, truth = [], []
    for suspect in range(suspects):
        text = words.text(words.draw(rng.randrange(50, 150)))
        for passage, changed in zip(order[2 * suspect : 2 * suspect + 2], (False, True), strict=True):
            copied = copies[passage]
            if changed:
                copied[8::9] = -1 - np.arange(len(copied[8::9]))
            start = len(text) + 1
            text += " " + words.text(copied)
            truth.append([suspect, places[passage], start, len(text), changed])
            text += " " + words.text(words.draw(rng.randrange(50, 150)))
        texts.append(text)
    pq.write_table(pa.table({"text": texts}, schema), folder / "suspects.parquet")
    (folder / "truth.json").write_text(json.dumps(truth))


def scale(sources: int, suspects: int, memory: str | None, threads: int | None) -> dict[str, Any]:
    """Find planted passages among many sources; report time, memory, and how many came back."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        making = ["make", "--folder", name, "--sources", str(sources), "--suspects", str(suspects)]
        subprocess.run([sys.executable, __file__, *making], check=True)
        truth = json.loads((folder / "truth.json").read_text())
        passages(["a b c d e f g h i"], ["a b c d e f g h i"], threads=threads)
        before = peak_memory() or 0
        begun = time.perf_counter()
        found = passages(folder / "suspects.parquet", folder / "sources.parquet", memory=memory, threads=threads)
        seconds = time.perf_counter() - begun
    there: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for row in found.passages.to_pylist():
        there.setdefault((row["suspect"], row["source"]), []).append((row["suspect_start"], row["suspect_end"]))
    back = {False: [0, 0, 0], True: [0, 0, 0]}
    for suspect, source, start, end, changed in truth:
        spans = there.get((suspect, source), [])
        back[changed][0] += any(low <= start and end <= high for low, high in spans)
        back[changed][1] += (start, end) in spans
        back[changed][2] += 1
    counts = found.stats["counts"]
    told = {
        "sources": sources,
        "suspects": suspects,
        "megabytes": round(counts["bytes"] / 1e6),
        "seconds": round(seconds, 2),
        "stages": found.stats["seconds"],
        "blocks": counts["blocks"],
        "compared": counts["compared"],
        "common": found.stats["details"].get("common"),
        "passages": len(found.passages),
        "recall": back[False][0] / back[False][2],
        "recall_changed": back[True][0] / back[True][2],
        "exact_places": (back[False][1] + back[True][1]) / len(truth),
        "peak_megabytes_before": round(before / 1e6),
        "peak_megabytes": round((peak_memory() or 0) / 1e6),
    }
    print(json.dumps(told))
    return told


def structured(sources: int, suspects: int, memory: str | None, threads: int | None) -> dict[str, Any]:
    """Find passages of three records among thousands of files of records, all of which have the same words."""
    draw = random.Random(3)
    names, goods, towns = (
        [f"{word}{i}" for i in range(n)] for word, n in (("name", 2000), ("goods", 500), ("town", 300))
    )

    def record() -> str:
        lines = [
            {"goods": draw.choice(goods), "quantity": draw.randrange(1, 20), "price": draw.randrange(1, 1000)}
            for _ in range(draw.randrange(1, 5))
        ]
        customer = {"name": f"{draw.choice(names)} {draw.choice(names)}", "town": draw.choice(towns)}
        status = draw.choice(["open", "closed", "shipped", "cancelled"])
        written = {"id": draw.randrange(10**6), "customer": customer, "status": status, "lines": lines, "paid": "yes"}
        return json.dumps(written, indent=1)

    def records(size: int) -> list[str]:
        made, written = [], 0
        while written < size:
            made.append(record())
            written += len(made[-1])
        return made

    theirs = [records(56_000) for _ in range(sources)]
    ours, truth = [], []
    for suspect in range(suspects):
        some = records(85_000)
        for place in draw.sample(range(len(some)), 5):
            source = draw.randrange(sources)
            first = draw.randrange(len(theirs[source]) - 3)
            some[place] = "\n".join(theirs[source][first : first + 3])
            truth.append((suspect, source))
        ours.append("\n".join(some))
    there = ["\n".join(some) for some in theirs]
    passages(ours[:1], there[:1], threads=threads)  # nothing is compiled in the other run
    begun, spent = time.perf_counter(), time.process_time()
    found = passages(ours, there, memory=memory, threads=threads)
    told = {
        "suspects": suspects,
        "sources": sources,
        "megabytes": round(found.stats["counts"]["bytes"] / 1e6),
        "seconds": round(time.perf_counter() - begun, 2),
        "cpu_seconds": round(time.process_time() - spent, 2),
        "compared": found.stats["counts"]["compared"],
        "passages": len(found.passages),
        "copied_pairs_found": len(
            set(truth) & set(zip(*(found.passages[side].to_pylist() for side in SIDES), strict=True))
        ),
        "copied_pairs": len(set(truth)),
        "peak_megabytes": round((peak_memory() or 0) / 1e6),
    }
    print(json.dumps(told))
    return told


def growth(sources: int, suspects: int, memory: str | None, threads: int | None) -> list[dict[str, Any]]:
    """Do the same at a tenth and at the whole, each in a process of its own; print how time and memory grow."""
    told = []
    for part in (10, 1):
        command = [sys.executable, __file__, "scale", "--sources", str(sources // part), "--suspects", str(suspects)]
        command += ["--memory", memory] if memory else []
        command += ["--threads", str(threads)] if threads else []
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        told.append(json.loads(lines[-1]))
        print(lines[-1])
    small, large = told
    print(f"ten times the sources: {large['seconds'] / small['seconds']:.1f} times the seconds")
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["answers", "make", "scale", "growth", "structured"])
    parser.add_argument("--data", help="short-answers.csv")
    parser.add_argument("--show", type=int, default=1, help="answers of each kind whose passages are printed")
    parser.add_argument("--sources", type=int, help="100,000; 2,000 of structured text")
    parser.add_argument("--suspects", type=int, help="1,000; 20 of structured text")
    parser.add_argument("--folder", type=Path, help="where `make` writes its files")
    parser.add_argument("--memory")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", help="write the numbers as JSON to this file")
    asked = parser.parse_args()
    told: Any = None
    few = asked.what == "structured"
    sources, suspects = asked.sources or (2000 if few else 100_000), asked.suspects or (20 if few else 1000)
    if asked.what == "answers":
        if not asked.data:
            parser.error("--data names the file of short answers")
        told = answers(asked.data, asked.show)
    elif asked.what == "make":
        make(asked.folder, sources, suspects)
    elif asked.what == "scale":
        told = scale(sources, suspects, asked.memory, asked.threads)
    elif few:
        told = structured(sources, suspects, asked.memory, asked.threads)
    else:
        told = growth(sources, suspects, asked.memory, asked.threads)
    if asked.out:
        with open(asked.out, "w", encoding="utf-8") as file:
            json.dump(told, file, indent=2)


if __name__ == "__main__":
    main()
