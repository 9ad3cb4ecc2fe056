import re
from itertools import permutations

import numpy as np
import pytest
from arrays_of import WORDS_64, Opened, hashes, numbers, utf8
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.kernels import hashing, text
from likewise.shingle import Chars, Words
from likewise.shingle.unicode import unicode_tables

hashing = Opened(hashing)
text = Opened(text)

POINTS = [0, 0x41, 0x7F, 0x80, 0xDF, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x1F600, 0x10FFFF]
SEED = 2**63 + 7
KEPT = re.compile(rb"[0-9A-Za-z_\x80-\xff]")


@given(st.lists(st.sampled_from(POINTS) | st.characters(codec="utf-8").map(ord), min_size=1, max_size=8))
def test_decode_reads_what_python_wrote(points):
    data, _ = utf8(["".join(map(chr, points))])
    i, found = np.uint64(0), []
    while i < data.size:
        point, i = text.decode(data, i)
        found.append(int(point))
    assert found == points


@given(st.text(st.sampled_from(POINTS).map(chr) | st.characters(codec="utf-8"), max_size=12))
def test_absorbing_points_is_hashing_their_utf8(document):
    state = hashing.WORD_SEED, np.uint64(0), np.uint64(0)
    for char in document:
        state = tuple(map(np.uint64, text.absorb_point(*state, np.int64(ord(char)))))
    assert int(hashing.finish(*state)) == oracles.hash_bytes(document.encode())


@pytest.mark.parametrize("lower", [False, True])
def test_fold_ascii_of_every_byte(lower):
    every = bytes(range(256))
    data, _ = utf8([every])
    out = np.empty(256, np.uint8)
    assert text.fold_ascii(data, lower, out)
    kept = bytes(c if KEPT.match(bytes([c])) else 0 for c in every)
    assert out.tobytes() == (kept.lower() if lower else kept)
    assert not text.fold_ascii(data[:128], lower, out[:128])
    assert not text.fold_ascii(data[:0], lower, out[:0])


@given(st.text(st.sampled_from("\0\0ab\xe9"), max_size=150) | st.integers(0, 140).map("a".__mul__))
def test_find_runs(document):
    data = document.encode("latin-1")
    size = len(data)
    folded = np.zeros(size // 64 * 8 + 16, np.uint64)
    folded.view(np.uint8)[:size] = np.frombuffer(data, np.uint8)
    out = np.full(size + 2 + 2 * text.AT_ONCE, -1)
    count = text.find_runs(folded, size, out)
    runs = [end for run in re.finditer(rb"[^\0]+", data) for end in run.span()]
    assert numbers(out[:count]) == runs
    assert (out[count + text.AT_ONCE :] == -1).all()


def kernel_words(document, casefold=True, before=b""):
    data, offsets = utf8([document], before)
    tables = Words(1, casefold=casefold).recipe().units
    size = int(offsets[1] - offsets[0])
    room = np.empty(size + size // 8 + 40, np.uint64)
    out = np.empty(size // 2 + 1, np.uint64)
    n = text.words(data, offsets[0], offsets[1], casefold, tables.kinds, tables.folds, tables.expansions, room, out)
    return numbers(out[:n])


def kernel_chars(document, shingler):
    data, offsets = utf8([document])
    tables = shingler.recipe().units
    out = np.empty(data.size + data.size // 2 + 1, np.uint64)
    n = text.chars(
        data, offsets[0], offsets[1], tables.ascii_hashes, tables.whitespace, tables.kinds, tables.folds,
        tables.expansions, out,
    )  # fmt: skip
    return numbers(out[:n])


TRICKY = st.text(st.sampled_from("aB9_ .\0\n\u00a0\u2028éßİΐﬃ中文アー\u0301กำ\u0e48\U00020000\U0001f600"), max_size=40)


@given(TRICKY, st.booleans(), st.binary(max_size=9))
def test_words(document, casefold, before):
    expected = oracles.words(Words(1, casefold=casefold), document, unicode_tables()[0])
    found = kernel_words(document, casefold, before)
    assert found == [oracles.hash_bytes(word.encode()) for word in expected]


@pytest.mark.parametrize(
    "document",
    ["", "a", "a" * 7, "a" * 8, "a" * 9, "b" * 64, "b" * 65, "x " * 64, "x" * 63 + " y", "x" * 64 + " y", "x" * 300,
     "a中" * 9, "中a" * 9, "é" * 70, "a" * 60 + "éa" * 9, "́́", "中́á", "ΐ" * 33, "ﬃ" * 33],
)  # fmt: skip
def test_words_at_the_edges(document):
    expected = oracles.words(Words(1), document, unicode_tables()[0])
    assert kernel_words(document) == [oracles.hash_bytes(word.encode()) for word in expected]


@pytest.mark.parametrize("casefold", [False, True])
@pytest.mark.parametrize("whitespace", ["collapse", "keep", "remove"])
@given(document=TRICKY)
def test_chars(document, whitespace, casefold):
    shingler = Chars(1, whitespace=whitespace, casefold=casefold)
    expected = oracles.chars(shingler, document, unicode_tables()[0])
    assert kernel_chars(document, shingler) == [oracles.mix(oracles.WORD_SEED ^ ord(char)) for char in expected]


@given(st.lists(WORDS_64, max_size=12), st.integers(1, 14))
def test_shingles_roll(units, k):
    out = np.empty(max(1, len(units)), np.uint64)
    count = text.shingles(hashes(units), len(units), k, out)
    assert numbers(out[:count]) == oracles.shingle_hashes(units, k)


def shingle_digest(values):
    out = np.empty(2, np.uint64)
    text.digest_shingles(hashes(values), len(values), np.uint64(SEED), out)
    return numbers(out)


@given(st.lists(WORDS_64, max_size=9))
def test_digests_of_shingles(values):
    assert shingle_digest(values) == oracles.digest_shingles(values, SEED)


def test_digests_tell_documents_with_reordered_words_apart():
    """The sum of their shingles is the same: the words inside stand at every place of a shingle once."""
    first, *inside, last = (oracles.hash_bytes(word.encode()) for word in ["once", "there", "was", "a", "time", "when"])
    orders = [shingle_digest(oracles.shingle_hashes([first, *order, last], 2)) for order in permutations(inside)]
    assert len({a for a, _ in orders}) == len({b for _, b in orders}) == len(orders)
