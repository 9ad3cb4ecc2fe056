"""The answer of the local engine, however the input is cut: corpora, partitionings and seeds."""

import os
import subprocess
import sys
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_corpora import cut, multilingual, posts, settled, skewed, table

import likewise

TABLES = ("pairs", "removed", "clusters", "kept")
CORPORA = {"posts": posts, "skewed": skewed, "multilingual": multilingual}
SETTINGS = {"id": "name", "method": "lsh"}


def shuffled(spark, rows, parts, seed):
    """A DataFrame of these partitions in any order, and the same rows as one table."""
    pieces = cut(rows, parts, seed)
    frames = [spark.createDataFrame(piece, "name string, text string, score bigint").coalesce(1) for piece in pieces]
    return reduce(lambda a, b: a.unionAll(b), frames), pa.concat_tables(pieces)


def same_dedup(spark, rows, parts, seed):
    frame, whole = shuffled(spark, rows, parts, seed)
    settings = {**SETTINGS, "seed": seed, "keep": "max:score"}
    local, found = likewise.dedup(whole, **settings), likewise.dedup(frame, **settings)
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name
    assert local.stats["certificate"] == found.stats["certificate"]
    assert found.stats["counts"]["near"] > 20


def same_pairs(spark, rows, parts, seed):
    frame, whole = shuffled(spark, rows, parts, seed)
    settings = {**SETTINGS, "seed": seed, "threshold": 0.5}
    local, found = likewise.pairs(whole, **settings), likewise.pairs(frame, **settings)
    assert settled(local.table) == settled(found.table)
    assert len(found) > 20


@pytest.mark.soak
def test_dedup_of_posts(spark):
    """`make test` has it with Spark Connect."""
    same_dedup(spark, table(posts(1200)), 4, 2)


@pytest.mark.soak
def test_pairs_of_posts(spark):
    """`make test` has it with Spark Connect."""
    same_pairs(spark, table(posts(900)), 3, 1)


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("parts", [1, 5, 16])
@pytest.mark.parametrize("corpus", CORPORA)
def test_every_partitioning(spark, corpus, parts, seed):
    rows = table(CORPORA[corpus](3000, seed), seed)
    same_dedup(spark, rows, parts, seed)
    same_pairs(spark, rows, parts, seed)


@pytest.mark.soak
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", [1, 2])
def test_files_in_any_order(spark, tmp_path, seed):
    """Rows are those of the files as they are listed, whatever Spark reads first."""
    paths = []
    for number, piece in enumerate(cut(table(posts(3000, seed)), 6, seed)):
        paths.append(str(tmp_path / f"{(number * 5) % 7}.parquet"))
        pq.write_table(piece, paths[-1], row_group_size=100)
    settings = {"method": "lsh", "seed": seed, "keep": "longest"}
    local, found = likewise.dedup(paths, **settings), likewise.dedup(paths, engine="spark", **settings)
    for name in TABLES:
        assert settled(getattr(local, name)) == settled(getattr(found, name)), name


def on_local_cluster(command, given, out, *more):
    """Run a command in a process of its own: two executors of one core, each a process."""
    words = [sys.executable, "-m", "likewise", command, str(given), *more, "--method", "lsh", "--engine", "spark"]
    words += ["--master", "local-cluster[2,1,1024]", "--out", str(out)]
    done = subprocess.run(words, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_dedup_on_a_local_cluster(tmp_path):
    given, out = tmp_path / "given.parquet", tmp_path / "out"
    pq.write_table(table(skewed(900)), given, row_group_size=200)
    on_local_cluster("dedup", given, out, "--keep", "min:score")
    local = likewise.dedup(given, method="lsh", keep="min:score")
    for name in ("pairs", "removed", "clusters"):
        assert settled(getattr(local, name)) == settled(pq.read_table(out / f"{name}.parquet")), name
    assert settled(local.kept) == settled(pq.read_table(out / "kept"))


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_pairs_on_a_local_cluster(tmp_path):
    texts = posts(2000)
    given, other, out = tmp_path / "given.parquet", tmp_path / "other.parquet", tmp_path / "pairs.parquet"
    pq.write_table(table(texts[:800]), given)
    pq.write_table(table(texts[800:]), other, row_group_size=300)
    on_local_cluster("pairs", given, out, "--with", str(other))
    local = likewise.pairs(given, other, method="lsh")
    assert settled(local.table) == settled(pq.read_table(out))
    assert len(local) > 20
