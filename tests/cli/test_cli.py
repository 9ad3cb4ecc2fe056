"""The command line as a user types it: output, exit codes, one-line errors, no traceback."""

from __future__ import annotations

import csv
import gzip
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TEXTS = [
    "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood",
    "The quick brown fox jumps over the lazy dog, and runs away into the deep dark wood!",
    "the quick brown fox jumps over the lazy dog and runs away into the deep dark forest",
    "something else entirely is written in this document and nowhere else in the world",
    "the quick brown fox jumps over the lazy dog and runs away into the deep dark wood",
]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def docs(tmp_path: Path) -> None:
    """A folder that holds docs.parquet."""
    pq.write_table(pa.table({"text": TEXTS, "key": list("abcde"), "stars": [1, 5, 2, 3, 4]}), tmp_path / "docs.parquet")


@pytest.fixture
def run(docs: None, typed: Run) -> Run:
    """Run the command in that folder."""
    return typed


@pytest.fixture
def start(docs: None, tmp_path: Path) -> Run:
    """Run the command in that folder as the shell does, in a process of its own."""

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "likewise", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return call


def quickest(start: Run, limit: float, *words: str) -> float:
    """The least time that a command takes, as other work may get in the way: of three runs, or up to ten if need be."""
    seconds: list[float] = []
    while len(seconds) < 3 or (min(seconds) >= limit and len(seconds) < 10):
        begun = time.perf_counter()
        assert start(*words).returncode == 0
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def bare_start() -> float:
    """The least time of three in which Python starts and imports the libraries that every search needs."""
    seconds: list[float] = []
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import numpy, pyarrow.compute, numba"], check=True)
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


@pytest.mark.alone
def test_help_is_quick_and_has_examples(start: Run, run: Run) -> None:
    assert quickest(start, 0.3, "--help") < 0.3
    done = start("--help")
    for command in ("dedup", "pairs", "tune", "demo", "warmup"):
        assert command in done.stdout
        assert run(command, "--help").returncode == 0
    assert "Examples:" in start("dedup", "--help").stdout


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "dedup docs.parquet --out clean --id key"),
        pytest.param(0, "pairs docs.parquet --out pairs.csv --threads 2", marks=pytest.mark.soak),
        (1, "dedup missing.parquet --out clean"),
        pytest.param(1, "dedup docs.parquet --out clean --text body", marks=pytest.mark.soak),
        (2, "dedup docs.parquet --out clean --threshold 1.4"),
        (2, "dedup docs.parquet"),
        (2, "nothing"),
    ],
)
def test_a_process_of_its_own_says_the_same(start: Run, run: Run, code: int, words: str) -> None:
    """So that the tests below can do without. Time and memory are in the last line, and the usage names the program."""
    there, here = start(*words.split()), run(*words.split())
    assert there.returncode == here.returncode == code
    assert there.stdout.splitlines()[:-1] == here.stdout.splitlines()[:-1]
    assert there.stderr.splitlines()[-1:] == here.stderr.splitlines()[-1:]
    assert len(there.stderr.splitlines()) == len(here.stderr.splitlines())
    assert bool(here.stdout) != bool(here.stderr)


def test_dedup(run: Run, tmp_path: Path) -> None:
    done = run("dedup", "docs.parquet", "--out", "clean", "--id", "key", "--keep", "max:stars")
    assert done.returncode == 0, done.stderr
    assert "kept 2, removed 3 (0 identical, 3 near)" in done.stdout
    removed = pq.read_table(tmp_path / "clean" / "removed.parquet").to_pylist()
    assert [(row["id"], row["kept_id"], row["kind"]) for row in removed] == [
        ("a", "b", "near"), ("c", "b", "near"), ("e", "b", "near"),
    ]  # fmt: skip
    kept = pq.read_table(tmp_path / "clean" / "kept" / "docs.parquet")
    assert kept["key"].to_pylist() == ["b", "d"]
    assert kept.column_names == ["text", "key", "stars"]


