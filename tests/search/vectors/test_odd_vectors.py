"""Vectors of odd lengths, tables of odd shapes, copies in odd places."""

import naive_vectors as naive
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import likewise
from likewise import InputError, ParameterError
from likewise.errors import FormatError


def found(*tables, **options):
    return naive.listed(likewise.pairs(*tables, **options))


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["exact", "lsh"])
def test_short_vectors_among_long_ones(kind, method):
    rng = np.random.default_rng(1)
    long = rng.normal(size=(300, 8))
    short = (1e-60 if kind is np.float64 else 1e-30) * (long + 0.02 * rng.normal(size=long.shape))
    table = np.vstack([long, short]).astype(kind)
    target = {} if method == "exact" else {"recall": 0.9999}
    pairs = found(table, measure="angle", within=5, method=method, **target)
    assert sum(b - a == 300 for a, b in pairs) >= 299
    near = likewise.nearest(table, 1, method=method, **target).table
    assert near.num_rows == 600
    assert (np.abs(np.asarray(near["id_a"]) - np.asarray(near["id_b"])) == 300).mean() > 0.99


def test_copies_across_two_collections():
    """Every copy has a pair, though not all pairs of copies are listed."""
    ones = np.ones((1500, 3))
    pairs = found(ones, ones, measure="l2", within=1)
    assert {a for a, _ in pairs} == {b for _, b in pairs} == set(range(1500))
    assert len(pairs) == 2 * 1500 - 1
    top = likewise.pairs(ones, ones, measure="l2", within=1, k=2).table
    assert top.num_rows == 3000
    assert top["id_b"].to_pylist() == [0, 1] * 1500


def test_the_nearest_of_many_copies():
    table = np.ones((20_000, 4))
    table[5] = 2
    top = likewise.pairs(table, measure="l2", within=3, k=2).table
    assert top.num_rows == 40_000
    assert top.slice(10, 2).to_pylist() == [{"id_a": 5, "id_b": b, "distance": 2.0} for b in (0, 1)]
    assert top.slice(0, 2)["id_b"].to_pylist() == [1, 2]


def test_numbers_too_large_and_very_small():
    rng = np.random.default_rng(1)
    for call in (likewise.nearest, likewise.pairs):
        options = {"k": 1} if call is likewise.nearest else {"within": 1.0}
        with pytest.raises(InputError, match=r"vector 2 .*above 1e.100"):
            call(rng.normal(size=(5, 3)) * [[1], [1], [1e160], [1], [1]], measure="l2", **options)
    assert len(found(rng.normal(size=(5, 3)), measure="l2", within=1e200)) == 10
    assert found(np.array([[1e-200, 0], [0, 1e-200]]), measure="l2", within=0) == {}
    with pytest.raises(ParameterError, match="within"):
        likewise.pairs(np.ones((2, 2)), measure="l2", within=10**400)


@pytest.mark.parametrize("measure", ["angle", "l2", "l1", "hamming"])
def test_no_rows(measure):
    kind = bool if measure == "hamming" else np.float32
    nothing, table = np.zeros((0, 4), kind), np.ones((3, 4), kind)
    empty = pa.table({"vector": pa.array([], pa.list_(pa.uint8() if measure == "hamming" else pa.float32()))})
    for none in (nothing, [], empty):
        assert len(likewise.nearest(none, 2, measure=measure)) == 0
        assert len(likewise.pairs(none, measure=measure, within=0)) == 0
        assert len(likewise.pairs(table, none, measure=measure, within=0)) == 0
        assert len(likewise.nearest(none, 2, other=table, measure=measure)) == 0
        assert len(likewise.nearest(table, 2, other=none, measure=measure)) == 0


def test_chunks_without_rows():
    lists = pa.list_(pa.float32())
    column = pa.chunked_array([pa.array([], lists), pa.array([[1, 2], [1, 2]], lists)])
    assert found(pa.table({"vector": column}), measure="l2", within=0) == {(0, 1): 0.0}


def test_tight_clusters_are_settled_in_blocks():
    """Scores that rounding cannot tell apart are looked at exactly."""
    rng = np.random.default_rng(2)
    centres = np.repeat(rng.normal(size=(20, 64)), 30, axis=0)
    table = (centres + 1e-4 * rng.normal(size=centres.shape)).astype(np.float32)
    answer = likewise.nearest(table, 5, method="exact")
    truth = naive.nearest(table[:60], "angle", 5)
    assert np.asarray(answer.table["distance"])[:150] == pytest.approx([d for a, _, d in truth if a < 30], abs=1e-9)


