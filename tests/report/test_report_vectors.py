"""The page of dedup of vectors: distances, and what the rows say."""

import html
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise

BASE = np.random.default_rng(2).standard_normal((60, 8)).astype(np.float32)
VECTORS = np.concatenate([BASE, BASE[:5], BASE[5:60] + np.float32(0.01)])
PATHS = [f"pictures/{number}.jpg" for number in range(len(VECTORS))]


def words(page):
    """Return the text of a page."""
    bare = re.sub(r"<(style|script).*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", bare)))


@pytest.fixture
def run(tmp_path):
    table = pa.table({"id": np.arange(len(VECTORS)), "path": [None, *PATHS[1:]], "vector": list(VECTORS)})
    pq.write_table(table, tmp_path / "pictures.parquet")
    options = {"id": "id", "measure": "angle", "within": 5, "method": "lsh", "certify": 120}
    likewise.dedup(tmp_path / "pictures.parquet", **options, out=tmp_path / "clean")
    return tmp_path / "clean"


def test_rows_are_shown_beside_the_distance(run):
    told = words(likewise.write_report(run))
    assert "60 of 120 vectors are duplicates and were removed" in told
    assert "Every removed vector is within 5 of a kept one (angle in degrees)." in told
    assert "Measured on 120 random vectors" in told
    assert "Distance of the pairs" in told
    assert PATHS[64] in told


def test_without_the_input_there_are_distances_only(run):
    (run.parent / "pictures.parquet").unlink()
    told = words(likewise.write_report(run))
    assert "What the rows say is not shown" in told
    assert "Browse pairs" in told
    assert PATHS[64] not in told


def test_an_array_has_a_page(tmp_path):
    likewise.dedup(VECTORS, measure="l2", within=0.1, keep="none").save(tmp_path / "clean")
    told = words(likewise.write_report(tmp_path / "clean"))
    assert "Every removed vector is within 0.1 of another (l2 distance)." in told
    assert "Every pair within 0.1 was found (exact method)." in told
    with pytest.raises(likewise.ParameterError, match="'by' parameter has no effect"):
        likewise.write_report(tmp_path / "clean", by="path")
