"""Band keys in memory and in a file: what was written is read back, whole or some rows of it."""

import itertools
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.search.band_keys import HeldKeys, StoredKeys

EDGES = [0, 1, 2**31 - 1, 2**31, 2**32 - 1]
MATRICES = st.integers(1, 6).flatmap(
    lambda bands: st.lists(
        st.lists(st.sampled_from(EDGES) | st.integers(0, 2**32 - 1), min_size=bands, max_size=bands), min_size=1
    )
)


def matrix_of(rows):
    return np.array(rows, np.uint32).reshape(len(rows), -1)


def held(rows, folder):
    return HeldKeys(matrix_of(rows))


def stored(rows, folder):
    keys = HeldKeys(matrix_of(rows))
    keys.save(folder / "keys")
    return StoredKeys(folder / "keys", keys.items, keys.bands)


def empty_held(items, bands, folder):
    return HeldKeys(np.zeros((items, bands), np.uint32))


def empty_stored(items, bands, folder):
    return StoredKeys.create(folder / "keys", items, bands)


KINDS = {"held": held, "stored": stored}
MAKERS = {"held": empty_held, "stored": empty_stored}
every_kind = pytest.mark.parametrize("kind", KINDS)


def read(keys):
    """All keys, one row an item."""
    return np.stack([keys.column(band) for band in range(keys.bands)], axis=1).tolist()


@every_kind
@given(rows=MATRICES, data=st.data())
def test_what_is_put_is_read_back(kind, rows, data):
    """Blocks of items are written in any order."""
    with tempfile.TemporaryDirectory() as folder:
        keys = MAKERS[kind](len(rows), len(rows[0]), Path(folder))
        assert (keys.items, keys.bands) == (len(rows), len(rows[0]))
        cuts = sorted({0, len(rows), *data.draw(st.lists(st.integers(0, len(rows)), max_size=4))})
        blocks = data.draw(st.permutations(list(itertools.pairwise(cuts))))
        for start, stop in blocks:
            room = keys.room(slice(start, stop))
            assert room.shape == (stop - start, keys.bands)
            assert room.dtype == np.uint32
            room[:] = matrix_of(rows)[start:stop]
            keys.put(slice(start, stop), room)
        if isinstance(keys, StoredKeys):
            keys.close()
            keys.close()
            os.rename(Path(folder) / "keys", Path(folder) / "moved")
            keys = keys.moved(Path(folder) / "moved")
        assert read(keys) == rows


@every_kind
@given(rows=MATRICES, data=st.data())
def test_some_rows_and_some_of_these(kind, rows, data):
    with tempfile.TemporaryDirectory() as folder:
        keys = KINDS[kind](rows, Path(folder))
        first = data.draw(st.sets(st.sampled_from(range(len(rows)))).map(sorted))
        chosen = keys.chosen(np.array(first, np.int64))
        assert (chosen.items, chosen.bands) == (len(first), keys.bands)
        assert read(chosen) == [rows[row] for row in first]
        second = sorted(data.draw(st.sets(st.sampled_from(range(len(first)))))) if first else []
        again = chosen.chosen(np.array(second, np.int64))
        assert read(again) == [rows[first[row]] for row in second]
        again.save(Path(folder) / "again")
        assert read(StoredKeys(Path(folder) / "again", len(second), keys.bands)) == read(again)
        assert read(keys) == rows


@every_kind
def test_only_keys_in_memory_have_a_matrix(kind, tmp_path):
    keys = KINDS[kind]([[1, 2], [3, 4]], tmp_path)
    assert (keys.matrix is not None) == (kind == "held")


def test_columns_are_contiguous(tmp_path):
    for make in KINDS.values():
        column = make([[1, 2], [3, 4]], tmp_path).column(1)
        assert column.flags.c_contiguous
        assert column.dtype == np.uint32


def test_the_file_is_band_after_band(tmp_path):
    stored([[1, 2], [3, 4], [2**32 - 1, 0]], tmp_path)
    assert np.fromfile(tmp_path / "keys", "<u4").tolist() == [1, 3, 2**32 - 1, 2, 4, 0]


def short(write, most):
    """A write that takes only so many bytes at a time, as the system may do at any time."""

    def written(handle, content, place):
        return write(handle, bytes(content)[:most], place)

    return written


def test_a_write_that_takes_only_a_part_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "pwrite", short(os.pwrite, 7))
    rows = np.random.default_rng(1).integers(0, 2**32, (50, 3), dtype=np.uint32)
    keys = StoredKeys.create(tmp_path / "keys", *rows.shape)
    keys.put(slice(0, 50), rows)
    keys.close()
    assert read(keys) == rows.tolist()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
@pytest.mark.parametrize("items", [10, 100_000])
def test_a_full_disk_is_never_silent(items, tmp_path):
    (tmp_path / "keys").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        HeldKeys(np.zeros((items, 1), np.uint32)).save(tmp_path / "keys")