@pytest.mark.alone
def test_a_warm_run_on_ten_documents_is_quick(start: Run, tmp_path: Path) -> None:
    (tmp_path / "ten.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS * 2))
    start("dedup", "ten.jsonl", "--out", "out")
    limit = max(2.0, 3 * bare_start())  # on a machine that needs long for the libraries alone, in proportion to that
    assert quickest(start, limit, "dedup", "ten.jsonl", "--out", "out") < limit


def test_a_run_on_sets_does_not_wait_for_scipy(tmp_path: Path) -> None:
    (tmp_path / "ten.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS * 2))
    lines = "import sys, likewise; likewise.dedup('ten.jsonl'); print('scipy.linalg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_json_is_json(run: Run, tmp_path: Path) -> None:
    done = run("dedup", "docs.parquet", "--out", "clean", "--json")
    stats = json.loads(done.stdout)
    assert stats["counts"]["items"] == 5
    assert stats["counts"]["removed"] == 3
    assert json.loads((tmp_path / "clean" / "run.json").read_text())["counts"] == stats["counts"]


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.jsonl"])
def test_pairs_in_every_format(run: Run, tmp_path: Path, name: str) -> None:
    assert run("pairs", "docs.parquet", "--out", name, "--id", "key").returncode == 0
    path = tmp_path / name
    if name.endswith("parquet"):
        rows = pq.read_table(path).to_pylist()
    elif name.endswith("csv"):
        rows = list(csv.DictReader(path.read_text().splitlines()))
    else:
        rows = [json.loads(line) for line in path.read_text().splitlines()]
    found = [(row["id_a"], row["id_b"], round(float(row["similarity"]), 6)) for row in rows]
    near = round(12 / 14, 6)
    assert found == [
        ("a", "b", 1.0), ("a", "c", near), ("a", "e", 1.0), ("b", "c", near), ("b", "e", 1.0), ("c", "e", near),
    ]  # fmt: skip


def test_pairs_across_two_collections_and_k(run: Run, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text('text,key\n"' + TEXTS[2] + '",x\nunheard of words only here,y\n')
    done = run("pairs", "new.csv", "--with", "docs.parquet", "--id", "key", "--out", "p.parquet", "-k", "2")
    assert done.returncode == 0, done.stderr
    rows = pq.read_table(tmp_path / "p.parquet").to_pylist()
    assert [(row["id_a"], row["id_b"]) for row in rows] == [("x", "c"), ("x", "a")]


def test_a_folder_of_text_files(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "notes" / "deep"
    folder.mkdir(parents=True)
    for i, text in enumerate(TEXTS):
        (folder / f"{i}.txt").write_text(text)
    done = run("dedup", "notes", "--out", "clean")
    assert done.returncode == 0, done.stderr
    removed = pq.read_table(tmp_path / "clean" / "removed.parquet").to_pylist()
    assert {row["id"] for row in removed} == {f"notes/deep/{i}.txt" for i in (1, 2, 4)}
    kept = sorted(path.name for path in (tmp_path / "clean" / "kept").rglob("*.txt"))
    assert kept == ["0.txt", "3.txt"]


def test_tune(run: Run) -> None:
    done = run("tune", "--threshold", "0.8", "--bands", "20", "--rows", "5")
    assert "20 bands of 5 rows (100 slots)" in done.stdout
    assert "0.999644   ← threshold" in done.stdout
    assert "⠀" in done.stdout
    stats = json.loads(run("tune", "--threshold", "0.7", "--recall", "0.95", "--json").stdout)
    assert stats["recall_at_threshold"] >= 0.95
    low = run("tune", "--threshold", "0.8", "--bands", "2", "--rows", "9")
    assert "below the requested recall of 0.99" in low.stdout


def test_tune_in_other_ways(run: Run, tmp_path: Path) -> None:
    """The recipe of MMDS §3.4.3, weights, and a plot in a file."""
    stats = json.loads(run("tune", "--threshold", "0.8", "--slots", "100", "--prefer", "recall", "--json").stdout)
    assert (stats["bands"], stats["rows"], stats["recall"]) == (10, 10, None)
    done = run("tune", "--threshold", "0.5", "--max-slots", "128", "--weights", "0.1", "0.9")
    assert "32 bands of 4 rows" in done.stdout
    assert "requested recall" not in done.stdout
    for name, head in (("a.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("c.pdf", b"%PDF")):
        done = run("tune", "--threshold", "0.8", "--bands", "20", "--rows", "5", "--plot", name)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).read_bytes().startswith(head)
    svg = (tmp_path / "b.svg").read_text()
    for words in ("20 bands of 5 rows", "probability 0.9996", "false positives, area 0.2987", "false negatives"):
        assert words in svg
    one_line_error(run("tune", "--threshold", "0.8", "--plot", "a.doc"), 1, "must end in .png, .svg or .pdf")
    one_line_error(run("tune", "--threshold", "0.8", "--plot", "none/a.png"), 1, "none/a.png")
    one_line_error(run("tune", "--threshold", "0.8", "--prefer", "speed"), 2, "prefer", "no effect")
    one_line_error(run("tune", "--threshold", "0.8", "--bands", "2", "--rows", "3", "--slots", "6"), 2, "slots")


def one_line_error(done: subprocess.CompletedProcess[str], code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("likewise: ")
    for part in parts:
        assert part in lines[0]
    assert done.stdout == ""


@pytest.mark.parametrize("threshold", ["0", "1.4", "nan", "-0.1"])
def test_a_bad_threshold_is_a_usage_error(run: Run, tmp_path: Path, threshold: str) -> None:
    done = run("dedup", "docs.parquet", "--out", "clean", "--threshold", threshold)
    one_line_error(done, 2, "threshold", "must be in (0, 1]")
    assert not (tmp_path / "clean").exists()


def test_usage_errors_exit_with_two(run: Run) -> None:
    assert run("dedup", "docs.parquet").returncode == 2
    assert run("dedup", "--out", "x").returncode == 2
    assert run("nothing").returncode == 2
    assert run("dedup", "docs.parquet", "--out", "x", "--keep", "best").returncode == 2
    assert run("pairs", "docs.parquet").returncode == 2
    assert "Traceback" not in run("tune").stderr


def test_bad_input_is_one_line(run: Run, tmp_path: Path) -> None:
    one_line_error(run("dedup", "missing.parquet", "--out", "o"), 1, "missing.parquet")
    one_line_error(run("dedup", "docs.parquet", "--text", "body", "--out", "o"), 1, "'body'", "text, key, stars")
    (tmp_path / "fake.parquet").write_bytes(b"this is no parquet")
    one_line_error(run("dedup", "fake.parquet", "--out", "o"), 1, "fake.parquet")
    (tmp_path / "empty.parquet").write_bytes(b"")
    one_line_error(run("dedup", "empty.parquet", "--out", "o"), 1, "empty.parquet")
    whole = gzip.compress(("\n".join(json.dumps({"text": text}) for text in TEXTS * 2000) + "\n").encode())
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    one_line_error(run("dedup", "cut.jsonl.gz", "--out", "o"), 1, "cut.jsonl.gz")
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": broken}\n')
    one_line_error(run("dedup", "bad.jsonl", "--out", "o"), 1, "bad.jsonl", "2")
    (tmp_path / "null.jsonl").write_text('{"text": "fine"}\n{"text": null}\n')
    one_line_error(run("dedup", "null.jsonl", "--out", "o"), 1, "null.jsonl", "2")
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)) * 10)
    one_line_error(run("dedup", "binary.txt", "--out", "o"), 1, "binary.txt")
    (tmp_path / "twice.csv").write_text("id,text\n1,a\n1,b\n")
    one_line_error(run("dedup", "twice.csv", "--id", "id", "--out", "o"), 1, "id 1", "rows 0 and 1")


def test_bad_input_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": broken}\n')
    one_line_error(run("dedup", "bad.jsonl", "--out", "o"), 1, "bad.jsonl", "2")
    assert not (tmp_path / "o").exists()
    assert run("dedup", "docs.parquet", "--out", "old").returncode == 0
    before = sorted(path.name for path in (tmp_path / "old").iterdir())
    one_line_error(run("dedup", "bad.jsonl", "--out", "old"), 1, "bad.jsonl", "2")
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == before


def test_a_mended_input_is_read_without_ado(run: Run, tmp_path: Path) -> None:
    """What stopped at a broken row has nothing to go on with, and need not be told to start over."""
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": broken}\n')
    one_line_error(run("dedup", "bad.jsonl", "--out", "o"), 1, "bad.jsonl", "2")
    (tmp_path / "bad.jsonl").write_text('{"text": "fine"}\n{"text": "mended"}\n')
    done = run("dedup", "bad.jsonl", "--out", "o")
    assert done.returncode == 0, done.stderr
    assert "kept 2, removed 0" in done.stdout


def test_memory(run: Run, tmp_path: Path) -> None:
    done = run("dedup", "docs.parquet", "--out", "o", "--memory", "lots")
    one_line_error(done, 2, "memory", "a size such as 4GiB or 500MB", "lots")
    one_line_error(run("pairs", "docs.parquet", "--out", "p.csv", "--memory", "1MB"), 2, "at least 64MiB", "1MB")
    assert not (tmp_path / "o").exists()
    done = run("dedup", "docs.parquet", "--out", "o", "--memory", "64MiB", "--spill", "elsewhere", "--json")
    stats = json.loads(done.stdout)
    assert stats["parameters"]["memory"] == 64 << 20
    assert stats["parameters"]["spilled_bytes"] == 0
    assert not (tmp_path / "elsewhere").exists()


def test_broken_rows_can_be_set_aside(run: Run, tmp_path: Path) -> None:
    rows = [json.dumps({"text": text}) for text in TEXTS]
    (tmp_path / "some.jsonl").write_text("\n".join([rows[0], "{broken", *rows[1:], '{"text": null}']) + "\n")
    done = run("dedup", "some.jsonl", "--out", "clean", "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert "2 rows set aside" in done.stdout
    aside = pq.read_table(tmp_path / "clean" / "aside.parquet").to_pylist()
    assert [row["row"] for row in aside] == [2, 7]
    removed = pq.read_table(tmp_path / "clean" / "removed.parquet")
    assert removed["id"].to_pylist() == [2, 3, 5]  # row 1 is broken, and counts
    assert (tmp_path / "clean" / "kept" / "some.jsonl").read_text().splitlines() == [rows[0], rows[3]]


def test_a_folder_that_is_not_ours_is_left_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    one_line_error(run("dedup", "docs.parquet", "--out", "mine"), 1, "mine", "not empty")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
    assert run("dedup", "docs.parquet", "--out", "ours").returncode == 0
    assert run("dedup", "docs.parquet", "--out", "ours", "--threshold", "1").returncode == 0


def test_a_run_does_not_replace_its_own_input(run: Run, tmp_path: Path) -> None:
    assert run("dedup", "docs.parquet", "--out", "clean").returncode == 0
    before = (tmp_path / "clean" / "kept" / "docs.parquet").read_bytes()
    one_line_error(run("dedup", "clean/kept/docs.parquet", "--out", "clean"), 1, "replace its own input")
    assert (tmp_path / "clean" / "kept" / "docs.parquet").read_bytes() == before


def test_short_documents_get_a_hint(run: Run, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("text\nAnna\nAnne\nBert\n")
    assert "note: half of the documents are shorter" in run("dedup", "names.csv", "--out", "o").stdout
    done = run("dedup", "names.csv", "--out", "p", "--shingle", "chars", "--threshold", "0.3", "--json")
    stats = json.loads(done.stdout)
    assert stats["parameters"]["shingle"] == "chars:3"
    assert stats["notes"] == []


def test_pairs_does_not_replace_its_input(run: Run, tmp_path: Path) -> None:
    before = (tmp_path / "docs.parquet").read_bytes()
    (tmp_path / "alias.parquet").symlink_to(tmp_path / "docs.parquet")
    (tmp_path / "new.csv").write_text("text\na b c\n")
    for words in (["docs.parquet"], ["new.csv", "--with", "docs.parquet"]):
        for name in ("docs.parquet", "./docs.parquet", "alias.parquet"):
            one_line_error(run("pairs", *words, "--out", name), 1, "replace its own input")
    assert (tmp_path / "docs.parquet").read_bytes() == before


def test_a_run_json_of_somebody_else_is_not_ours(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine" / "kept").mkdir(parents=True)
    (tmp_path / "mine" / "run.json").write_text("{}")
    (tmp_path / "mine" / "kept" / "thesis.txt").write_text("years of work")
    one_line_error(run("dedup", "docs.parquet", "--out", "mine"), 1, "not made by likewise")
    assert (tmp_path / "mine" / "kept" / "thesis.txt").exists()


def test_ids_that_are_not_numbers(run: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", "b"], "i": [float("nan")] * 2}), tmp_path / "nan.parquet")
    one_line_error(run("dedup", "nan.parquet", "--id", "i", "--out", "o"), 1, "row 0", "NaN")


def test_a_screen_that_is_full(run: Run, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from likewise.cli import main; main()", "tune", "--threshold", "0.8"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_control_characters_are_escaped(run: Run, tmp_path: Path) -> None:
    """Ids, texts and names of columns and files could change the state of a terminal."""
    red = "\x1b[31m"
    rows = [{"user": f"{red}ann{name}", "item": item, "te\x9bxt": "x"} for name in "ab" for item in ("p", "q\r", "s")]
    (tmp_path / f"{red}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = run("recommend", f"{red}.jsonl", "--user", "user", "--item", "item", "--for", f"{red}anna", "--out", "o")
    assert found.returncode == 0
    assert "\\x1b[31mann" in found.stdout
    refused = run("dedup", f"{red}.jsonl", "--out", "other")
    one_line_error(refused, 1, "\\x1b[31m.jsonl", "te\\x9bxt")
    shown = found.stdout + found.stderr + refused.stderr
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)


def test_a_fault_is_one_line_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object, **options: object) -> None:
        raise ZeroDivisionError("no\nway")

    monkeypatch.setattr("likewise.engines.dedup", fails)
    monkeypatch.setattr("likewise.dedup", fails, raising=False)
    one_line_error(
        run("dedup", "docs.parquet", "--out", "o"), 1, "internal error, please report (ZeroDivisionError", "no way"
    )
