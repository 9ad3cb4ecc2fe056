"""`likewise dedup --unit` as a user types it: the folder it makes, its exit codes, and the same bytes every time."""

import json

import pyarrow.parquet as pq
import pytest

import runs

NOTICE = "All rights reserved by the authors."
ROWS = [
    {"id": "a", "text": f"Of whales.\n{NOTICE}\nThe end.", "n": 1},
    {"id": "b", "text": f"Of ships.\n{NOTICE.upper()}\nThe end.", "n": 2.50},
    {"id": "c", "text": f"- {NOTICE}", "n": 3},
]
FILES = ("cuts.parquet", "removed.parquet", "kept/corpus.jsonl")


@pytest.fixture
def run(typed, tmp_path):
    content = "".join(json.dumps(row) + "\n" for row in ROWS)
    (tmp_path / "corpus.jsonl").write_text(content, encoding="utf-8")
    return typed


def test_a_line_is_cut(run, tmp_path):
    done = run("dedup", "corpus.jsonl", "--id", "id", "--unit", "lines", "--out", "clean")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "3 documents, 146 bytes of text; 3 lines of at least 5 words"
    assert lines[1] == "1 different line repeated: cut 2 times, 12 words, out of 2 documents"
    assert lines[2] == "kept 2, removed 1 with too little left"
    before = (tmp_path / "corpus.jsonl").read_text().splitlines(True)
    after = (tmp_path / "clean/kept/corpus.jsonl").read_text()
    assert after == before[0] + before[1].replace(f"{NOTICE.upper()}\\n", "")
    assert pq.read_table(tmp_path / "clean/removed.parquet").to_pylist() == [
        {"id": "c", "why": "empty", "words_left": 0}
    ]
    assert (tmp_path / "clean/report.html").exists()


def test_nothing_is_repeated(run, tmp_path):
    done = run("dedup", "corpus.jsonl", "--unit", "paragraphs", "--json", "--out", "clean")
    assert json.loads(done.stdout)["counts"]["cuts"] == 0
    assert (tmp_path / "clean/kept/corpus.jsonl").read_bytes() == (tmp_path / "corpus.jsonl").read_bytes()
    assert (tmp_path / "clean/report.html").exists()


def test_the_same_bytes_with_other_threads_and_after_a_run_that_failed(run, tmp_path):
    runs.steady(run, tmp_path / "clean", FILES, "dedup", "corpus.jsonl", "--unit", "lines")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("corpus.jsonl --unit words", 2, "'words' is not one of 'lines', 'paragraphs'"),
        ("corpus.jsonl --unit lines --threshold 0.5", 2, "The --threshold option of dedup has no effect with --unit"),
        ("corpus.jsonl --unit lines --keep longest", 2, "The --keep option of dedup must be 'first' or 'none'"),
        ("corpus.jsonl --unit lines --by n", 2, "--by has no effect with --unit"),
        ("corpus.jsonl --unit lines --fresh", 2, "The --fresh option of dedup has no effect with --unit"),
        ("corpus.jsonl --min-words 3", 2, "The --min-words option of dedup has no effect without --unit"),
        ("missing.jsonl --unit lines", 1, "missing.jsonl"),
        ("corpus.jsonl --unit lines --text body", 1, "body"),
    ],
)
def test_errors_are_one_line(run, tmp_path, words, code, message):
    done = run("dedup", *words.split(), "--out", "clean")
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "clean").exists()


@pytest.mark.parametrize(
    "words",
    ["rethreshold clean --threshold 0.9", "explain clean a b", "dedup corpus.jsonl --against clean --out other"],
)
def test_commands_that_need_a_run_of_whole_documents(run, words):
    assert run("dedup", "corpus.jsonl", "--id", "id", "--unit", "lines", "--out", "clean").returncode == 0
    done = run(*words.split())
    assert done.returncode != 0
    assert "this run cut lines" in done.stderr
