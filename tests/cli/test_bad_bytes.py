"""Damaged files of every format, given to every command: an answer, or one line that names the file and exit code 1."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import damaged
import pytest

import forks

SEED = int(os.environ.get("LIKEWISE_SOAK_SEED", "20"))
EACH = int(os.environ.get("LIKEWISE_SOAK_FILES", "500"))
SECONDS = 120
"""Within which a command must have ended."""

FEW = 2
"""Damaged files of each format in `make test`."""

TEXTS = [
    ["dedup", "{}", "--out", "o"],
    ["dedup", "{}", "--id", "id", "--keep", "max:score", "--out", "o"],
    ["dedup", "{}", "--id", "id", "--on-error", "skip", "--method", "lsh", "--out", "o"],
    ["dedup", "{}", "--keep", "min:name", "--encoding-errors", "replace", "--on-error", "skip", "--out", "o"],
    ["dedup", "{}", "--sets", "--text", "tags", "--out", "o"],
    ["dedup", "{}", "--unit", "lines", "--id", "id", "--min-words", "2", "--on-error", "skip", "--out", "o"],
    ["pairs", "{}", "--with", "good.jsonl", "--threshold", "0.3", "--out", "o.csv"],
    ["pairs", "{}", "--measure", "containment", "--threshold", "0.3", "--id", "id", "--out", "o.parquet"],
    ["pairs", "{}", "--explain", "--threshold", "0.5", "--id", "name"],
    ["plan", "{}"],
    ["plan", "{}", "--id", "id", "--on-error", "skip"],
    ["passages", "{}", "--sources", "good.jsonl", "--id", "id", "--out", "o"],
    ["passages", "good.jsonl", "--sources", "{}", "--on-error", "skip", "--out", "o"],
    ["decontaminate", "{}", "--tests", "good.jsonl", "--columns", "text", "--action", "cut", "--out", "o"],
    ["decontaminate", "good.jsonl", "--tests", "{}", "--columns", "text", "--on-error", "skip", "--out", "o"],
    ["articles", "{}", "--shingle", "words:3", "--keep", "max:score", "--out", "o"],
    ["articles", "{}", "--html", "--shingle", "stopwords:en", "--out", "o"],
    ["explain", "{}#1", "good.jsonl#0", "--json"],
]
ROWS = [
    ["link", "{}", "--out", "o"],
    ["link", "{}", "good.jsonl", "--field", "name", "--field", "city", "--id", "id", "--out", "o"],
    ["link", "good.jsonl", "--id", "id", "--training", "{}", "--out", "o"],
    ["mirrors", "{}", "--out", "o"],
    ["mirrors", "good.jsonl", "--links", "{}", "--pages", "{}", "--on-error", "skip", "--out", "o"],
    ["recommend", "{}", "--out", "o"],
    ["recommend", "{}", "--user", "user", "--item", "item", "--rating", "rating", "--on-error", "skip", "--out", "o"],
    ["fingerprints", "{}", "--out", "o"],
    ["fingerprints", "{}", "--with", "good.jsonl", "--finger", "city", "--out", "o"],
]
VECTORS = [
    ["nearest", "{}", "-k", "3", "--out", "o.parquet"],
    ["nearest", "{}", "-k", "2", "--measure", "l2", "--with", "{}", "--out", "o.jsonl"],
    ["pairs", "{}", "--measure", "angle", "--within", "20", "--out", "o.csv"],
    ["pairs", "{}", "--measure", "hamming", "--within", "9", "--out", "o.csv"],
]
LINES = [
    ["dedup", "{}", "--out", "o"],
    ["dedup", "{}", "--lines", "--out", "o"],
    ["dedup", "{}", "--lines", "--on-error", "skip", "--encoding-errors", "replace", "--out", "o"],
    ["pairs", "{}", "--lines", "--sets", "--threshold", "0.4", "--out", "o.csv"],
    ["plan", "{}", "--lines"],
    ["plan", "{}"],
    ["passages", "{}", "--sources", "good.jsonl", "--out", "o"],
    ["articles", "{}", "--out", "o"],
    ["mirrors", "{}", "--on-error", "skip", "--out", "o"],
    ["recommend", "{}", "--baskets", "--out", "o"],
    ["recommend", "{}", "--out", "o"],
    ["explain", "{}", "good.txt"],
    ["link", "good.jsonl", "--id", "id", "--nicknames", "{}", "--out", "o"],
    ["dedup", "good.txt", "--shingle", "stopwords:{}", "--out", "o"],
]


def commands(ending: str) -> list[list[str]]:
    """The commands that read files with this ending."""
    if ending == ".npy":
        return VECTORS
    if ending.startswith((".txt", ".html", ".warc")):
        return LINES
    if ending.startswith((".csv", ".tsv")):
        return [*TEXTS, *ROWS, ["link", "good.jsonl", "--id", "id", "--nicknames", "{}", "--out", "o"]]
    return [*TEXTS, *ROWS, *VECTORS, ["nearest", "{}", "-k", "2", "--id", "id", "--out", "o.jsonl"]]


SAID = re.compile(r"  set aside: |compiling what |measuring this machine |\d+ s: ")
"""What commands say on stderr that is no error."""


def fault(done: dict[str, Any], name: str) -> str | None:
    """Say what is wrong with the end of a command: None if it ended as it should."""
    lines = [line for line in done["err"].splitlines() if not SAID.match(line)]
    if done["code"] not in (0, 1, 2):
        return f"exit code {done['code']}"
    if len(lines) > 1 or "Traceback" in done["err"]:
        return "more than one line"
    if (done["code"] == 0) != (not lines):
        return "an exit code and errors that do not agree"
    if lines and not lines[0].startswith("likewise: "):
        return "not our error"
    if lines and ("internal error, please report" in lines[0] or "killed by the system" in lines[0]):
        return "a fault"
    if lines and name not in lines[0] and "damaged" in lines[0]:
        return "no name of the file"
    if re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", done["err"] + done["out"]):
        return "control characters"
    return None


PARTS = (
    "words", "join", "bands", "clusters", "passages", "decontaminate", "units", "stop_words", "link", "mirrors",
    "recommend", "fingerprints", "vectors", "likewise.report.write", "matplotlib.figure",
    "matplotlib.backends.backend_agg", "jinja2.environment",
)  # fmt: skip


class Commands:
    """Runs commands in a folder with files that are sound."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        rnd = random.Random(1)
        good = "".join(json.dumps(row) + "\n" for row in damaged.records(rnd, 30))
        (folder / "good.jsonl").write_text(good)
        (folder / "good.txt").write_bytes(damaged.text(rnd))

    def run(self, words: list[str]) -> dict[str, Any]:
        for path in self.folder.glob("o*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        process = forks.command(*words, parts=PARTS, folder=self.folder)
        output, errors = process.communicate(SECONDS)
        return {"code": process.returncode, "out": output, "err": errors}


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Commands:
    return Commands(tmp_path_factory.mktemp("bytes"))


def tried(given: Commands, ending: str, number: int) -> str | None:
    """Give one damaged file to one command; say what went wrong."""
    name = f"bad{ending}"
    rnd = random.Random(f"{SEED} {ending} {number}")
    choices = commands(ending)
    words = [word.replace("{}", name) for word in choices[number % len(choices)]]
    data = damaged.file(ending, rnd)
    (given.folder / name).write_bytes(data)
    done = given.run(words)
    why = fault(done, name)
    if why is None:
        return None
    kept = os.environ.get("LIKEWISE_SOAK_KEPT")
    if kept:
        Path(kept, f"{number:04d}{ending}").write_bytes(data)
    return f"{ending} {number}: {' '.join(words)}: {why}: {done['err'][:500]}"


def test_some_damaged_files(given: Commands) -> None:
    """A few files of every format, each to another command: one test, as what is copied takes seconds to start."""
    rnd = random.Random(SEED)
    wrong = [tried(given, ending, rnd.randrange(1 << 20)) for ending in damaged.FORMATS for _ in range(FEW)]
    assert not any(wrong), "\n".join(why for why in wrong if why)


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("ending", damaged.FORMATS)
def test_many_damaged_files(given: Commands, ending: str) -> None:
    """Hundreds of files of every format."""
    wrong = [tried(given, ending, number) for number in range(EACH)]
    assert not any(wrong), "\n".join(why for why in wrong if why)
