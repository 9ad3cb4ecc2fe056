"""Samples of tables: against the whole table in memory."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.jobs.finished_run import StoredTable
from likewise.report.samples import (
    LARGEST,
    MEMBERS,
    PAIRS_OF_STRATUM,
    STRATA,
    StratifiedRows,
    sampled_clusters,
    sampled_pairs,
)


def stored(path, rows_of_group=1000, **columns):
    pq.write_table(pa.table(columns), path, row_group_size=rows_of_group)
    return StoredTable.at(path)


def test_every_row_of_a_stratum_has_the_same_chance():
    """4,000 samples of 5 of 20 rows: each is in a quarter of them, within five standard deviations."""
    counts = np.zeros(20)
    for seed in range(4000):
        chosen = StratifiedRows(5, seed)
        for start in (0, 7, 14):
            rows = np.arange(start, min(start + 7, 20))
            chosen.add(np.zeros(len(rows), np.int64), rows)
        assert len(chosen.rows) == 5
        counts[chosen.rows] += 1
    assert np.abs(counts / 4000 - 0.25).max() < 5 * np.sqrt(0.25 * 0.75 / 4000)


def test_pairs_of_every_stratum(tmp_path):
    chance = np.random.default_rng(3)
    values = np.concatenate([chance.beta(8, 1, 20_000) * 0.2 + 0.8, np.ones(500)])
    table = stored(
        tmp_path / "pairs.parquet", id_a=np.arange(len(values)), id_b=np.arange(len(values)), similarity=values
    )
    found = sampled_pairs(table, "similarity", (0.8, 1.0))
    assert found.counts.sum() == len(values)
    assert found.counts.tolist() == np.histogram(values, found.edges)[0].tolist()
    strata = [
        STRATA if row["similarity"] == 1 else int((row["similarity"] - 0.8) / 0.2 * STRATA) for row in found.pairs
    ]
    there = np.minimum((values - 0.8) / 0.2 * STRATA, STRATA - 1).astype(int)
    there[values == 1] = STRATA
    for stratum in range(STRATA + 1):
        assert strata.count(stratum) == min(PAIRS_OF_STRATUM, int((there == stratum).sum()))
    for row in found.pairs:
        assert row["similarity"] == values[row["id_a"]]


def test_of_few_pairs_all_are_shown(tmp_path):
    table = stored(tmp_path / "pairs.parquet", id_a=[1, 2, 3], id_b=[4, 5, 6], similarity=[0.8, 0.8, 1.0])
    assert [row["id_a"] for row in sampled_pairs(table, "similarity", None).pairs] == [1, 2, 3]


@pytest.mark.parametrize("values", [[0.5], [0.5, 0.5], [float("nan"), 1.0]])
def test_histograms_of_little(tmp_path, values):
    table = stored(tmp_path / "pairs.parquet", id_a=[0] * len(values), id_b=[1] * len(values), score=values)
    assert sampled_pairs(table, "score", None).counts.sum() == len(values)


def test_clusters(tmp_path):
    sizes = [1, 2, 2, 3, 9, 200, 1, 2, 64] + [2] * 300
    names = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(5).permutation(len(names))
    first = {name: int(np.flatnonzero(names[order] == name)[0]) for name in range(len(sizes))}
    cluster = np.array([first[name] for name in names[order].tolist()])
    table = stored(
        tmp_path / "clusters.parquet", 100, id=np.arange(len(order)), cluster=cluster,
        size=np.array(sizes)[names[order]], keeper=cluster,
    )  # fmt: skip
    seen = []
    found = sampled_clusters(table, lambda rows, batch: seen.extend(rows.tolist()))
    assert seen == list(range(len(order)))
    expected = np.unique([size for size in sizes if size > 1], return_counts=True)
    assert [found.sizes.tolist(), found.counts.tolist()] == [part.tolist() for part in expected]
    assert [one.size for one in found.clusters[:5]] == [200, 64, 9, 3, 2]
    assert LARGEST <= len(found.clusters) < 40
    for one in found.clusters:
        assert [row["id"] for row in one.members] == np.flatnonzero(cluster == one.name)[: MEMBERS + 1].tolist()


def test_a_folder_of_files_is_a_table(tmp_path):
    folder = tmp_path / "pairs.parquet"
    folder.mkdir()
    for part in range(3):
        stored(folder / f"part-{part}.parquet", n=[10 * part, 10 * part + 1])
    table = StoredTable.at(folder)
    assert table.rows == 6
    assert [row["n"] for row in table.take(np.array([1, 2, 5]))] == [1, 10, 21]
