"""Keys of lines and paragraphs: equal for equal words and for no others, and divided as Python divides a text."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from likewise.base.arrays import TextChunk
from likewise.kernels.documents import WordUnits
from likewise.kernels.line_units import LOW, MOST_WORDS, WORDS_BITS, copy_without, unit_keys
from likewise.kernels.sorting import group_rows
from likewise.shingle.unicode import fold, folding_tables, split_words

UNITS = WordUnits(True, *folding_tables(True))
PIECES = st.sampled_from(
    [
        "a",
        "B",
        "ab",
        "abcdefgh",
        "abcdefghi",
        "straße",
        "ΐ",
        "中",
        "中́",
        "x中y",
        "_1",
        " ",
        ", ",
        "\n",
        "\r\n",
        "\u00a0",
        "—",
    ]
)
TEXTS = st.lists(st.lists(PIECES, max_size=9).map("".join), max_size=4)


def words_of(text):
    return tuple(fold(word) for word in split_words(text))


def keys_of(texts, paragraphs=False, least=1):
    chunk = TextChunk.from_arrow(pa.array(texts, pa.large_string()))
    rows = np.empty((len(chunk.data) + len(chunk) + 1, 4), np.uint64)
    words = np.empty(len(chunk), np.int64)
    count = unit_keys(chunk.data, chunk.offsets, 7, UNITS, paragraphs, least, rows, words)
    return rows[:count], words


@given(TEXTS)
def test_lines_with_the_same_words_have_the_same_key_and_no_others(texts):
    rows, numbers = keys_of(texts)
    assert numbers.tolist() == [len(words_of(text)) for text in texts]
    seen = {}
    for a, b, about, place in rows.tolist():
        text = texts[(about >> WORDS_BITS) - 7].encode()[place >> 32 : place & int(LOW)].decode()
        assert "\n" not in text
        words = words_of(text)
        assert about & int(MOST_WORDS) == len(words) > 0
        assert seen.setdefault((a, b), words) == words
    assert len(seen) == len(set(seen.values()))
    lines = [line for text in texts for line in text.split("\n") if words_of(line)]
    assert len(rows) == len(lines)


def test_different_divisions_of_the_same_letters_differ():
    texts = [
        "abcdefgh i",
        "abcdefghi",
        "abcdefg hi",
        "a bcdefghi",
        "abcdefgh",
        "abcdefgh\0",
        "i abcdefgh",
        "abcdefghi abcdefghi",
    ]
    rows, _ = keys_of(texts)
    assert len(np.unique(rows[:, :2], axis=0)) == len({words_of(text) for text in texts})


@given(st.lists(st.integers(0, 4), max_size=20))
def test_rows_by_group(groups):
    rows = np.arange(2 * len(groups)).reshape(-1, 2)
    out, bounds = np.empty_like(rows), np.empty(6, np.int64)
    group_rows(rows, np.array(groups, np.int64), out, bounds)
    order = np.argsort(np.array(groups, np.int64), kind="stable")
    assert out.tolist() == rows[order].tolist()
    assert bounds.tolist() == [sum(group < g for group in groups) for g in range(6)]


def test_texts_without_spans():
    chunk = TextChunk.from_arrow(pa.array(["abcdef", "", "ghi"], pa.large_string()))
    out, offsets = np.empty(9, np.uint8), np.empty(4, np.int64)
    spans = np.array([[0, 1], [3, 5], [1, 2]])
    copy_without(chunk.data, chunk.offsets, np.array([0, 2]), np.array([0, 2, 3]), spans, out, offsets)
    assert (out[: offsets[-1]].tobytes(), offsets.tolist()) == (b"bcfgi", [0, 3, 3, 5])