def test_which_vector_of_which_collection():
    good, bad = np.ones((3, 2)), np.ones((3, 2))
    bad[1] = 0
    with pytest.raises(InputError, match=r"^vector 1 \(counted from 0\) of the other collection is all zeros"):
        likewise.pairs(good, bad, measure="angle", within=1)
    with pytest.raises(InputError, match=r"^vector 1 \(counted from 0\) of the other collection is all zeros"):
        likewise.nearest(good, 1, other=bad)
    with pytest.raises(InputError, match=r"^vector 1 \(counted from 0\) is all zeros"):
        likewise.nearest(bad, 1, other=good)


def test_ids_of_odd_types():
    vectors = [[1.0, 0], [1, 0.01]]
    names = pa.array(["x", "y"]).dictionary_encode()
    assert list(found(pa.table({"vector": vectors, "n": names}), measure="angle", within=5, id="n")) == [("x", "y")]
    for wrong in (pa.array([[1], [2]]), pa.array([{"a": 1}, {"a": 2}])):
        with pytest.raises(InputError, match="id column 'n' is"):
            likewise.pairs(pa.table({"vector": vectors, "n": wrong}), measure="angle", within=5, id="n")
    with pytest.raises(InputError, match=r"row 1 .*id of column 'n' is null"):
        likewise.pairs(pa.table({"vector": vectors, "n": ["a", None]}), measure="angle", within=5, id="n")


def test_series_and_masks():
    import pandas as pd
    import polars as pl

    lists = [[1.0, 0.0], [1.0, 0.01]]
    for series in (pd.Series(lists), pl.Series(lists), pl.Series("vector", lists)):
        assert list(found(series, measure="angle", within=5)) == [(0, 1)]
    with pytest.raises(ParameterError, match="mask"):
        likewise.pairs(np.ma.array(lists, mask=[[0, 1], [0, 0]]), measure="angle", within=5)
    with pytest.raises(ParameterError, match="'threshold' parameter of pairs has no effect"):
        likewise.pairs(lists, measure="angle", within=5, threshold=0.9)


@pytest.mark.parametrize("shape", [(4, 5), (2, 5, 2), (4, 5, 1)])
def test_a_stack_of_images_is_a_vector_of_pixels_each(shape, tmp_path):
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (40, *shape)).astype(np.uint8)
    images[7] = images[3] + 1
    flat = images.reshape(40, -1)
    expected = found(flat, measure="l2", within=900)
    assert (3, 7) in expected
    assert found(images, measure="l2", within=900) == expected
    assert found(images.tolist(), measure="l2", within=900) == expected
    np.save(tmp_path / "images.npy", images)
    assert found(tmp_path / "images.npy", measure="l2", within=900) == expected
    assert likewise.nearest(images, 2, measure="l1").to_pylist() == likewise.nearest(flat, 2, measure="l1").to_pylist()
    bits = images > 128
    assert found(bits, measure="hamming", within=9) == found(bits.reshape(40, -1), measure="hamming", within=9)
    queries = likewise.nearest(images[:2], 1, other=flat, measure="l2").to_pylist()
    assert [row["id_b"] for row in queries] == [0, 1]


def test_what_is_no_stack_of_images():
    for shape in ((2, 3, 4, 5, 6), (3, 0, 4), ()):
        with pytest.raises(InputError, match="one row per vector, or a stack of images"):
            likewise.pairs(np.zeros(shape), measure="l2", within=1)
    with pytest.raises(ParameterError, match="components"):
        likewise.pairs(np.zeros((2, 3, 4)), np.zeros((2, 3, 5)), measure="l2", within=1)
    with pytest.raises(
        ParameterError, match=r"images of shape \(3, 4\) cannot be compared with images of shape \(4, 3\)"
    ):
        likewise.pairs(np.zeros((2, 3, 4)), np.zeros((2, 4, 3)), measure="l2", within=1)
    assert len(likewise.pairs(np.zeros((0, 3, 4)), measure="l2", within=1)) == 0


def test_a_damaged_name_of_a_column(tmp_path):
    table = pa.table({"vector": [[1.0, 2.0], [3.0, 4.0]], "nameless": [1, 2]})
    feather.write_feather(table, tmp_path / "a.arrow", compression="uncompressed")
    data = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(data.replace(b"nameless", b"\xffameless"))
    with pytest.raises(FormatError, match=r"a\.arrow: cannot be read as arrow"):
        likewise.nearest(str(tmp_path / "a.arrow"), k=1)
