"""`likewise pairs --measure` and `likewise nearest` as a user types them."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def run(typed, tmp_path):
    rng = np.random.default_rng(1)
    table = rng.standard_normal((50, 8)).astype(np.float32)
    table[30:40] = table[:10] + 0.01
    table[49] = table[0]
    np.save(tmp_path / "v.npy", table)
    pq.write_table(pa.table({"name": [f"n{i}" for i in range(50)], "e": table.tolist()}), tmp_path / "v.parquet")
    return typed


def test_pairs(run, tmp_path):
    done = run("pairs", "v.npy", "--measure", "angle", "--within", "5", "--out", "p.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:3] == [
        "50 vectors, 1 of them copies of another",
        "exact: all vectors were compared (at most 3,000 vectors: comparing all pairs is quick)",
        "12 pairs within 5°",
    ]
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.schema.names == ["id_a", "id_b", "distance"]
    assert table["id_b"].to_pylist()[:3] == [30, 49, 31]


def test_columns_ids_and_two_collections(run, tmp_path):
    options = ["--vector", "e", "--id", "name", "--measure", "l2", "--within", "0.1"]
    done = run("pairs", "v.parquet", "--with", "v.parquet", *options, "--out", "p.csv")
    assert done.returncode == 0
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[:2] == ['"id_a","id_b","distance"', '"n0","n0",0']
    assert len(lines) == 1 + 50 + 2 * 12


def test_tables(run):
    done = run("pairs", "v.npy", "--measure", "l2", "--within", "0.1", "--method", "lsh", "--json", "--out", "p.arrow")
    told = json.loads(done.stdout)
    assert told["method"] == {"asked": "lsh", "taken": "lsh", "why": "requested"}
    counts = told["counts"]
    assert (counts["items"], counts["different"], counts["pairs"]) == (50, 49, 12)
    assert [json.loads(line)["stage"] for line in done.stderr.splitlines() if '"begun"' in line or "stage" in line]


def test_nearest(run, tmp_path):
    done = run("nearest", "v.npy", "-k", "2", "--out", "n.jsonl")
    assert done.returncode == 0
    assert done.stdout.splitlines()[2] == "100 neighbours"
    rows = [json.loads(line) for line in (tmp_path / "n.jsonl").read_text().splitlines()]
    assert [row["id_b"] for row in rows[:2]] == [49, 30]
    asked = run("nearest", "v.parquet", "--vector", "e", "--with", "v.parquet", "-k", "1", "--out", "q.csv")
    assert asked.returncode == 0
    assert (tmp_path / "q.csv").read_text().splitlines()[1] == "0,0,0"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "Vectors are compared by a distance"),
        (["--measure", "angle"], 2, "--within option of pairs is needed with --measure angle"),
        (["--measure", "angle", "--within", "190"], 2, "from 0 to 180"),
        (
            ["--measure", "angle", "--within", "1", "--threshold", "0.9"],
            2,
            "--threshold option of pairs has no effect with --measure angle",
        ),
        (["--measure", "angle", "--within", "1", "--sets"], 2, "--sets has no effect with --measure angle"),
        (["--measure", "dot", "--within", "1"], 2, "dot"),
        (["--measure", "hamming", "--within", "1"], 2, "compares bits"),
        (["--measure", "angle", "--within", "1", "--with", "no.npy"], 1, "no.npy: there is no such file"),
    ],
)
def test_wrong_calls(run, tmp_path, words, code, told):
    done = run("pairs", "v.npy", *words, "--out", "p.parquet")
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "p.parquet").exists()


def test_wrong_files(run, tmp_path):
    (tmp_path / "v.npy").write_bytes((tmp_path / "v.npy").read_bytes()[:-5])
    done = run("nearest", "v.npy", "--out", "n.csv")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("likewise: v.npy: this is not a whole .npy file of numbers")
    assert done.stderr.count("\n") == 1
