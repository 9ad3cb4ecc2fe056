import os

import numpy as np
import pytest
from arrays_of import ints, numbers, parts, ragged, utf8
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import Sets
from likewise.families.minhash import METHODS, MinHash
from likewise.kernels import documents
from likewise.kernels.probe import Hits
from likewise.search.recall.sample import NO_HITS, NO_SAMPLE, make_sample
from likewise.shingle import Chars, StopWords, Words
from likewise.shingle.unicode import unicode_tables

SHINGLERS = [
    Words(2), Words(1, bag=True), Words(3, casefold=False, bits=32), Words(2, bag=True, bits=32),
    Chars(3), Chars(2, casefold=True, bag=True), Chars(2, whitespace="remove"), Chars(4, whitespace="keep", bits=32),
    StopWords("en", words=["b", "中"], k=2), StopWords("auto", letters=1, bag=True), StopWords(letters=2, bits=32),
]  # fmt: skip
CHECKED = os.environ.get("LIKEWISE_KERNEL_MODE") == "checked"
KEYED = [shingler for shingler in SHINGLERS if type(shingler) is Words] if CHECKED else SHINGLERS
"""The loop over documents is the same for all kinds of units, and compiling it for each of them takes long."""

TEXTS = st.lists(st.text(st.sampled_from("aAb \n中\u0301ßΐ."), max_size=14), max_size=5)
kinds = unicode_tables()[0]


def shingles(shingler, text):
    """All shingles of a document, repeated ones too."""
    return [x >> 64 - shingler.bits for x in oracles.document_shingles(shingler, text, kinds)]


def wide(shingler, text):
    """The set as kernels keep it: the copies of a bag have 64 bits even if shingles have 32."""
    values = shingles(shingler, text)
    return oracles.numbered(values) if shingler.bag else oracles.distinct(values)


@pytest.mark.parametrize("shingler", SHINGLERS, ids=repr)
@given(texts=TEXTS, before=st.binary(max_size=9))
def test_sets_of_documents(shingler, texts, before):
    data, offsets = utf8(texts, before)
    rows = ints(range(len(texts)))
    values, set_offsets = np.empty(len(data) * 2 + 9, np.uint64), np.empty(len(texts) + 1, np.int64)
    written = documents.set_documents(data, offsets, rows, shingler.recipe(), values, set_offsets)
    assert parts(values[:written], set_offsets) == [wide(shingler, text) for text in texts]


@pytest.mark.parametrize("room", range(12))
def test_sets_stop_before_the_document_that_does_not_fit(room):
    shingler, texts = Chars(2), ["abc", "abcdef", "", "xyz"]
    data, offsets = utf8(texts)
    values, set_offsets = np.empty(room, np.uint64), np.empty(5, np.int64)
    written = documents.set_documents(data, offsets, ints(range(4)), shingler.recipe(), values, set_offsets)
    ends = [end for end in (2, 7, 7, 9) if end <= room]
    assert numbers(set_offsets) == [0, *ends] + [-1] * (4 - len(ends))
    assert written == max([0, *ends])
    done = parts(values[:written], set_offsets[: len(ends) + 1])
    assert done == [oracles.document_set(shingler, text, kinds) for text in texts[: len(ends)]]


def neighbours(shingler, sample, texts, threshold):
    """(place in the sample, document, similarity) by definition."""
    found = []
    for i, a in enumerate(sample):
        for j, b in enumerate(texts):
            x, y = set(wide(shingler, a)), set(wide(shingler, b))
            if x and y and len(x & y) / len(x | y) >= threshold:
                found.append((i, j, len(x & y) / len(x | y)))
    return found


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shingler", KEYED, ids=repr)
@given(texts=TEXTS)
def test_keys_of_documents(shingler, method, texts):
    data, offsets = utf8(texts)
    rows = ints(range(0, len(texts), 2))
    minhash, bands, band_rows = MinHash(3, method), 2, 2
    keys, digests = np.empty((len(rows), bands), np.uint32), np.empty((len(rows), 2), np.uint64)
    seeds = minhash.seeds(bands * band_rows)
    sample = make_sample(Sets(*ragged([wide(shingler, text) for text in texts[:3]])), 0.5)
    hits = Hits(np.empty(50, np.int32), np.empty(50, np.int64), np.empty(50))
    recipe = shingler.recipe()
    done, count = documents.key_documents(
        data, offsets, rows, recipe, minhash.code, seeds, band_rows, keys, digests, sample, hits
    )
    assert done == len(rows)
    met = sorted(zip(*(part[:count].tolist() for part in hits), strict=True))
    assert met == neighbours(shingler, texts[:3], [texts[row] for row in rows], 0.5)
    for place, row in enumerate(rows):
        slots = oracles.signature(method, 3, wide(shingler, texts[row]), bands * band_rows)
        assert numbers(keys[place]) == oracles.band_keys(slots, band_rows)
        values = shingles(shingler, texts[row])
        assert numbers(digests[place]) == (oracles.digest_shingles(values, int(seeds[0])) if values else [0, 0])


def test_tables_grow_with_the_document():
    """More shingles than the first table holds, before and after small documents."""
    big = " ".join(str(i) for i in range(2500))
    for shingler in (Words(1), Words(1, bag=True)):
        texts = ["a b", big, "b a a"]
        data, offsets = utf8(texts)
        values, set_offsets = np.empty(4000, np.uint64), np.empty(4, np.int64)
        documents.set_documents(data, offsets, ints([0, 1, 2]), shingler.recipe(), values, set_offsets)
        assert parts(values, set_offsets) == [wide(shingler, text) for text in texts]
        keys, digests = np.empty((3, 1), np.uint32), np.empty((3, 2), np.uint64)
        minhash = MinHash(1, "classic")
        recipe, seeds = shingler.recipe(), minhash.seeds(1)
        documents.key_documents(
            data, offsets, ints([0, 1, 2]), recipe, minhash.code, seeds, 1, keys, digests, NO_SAMPLE, NO_HITS
        )
        for row, text in enumerate(texts):
            slots = oracles.classic_signature(wide(shingler, text), oracles.seed_sequence(1, 1), 1)
            assert numbers(keys[row]) == oracles.band_keys(slots, 1)


def test_keys_stop_before_the_document_whose_hits_may_not_fit():
    shingler, texts = Words(1), ["a b c"] * 5
    data, offsets = utf8(texts)
    sample = make_sample(Sets(*ragged([wide(shingler, "a b c")] * 2)), 0.9)
    keys, digests = np.zeros((5, 1), np.uint32), np.zeros((5, 2), np.uint64)
    minhash, hits = MinHash(1), Hits(np.empty(5, np.int32), np.empty(5, np.int64), np.empty(5))
    recipe, seeds = shingler.recipe(), minhash.seeds(1)
    got = documents.key_documents(data, offsets, ints(range(5)), recipe, 0, seeds, 1, keys, digests, sample, hits)
    assert got == (2, 4)
    assert list(zip(hits.sample[:4].tolist(), hits.document[:4].tolist(), strict=True)) == [
        (0, 0),
        (1, 0),
        (0, 1),
        (1, 1),
    ]
    assert (digests[2:] == 0).all()
