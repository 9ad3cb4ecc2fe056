"""`likewise fingerprints` as a user types it: what it prints, what it writes, one-line errors."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from made_fingers import csv_of, database

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path, typed: Run) -> Run:
    """The command, in a folder with all.csv, one.csv and others.csv."""
    head, *rows = csv_of(database(fingers=10)).splitlines()
    one = [row for row in rows if row.startswith("f6_1,")]
    others = [row for row in rows if not row.startswith("f6_1,")]
    for name, some in (("all", rows), ("one", one), ("others", others), ("bad", [rows[0], "f0_0,x,1,1,f0"])):
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *some]) + "\n")
    return typed


def test_all_against_all(run: Run, tmp_path: Path) -> None:
    done = run("fingerprints", "all.csv", "--finger", "finger", "--out", "found")
    assert done.returncode == 0, done.stderr
    for words in (
        "20 prints", "190 pairs", "10 matches; 20 prints in 10 clusters", "true match rate   1.000 (10 of 10;",
        "false match rate  0.000 (0 of 180;", "equal error rate  0.0000", "→ found",
    ):  # fmt: skip
        assert words in done.stdout
    matches = pq.read_table(tmp_path / "found" / "matches.parquet")
    assert matches.column_names == [
        "id_a", "id_b", "score", "minutiae", "overlap_a", "overlap_b", "rotation", "shift_x", "shift_y", "triples",
    ]  # fmt: skip
    fingers = pq.read_table(tmp_path / "found" / "fingers.parquet")
    assert fingers.column_names == ["id", "cluster", "size", "keeper"]
    stats = json.loads((tmp_path / "found" / "run.json").read_text())
    assert stats["command"] == "fingerprints"
    assert stats["counts"]["matches"] == matches.num_rows == 10


def test_one_against_many_leaves_no_old_groups(run: Run, tmp_path: Path) -> None:
    assert run("fingerprints", "all.csv", "--out", "found").returncode == 0
    assert (tmp_path / "found" / "fingers.parquet").exists()
    done = run("fingerprints", "one.csv", "--with", "others.csv", "--out", "found", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["possible_pairs"] == 19
    assert pq.read_table(tmp_path / "found" / "matches.parquet")["id_b"].to_pylist() == ["f6_0"]
    assert not (tmp_path / "found" / "fingers.parquet").exists()
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert {"read", "index", "compare", "mirror"} <= {event["stage"] for event in events}
    again = run("fingerprints", "all.csv", "--only", "f6_1", "--out", "found")
    assert "f6_1  f6_0" in again.stdout


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (1, "missing.csv --out found", "missing.csv: there is no such file"),
        (1, "bad.csv --out found", "bad.csv: row 1: 'x' must be a number, not 'x'"),
        (1, "all.csv --id nobody --out found", "no column 'nobody'; the columns are: print, x, y, angle, finger"),
        (1, "all.csv --angle theta --out found", "--aligned"),
        (1, "all.csv --only f99 --out found", "there is no print 'f99'"),
        (1, "all.csv --angles degrees --out found", "cannot be degrees"),
        (1, "all.csv --out one.csv", "this is a file"),
        (2, "all.csv --threshold 2 --out found", "threshold"),
        (2, "all.csv --near=-1 --out found", "near"),
        (
            2,
            "all.csv --functions 10 --out found",
            "The --functions option of fingerprints has no effect without --aligned.",
        ),
        (2, "all.csv", "--out"),
    ],
)
def test_errors_take_one_line(run: Run, tmp_path: Path, code: int, words: str, told: str) -> None:
    done = run("fingerprints", *words.split())
    assert done.returncode == code
    assert told in done.stderr
    assert not (tmp_path / "found").exists()
    if not done.stderr.startswith("Usage"):
        assert done.stderr.count("\n") == 1, done.stderr


def test_a_folder_of_another_command_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "run.json").write_text('{"likewise": "0", "command": "dedup"}')
    done = run("fingerprints", "all.csv", "--out", "found")
    assert done.returncode == 1
    assert "the result of likewise dedup" in done.stderr


def test_help_has_examples(run: Run) -> None:
    done = run("fingerprints", "--help")
    assert done.returncode == 0
    assert "Examples:" in done.stdout
    assert "matches.parquet" in done.stdout
    assert "fingerprints" in run("--help").stdout
