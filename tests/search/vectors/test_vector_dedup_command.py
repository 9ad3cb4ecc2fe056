"""`likewise dedup` of vectors as a user types it: the folder it makes, and what it refuses."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise

RNG = np.random.default_rng(2)
BASE = RNG.standard_normal((60, 8)).astype(np.float32)
VECTORS = np.concatenate([BASE, BASE[:5], BASE[5:20] + np.float32(0.01)])
FILES = ("removed.parquet", "pairs.parquet", "clusters.parquet")


@pytest.fixture
def run(typed, tmp_path):
    paths = [f"pictures/{number}.jpg" for number in range(len(VECTORS))]
    table = pa.table({"path": paths, "clip": list(VECTORS), "width": np.arange(len(VECTORS)) % 7})
    pq.write_table(table, tmp_path / "pictures.parquet", row_group_size=11)
    np.save(tmp_path / "pictures.npy", VECTORS)
    return typed


def test_near_pictures_go(run, tmp_path):
    words = ("--vector", "clip", "--id", "path", "--measure", "angle", "--within", "5", "--keep", "max:width")
    done = run("dedup", "pictures.parquet", *words, "--out", "clean")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "80 vectors, 5 of them copies of another"
    assert lines[2] == "kept 60, removed 20 (5 identical, 15 near); 20 clusters, the largest of 2"
    kept = pq.read_table(tmp_path / "clean/kept/pictures.parquet")
    assert kept.column_names == ["path", "clip", "width"]
    assert kept.num_rows == 60
    removed = pq.read_table(tmp_path / "clean/removed.parquet")
    assert removed.column_names == ["id", "kept_id", "distance", "kind"]
    assert not set(removed["id"].to_pylist()) & set(kept["path"].to_pylist())
    assert set(removed["kept_id"].to_pylist()) <= set(kept["path"].to_pylist())
    one = removed.to_pylist()[0]
    told = run("explain", "clean", one["id"], one["kept_id"])
    assert told.returncode == 0, told.stderr
    assert f"{one['id']} is removed; {one['kept_id']} is kept in its place" in told.stdout


def test_near_rows_of_an_array_go(run, tmp_path):
    done = run("dedup", "pictures.npy", "--measure", "l2", "--within", "0.1", "--json", "--out", "clean")
    assert json.loads(done.stdout)["counts"]["removed"] == 20
    assert np.array_equal(np.load(tmp_path / "clean/kept/pictures.npy"), BASE)
    told = run("explain", "clean", "3", "4")
    assert "3 is kept" in told.stdout


def test_the_same_bytes_again_and_with_other_means(run, tmp_path):
    runs = []
    for means in (("--threads", "1"), ("--threads", "2"), ("--memory", "64MiB")):
        done = run("dedup", "pictures.npy", "--measure", "l2", "--within", "0.1", *means, "--out", "clean")
        assert done.returncode == 0, done.stderr
        runs.append([(tmp_path / "clean" / name).read_bytes() for name in (*FILES, "kept/pictures.npy")])
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.parametrize("stage", ["read", "look", "compare", "cluster", "tables", "write"])
def test_a_run_that_is_stopped_and_run_again_gives_the_same_bytes(tmp_path, stage):
    np.save(tmp_path / "pictures.npy", VECTORS)
    options = {"measure": "l2", "within": 0.1}
    likewise.dedup(tmp_path / "pictures.npy", out=tmp_path / "whole", **options)

    def stopping(now, done, total):
        if now == stage:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        likewise.dedup(tmp_path / "pictures.npy", out=tmp_path / "clean", progress=stopping, **options)
    assert not (tmp_path / "clean/run.json").exists()
    likewise.dedup(tmp_path / "pictures.npy", out=tmp_path / "clean", **options)
    for name in (*FILES, "kept/pictures.npy"):
        assert (tmp_path / "clean" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_input_that_changes_is_noticed(tmp_path):
    np.save(tmp_path / "pictures.npy", VECTORS)

    def changing(now, done, total):
        if now == "cluster":
            np.save(tmp_path / "pictures.npy", VECTORS[:10])

    with pytest.raises(likewise.InputError, match=r"it changed during the run; leave it alone and run again$"):
        likewise.dedup(tmp_path / "pictures.npy", measure="l2", within=0.1, out=tmp_path / "o", progress=changing)


def test_a_run_that_fails_leaves_the_earlier_result(run, tmp_path):
    words = ("dedup", "pictures.npy", "--measure", "angle", "--within", "5", "--out", "clean")
    assert run(*words).returncode == 0
    before = {name: (tmp_path / "clean" / name).read_bytes() for name in (*FILES, "run.json")}
    np.save(tmp_path / "pictures.npy", np.zeros((3, 8), np.float32))
    failed = run(*words)
    assert failed.returncode != 0
    assert "pictures.npy: row 0 (counted from 0) is all zeros" in failed.stderr
    assert before == {name: (tmp_path / "clean" / name).read_bytes() for name in before}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--within 5", "--within option of dedup has no effect"),
        ("--measure angle", "--within option of dedup is needed"),
        ("--measure angle --within 5 --by path", "--by has no effect"),
        ("--measure angle --within 5 --sets", "--sets has no effect"),
        ("--measure angle --within 5 --threshold 0.5", "--threshold option of dedup has no effect"),
        ("--measure angle --within 5 --keep longest", "vectors have no length"),
        ("--measure angle --within 5 --no-state", "has no effect"),
        ("", "use --measure angle and --within 15"),
    ],
)
def test_what_has_no_effect_is_refused_in_one_line(run, tmp_path, words, said):
    done = run("dedup", "pictures.npy", *words.split(), "--out", "clean")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "clean").exists()


def test_a_new_batch_is_held_against_the_old(run, tmp_path):
    words = ("--measure", "l2", "--within", "0.1")
    assert run("dedup", "pictures.npy", *words, "--out", "clean").returncode == 0
    np.save(tmp_path / "new.npy", np.concatenate([BASE[:3], BASE[3:4] + 1]))
    done = run("dedup", "new.npy", *words, "--against", "clean", "--out", "new")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == "compared with the 60 vectors that are known already"
    assert np.array_equal(np.load(tmp_path / "new/kept/new.npy"), BASE[3:4] + 1)
    assert pq.read_table(tmp_path / "new/removed.parquet")["kept_in"].to_pylist() == ["clean"] * 3
    assert "result.explain" in run("explain", "new", "0", "1").stderr


def test_a_result_of_vectors_has_no_other_threshold(run):
    assert run("dedup", "pictures.npy", "--measure", "l2", "--within", "0.1", "--out", "clean").returncode == 0
    done = run("rethreshold", "clean", "--threshold", "0.9", "--out", "other")
    assert "this run compared vectors" in done.stderr
