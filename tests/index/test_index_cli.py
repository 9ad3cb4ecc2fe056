"""`likewise index`: what a user types."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise import Index

TEXTS = [f"the quick brown fox number {i} jumps over the lazy dog {i * 7} and goes home" for i in range(9)]


@pytest.fixture
def run(typed, tmp_path):
    rows = "".join(f"k{i},{text}\n" for i, text in enumerate(TEXTS))
    (tmp_path / "docs.csv").write_text("key,text\n" + rows)
    pq.write_table(pa.table({"key": pa.array(range(9)), "text": TEXTS}), tmp_path / "docs.parquet")
    (tmp_path / "new.csv").write_text("key,text\na," + TEXTS[3] + " again\nb,nothing like that\n")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "one.txt").write_text(TEXTS[1])

    def call(words, code=0):
        done = typed(*words.split())
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    return call


def test_from_making_to_removing(run, tmp_path):
    assert "0 items" in run("index create ix --shingle words:2 --threshold 0.5")
    assert "added 9 items; ix has 9" in run("index add ix docs.csv --id key")
    assert run("index query ix new.csv --id key -k 1") == "a  0.9333  k3\n"
    printed = json.loads(run("index query ix new.csv --id key --json --out found.csv"))
    assert printed["command"] == "index"
    assert printed["counts"] == {"items": 2, "pairs": 9, "indexed": 9, "set_aside": 0}
    lines = (tmp_path / "found.csv").read_text().splitlines()
    assert len(lines) == 10
    assert lines[1].startswith('"a","k3",0.93')
    (tmp_path / "gone.txt").write_text("k3\r\n\nk4\n")
    assert "removed 2 items; ix has 7" in run("index remove ix --ids gone.txt")
    assert "k3" not in run("index query ix new.csv --id key")
    assert json.loads(run("index info ix --json"))["removed"] == 2
    assert "7 items, 7 different\n" in run("index compact ix")
    assert "7 items: " in run("index check ix")
    assert json.loads(run("index check ix --json"))["items"] == 7


def test_ids_are_numbers_paths_or_a_column(run, tmp_path):
    run("index create ix --shingle words:2")
    run("index add ix docs.parquet --id key")
    run("index add ix docs.parquet")
    assert run("index query ix files -k 2") == "files/one.txt  1.0000  1\nfiles/one.txt  1.0000  10\n"
    assert "removed 1 item" in run("index remove ix 10")
    assert "is not an integer, unlike the ids of this index" in run("index remove ix x", 1)
    assert "is not an integer" in run("index add ix docs.csv --id key", 1)
    run("index create paths --shingle words:2")
    run("index add paths files")
    with Index.open(tmp_path / "paths") as index:
        assert "files/one.txt" in index


def test_sets_and_containment(run, tmp_path):
    (tmp_path / "baskets.txt").write_text("milk bread eggs tea\nbread milk\nbeer\n")
    (tmp_path / "asked.txt").write_text("milk tea\n")
    run("index create ix --sets --threshold 0.4 --containment")
    run("index add ix baskets.txt")
    assert run("index query ix asked.txt") == "0  0.5000  0\n"
    assert run("index query ix asked.txt --measure containment --threshold 0.5") == "0  1.0000  0\n0  0.5000  1\n"


def test_a_run_becomes_an_index(run):
    run("dedup docs.csv --id key --shingle words:2 --out clean")
    assert "9 items" in run("index create ix --from-run clean")
    assert "--threshold has no effect with --from-run" in run("index create iy --from-run clean --threshold 0.5", 2)
    assert run("index query ix new.csv --id key -k 1") == "a  0.9333  k3\n"


@pytest.mark.parametrize(
    ("code", "words", "said"),
    [
        (1, "index query nothing new.csv", "nothing: there is no index in this folder"),
        (1, "index create ix", "there is an index already"),
        (2, "index query ix new.csv --threshold 0.5", "The --threshold option of index query must be at least 0.8"),
        (2, "index query ix new.csv --measure containment", "was not made for it, which is an option of create"),
        (2, "index create iy --threshold 2", "The --threshold option of index create must be in (0, 1]"),
        (1, "index add ix missing.csv", "missing.csv"),
        (1, "index add ix docs.csv --text body", "there is no column 'body'"),
        (2, "index remove ix", "either ids, or a file"),
        (1, "index remove ix 77", "there is no item with the id 77"),
        (2, "index nothing", "No such command"),
        (1, "index query ix new.csv --out ix/1/data.mdb", "data.mdb"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(run, code, words, said):
    run("index create ix --shingle words:2")
    run("index add ix docs.parquet --id key")
    told = run(words, code)
    assert said in told
    assert len(told.strip().splitlines()) <= (5 if "Usage" in told else 1)
    assert run("index query ix new.csv -k 1") == "0  0.9333  3\n"


def test_every_command_has_help(run):
    for command in ("create", "add", "query", "remove", "info", "check", "compact"):
        assert "INDEX" in run(f"index {command} --help")
    assert "Examples:" in run("index --help")


def test_vectors_from_files(run, tmp_path):
    table = np.float32([[math.sin(i * (j + 1)) for j in range(6)] for i in range(1, 31)])
    np.save(tmp_path / "v.npy", table)
    np.save(tmp_path / "q.npy", table[3:5] * 2)
    lists = pa.array(table.tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"url": [f"u{i}" for i in range(30)], "embedding": lists}), tmp_path / "v.parquet")
    created = run("index create ix --measure angle --within 90 --recall 0.95")
    assert "0 vectors\nangle of 90 or less, recall 0.95" in created
    assert "added 30 items; ix has 30" in run("index add ix v.npy")
    assert run("index query ix q.npy -k 1") == "0  0.0000  3\n1  0.0000  4\n"
    run("index query ix v.parquet --vector embedding --id url -k 1 --out found.parquet")
    found = pq.read_table(tmp_path / "found.parquet")
    assert found.column_names == ["id_a", "id_b", "distance"]
    assert found["id_a"].to_pylist() == [f"u{i}" for i in range(30)]
    assert found["id_b"].to_pylist() == list(range(30))
    run("index create names --measure l2")
    run("index add names v.parquet --vector embedding --id url")
    assert run("index query names v.npy --within 0").splitlines()[2] == "2  0.0000  u2"
    assert "30 vectors of 6 components, float32\nl2, recall 0.99" in run("index info names")
    printed = json.loads(run("index query names q.npy -k 2 --json"))
    assert printed["counts"] == {"items": 2, "pairs": 4, "indexed": 30, "set_aside": 0}
    assert "--text has no effect with ix, which holds vectors" in run("index add ix v.npy --text body", 2)
    assert "--measure has no effect with ix" in run("index query ix q.npy --measure jaccard", 2)
    assert "needs -k or --within" in run("index query names q.npy", 2)
    assert "--containment option" in run("index create iy --measure l2 --containment", 2)
    run("index create texts")
    assert "--vector has no effect with texts, which holds no vectors" in run("index add texts v.npy --vector v", 2)
    assert "--within" in run("index query texts docs.csv --within 3", 2)
