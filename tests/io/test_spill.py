"""Documents in a file: every chunk comes back as it was, and in its place."""

import io
import tempfile
import threading
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise.base.arrays import TextChunk, Texts
from likewise.base.copies import chunk_digests
from likewise.io import spill
from likewise.io.spill import Spill, TextBuilder, stored_texts

TEXTS = st.lists(st.text(max_size=9) | st.sampled_from(["", "\0", "é中\U0001f600", "a" * 300]), max_size=8)


def chunk_of(texts, before=(), after=()):
    """A chunk that is a slice of a longer array, so that its offsets do not start at 0."""
    whole = pa.array([*before, *texts, *after], pa.string())
    return TextChunk.from_arrow(whole.slice(len(before), len(texts)))


def texts_of(chunk):
    return [chunk.text(i) for i in range(len(chunk))]


CHUNKS = st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=6)


def stored(chunks, folder, threads):
    path = Path(folder) / "texts"
    with open(path, "wb") as out:
        packing = Spill(out, threads)
        for chunk in chunks:
            packing.add(chunk)
        packed = packing.finish()
    return stored_texts(path, packed.chunks, lambda: packed.digests)


@given(CHUNKS, st.integers(1, 3), st.integers(1, 400))
@example([([], [], [])], 1, 1)
@example([(["x"], [], ["y"]), (["abc"], ["", "", ""], [])], 2, 1)
def test_documents_come_back_in_pieces(made, threads, size):
    chunks = [chunk_of(texts, before, after) for before, texts, after in made]
    expected = [text for _, texts, _ in made for text in texts]
    longest = max((len(text.encode()) for text in expected), default=0)
    with tempfile.TemporaryDirectory() as folder, patch.object(spill, "PIECE", size):
        back = stored(chunks, folder, threads)
        assert [back[row] for row in range(len(back))] == expected
        assert back.digests().tolist() == chunk_digests(chunk_of(expected)).tolist()
        for chunk in back.chunks:
            loaded = chunk.load()
            assert len(loaded.data) < size + longest
            assert loaded.offsets[0] == 0
            assert loaded.offsets.dtype == np.int64
            assert len(loaded.data) == loaded.offsets[-1]
            assert loaded.data.ctypes.data % 8 == 0, "kernels read eight bytes at a time"
            assert not loaded.data.flags.writeable


def test_no_chunks(tmp_path):
    assert len(stored([], tmp_path, 2)) == 0


def test_text_is_packed(tmp_path):
    texts = ["the very same words "] * 5000
    stored([chunk_of(texts)], tmp_path, 1)
    assert (tmp_path / "texts").stat().st_size < 20 * 5000 / 4


class Slow(io.BytesIO):
    """A file on a disk that is slower than any core."""

    def write(self, content):
        time.sleep(0.03)
        return super().write(content)


def test_text_is_packed_more_while_the_disk_is_waited_for(tmp_path):
    words = np.random.default_rng(2).integers(0, 2000, (40, 500))
    chunks = [chunk_of([" ".join(f"word{number}" for number in row)]) for row in words]
    slow, path = Slow(), tmp_path / "texts"
    with patch.object(spill, "WINDOW", 8):
        packing = Spill(slow, 1)
        for chunk in chunks:
            packing.add(chunk)
        packed = packing.finish()
    path.write_bytes(slow.getvalue())
    back = stored_texts(path, packed.chunks)
    assert [back[row] for row in range(40)] == [chunk.text(0) for chunk in chunks]
    codecs = [chunk.codec for chunk in back.chunks]
    assert codecs[:8] == [0] * 8
    assert codecs[-8:] == [1] * 8, "each took some hundred times as long to write as to pack"
    sizes = [chunk.stop - chunk.start for chunk in back.chunks]
    assert max(sizes[-8:]) < min(sizes[:8])


def test_noise_that_cannot_be_packed(tmp_path):
    random = np.random.default_rng(1)
    texts = ["".join(map(chr, random.integers(32, 0xD7FF, 5000))) for _ in range(20)]
    [back] = stored([chunk_of(texts)], tmp_path, 1).chunks
    assert texts_of(back.load()) == texts


def no_packers():
    return not [thread for thread in threading.enumerate() if thread.name.startswith("likewise-pack")]


class Full(io.BytesIO):
    """A file on a disk that is soon full."""

    def write(self, content):
        if self.tell() > 100:
            raise OSError(28, "No space left on device")
        return super().write(content)


def test_an_error_of_the_disk_comes_out_and_leaves_no_thread():
    packing, added = Spill(Full(), 2), []

    def add_all():
        for number in range(1000):
            added.append(number)
            packing.add(chunk_of([str(number) * 50]))

    with pytest.raises(OSError, match="No space left"):
        add_all()
    assert len(added) < 20
    packing.close()
    assert no_packers()


# in memory as long as there is room


@given(CHUNKS, st.none() | st.integers(0, 400), st.integers(1, 3), st.sampled_from([0, 7]))
def test_documents_go_to_a_file_when_there_are_too_many(made, limit, threads, each):
    chunks = [chunk_of(texts, before, after) for before, texts, after in made]
    total = sum(len(text.encode()) for _, texts, _ in made for text in texts)
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "texts", "wb") as out:
        begun = []
        builder = TextBuilder(limit, lambda: begun.append(True) or out, threads, each)
        for chunk in chunks:
            builder.add(chunk)
        held, packed = builder.finish()
        out.flush()
        assert builder.bytes == total
        spilled = limit is not None and total + each * sum(map(len, chunks)) > limit
        assert begun == [True] * spilled
        assert (packed is not None) == builder.packing == spilled
        assert not (spilled and held), "nothing stays in memory"
        texts = stored_texts(Path(folder) / "texts", packed.chunks) if spilled else Texts(held)
        assert [texts[row] for row in range(len(texts))] == [text for _, texts, _ in made for text in texts]
        builder.close()
    assert no_packers()


def test_the_file_is_begun_when_the_limit_is_passed_and_not_before(tmp_path):
    moments = []
    with open(tmp_path / "texts", "wb") as out:
        builder = TextBuilder(10, lambda: moments.append(builder.bytes) or out, 1)
        for text in ("12345", "67890", "", "x", "more"):
            builder.add(chunk_of([text]))
        builder.finish()
    assert moments == [11]


def test_a_builder_that_is_given_up_leaves_no_thread(tmp_path):
    with open(tmp_path / "texts", "wb") as out:
        builder = TextBuilder(0, lambda: out, 3)
        builder.add(chunk_of(["a"]))
        builder.close()
        builder.close()
    assert no_packers()
