"""`likewise decontaminate` as a user types it: the folder it makes, its exit codes, and the same bytes every time."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import runs

QUESTION = "How many apples are left in the basket if Tom eats two of the seven?"
LEAKED = f"They say: {QUESTION.upper()} Who knows."
FILES = ("hits.parquet", "tests.parquet", "kept/corpus.jsonl")


@pytest.fixture
def run(typed, tmp_path):
    rows = [{"id": "a", "text": LEAKED, "n": 1}, {"id": "b", "text": "nothing at all", "n": 2.50}]
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/riddles.csv").write_text(f'question,answer\n"{QUESTION}",five\n', encoding="utf-8")
    pq.write_table(
        pa.table({"prompt": ["Where was the first of all books printed in Europe?"]}), tmp_path / "tests/b.parquet"
    )
    return typed


def test_a_document_is_dropped(run, tmp_path):
    done = run("decontaminate", "corpus.jsonl", "--id", "id", "--tests", "tests", "--out", "clean")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("2 documents, ")
    assert lines[0].endswith("3 items of 2 test sets")
    assert "riddles.csv: 1 of 2 items in 1 document" in lines
    assert "1 document with items of tests; kept 1, removed 1" in lines
    assert lines[-1].endswith("→ clean")
    (row,) = pq.read_table(tmp_path / "clean/hits.parquet").to_pylist()
    assert (row["test_set"], row["item"], row["column"], row["id"]) == ("riddles.csv", "0", "question", "a")
    assert LEAKED[row["start"] : row["end"]] == row["text"] == QUESTION.upper()[:-1]
    assert (tmp_path / "clean/kept/corpus.jsonl").read_text() == (tmp_path / "corpus.jsonl").read_text().splitlines(
        True
    )[1]
    assert (tmp_path / "clean/report.html").exists()


def test_the_passage_is_cut(run, tmp_path):
    done = run("decontaminate", "corpus.jsonl", "--tests", "tests/riddles.csv", "--action", "cut", "--out", "clean")
    assert done.returncode == 0, done.stderr
    before, after = ((tmp_path / name).read_text() for name in ("corpus.jsonl", "clean/kept/corpus.jsonl"))
    assert after == before.replace(QUESTION.upper()[:-1], "")


def test_only_a_report(run, tmp_path):
    done = run("decontaminate", "corpus.jsonl", "--tests", "tests", "--action", "report", "--json", "--out", "found")
    counts = json.loads(done.stdout)["counts"]
    assert (counts["items_hit"], counts["kept"], counts["items_too_short"]) == (1, 2, 1)
    assert not (tmp_path / "found/kept").exists()


def test_the_same_bytes_with_other_threads_and_after_a_run_that_failed(run, tmp_path):
    runs.steady(run, tmp_path / "clean", FILES, "decontaminate", "corpus.jsonl", "--tests", "tests")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere.jsonl", "--tests", "tests"), 1, "nowhere.jsonl"),
        (("corpus.jsonl", "--tests", "nowhere"), 1, "nowhere"),
        (("corpus.jsonl",), 2, "--tests"),
        (("corpus.jsonl", "--tests", "tests", "--length", "2"), 2, "--length option"),
        (("corpus.jsonl", "--tests", "tests", "--share", "2"), 2, "--share option"),
        (("corpus.jsonl", "--tests", "tests", "--action", "eat"), 2, "--action"),
        (("corpus.jsonl", "--tests", "tests", "--columns", "prompt"), 1, "riddles.csv: there is no column 'prompt'"),
        (("corpus.jsonl", "--tests", "corpus.jsonl", "--columns", "n"), 1, "corpus.jsonl"),
        (("corpus.jsonl", "--tests", "tests", "--text", "body"), 1, "corpus.jsonl: there is no column 'body'"),
    ],
)
def test_wrong_words(run, words, code, message):
    done = run("decontaminate", *words, "--out", "clean")
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
    assert len(done.stderr.splitlines()) == 1 or code == 2


def test_an_input_is_not_replaced(run, tmp_path):
    assert run("decontaminate", "corpus.jsonl", "--tests", "tests", "--out", "clean").returncode == 0
    done = run("decontaminate", "clean/kept/corpus.jsonl", "--tests", "tests", "--out", "clean")
    assert (done.returncode, "would replace its own input" in done.stderr) == (1, True)
