import numpy as np
import pytest
from arrays_of import EDGES, WORDS_64, Opened, hashes, ints, numbers, utf8
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base.arrays import TextChunk
from likewise.kernels import hashing

hashing = Opened(hashing)

LENGTHS = [*range(34), 255, 256, 257, 300]


def test_the_constants_are_those_of_the_oracle():
    assert int(hashing.WORD_SEED) == oracles.WORD_SEED
    assert int(hashing.STREAM_ODD) == oracles.STREAM_ODD


@given(WORDS_64)
def test_mix_is_splitmix(x):
    assert int(hashing.mix(np.uint64(x))) == oracles.mix(x)


def test_mix_of_splitmix_stream_is_the_published_one():
    """The first outputs of SplitMix64 seeded with 1234567, as in its author's test vectors."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert oracles.seed_sequence(1234567, 4) == published


def test_mix_is_a_bijection_on_what_we_can_try():
    assert len({int(hashing.mix(np.uint64(x))) for x in EDGES}) == len(EDGES)


@given(st.lists(WORDS_64, max_size=20), WORDS_64)
def test_mix_all(values, seed):
    out = np.empty(len(values), np.uint64)
    hashing.mix_all(hashes(values), np.uint64(seed), out)
    assert numbers(out) == [oracles.mix(x ^ seed) for x in values]


@given(st.binary(max_size=40), st.integers(0, 9))
def test_hash_bytes(text, start):
    data, _ = utf8([text], before=b"\xff" * start)
    assert int(hashing.hash_bytes(data, start, start + len(text))) == oracles.hash_bytes(text)


@pytest.mark.parametrize("length", LENGTHS)
def test_hash_bytes_of_every_length(length):
    text = bytes((7 * i + 200) % 256 for i in range(length))
    data, _ = utf8([text])
    assert int(hashing.hash_bytes(data, 0, length)) == oracles.hash_bytes(text)


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_hash_strings(texts):
    out = np.empty(len(texts), np.uint64)
    hashing.hash_strings(*utf8(texts), out)
    assert numbers(out) == [oracles.hash_bytes(text) for text in texts]


def digests(texts, before=b""):
    chunk = TextChunk(*utf8(texts, before))
    out = np.empty((len(texts), 2), np.uint64)
    hashing.digest_strings(chunk.eights, chunk.data, chunk.offsets, ints(range(len(texts))), out)
    return [tuple(numbers(row)) for row in out]


def samples(texts, before=b""):
    out = np.empty(len(texts), np.uint64)
    hashing.digest_samples(*utf8(texts, before), out)
    return numbers(out)


def sampled(text):
    """The bytes looked at: eight at each of eight places from the beginning to the end."""
    last = max(0, len(text) - 8)
    h = oracles.mix(oracles.WORD_SEED ^ len(text))
    for j in range(8):
        h = oracles.mix(h ^ oracles.hash_bytes(text[last * j // 7 :][:8]))
    return h


@given(st.lists(st.binary(max_size=90), max_size=6), st.binary(max_size=17))
def test_samples(texts, before):
    assert samples(texts, before) == [sampled(text) for text in texts]


def test_only_the_rows_asked_for_are_digested():
    chunk = TextChunk(*utf8([b"one", b"two", b"three"]))
    out = np.zeros((3, 2), np.uint64)
    hashing.digest_strings(chunk.eights, chunk.data, chunk.offsets, ints([2, 0]), out)
    assert [tuple(numbers(row)) for row in out] == [digests([b"one"])[0], (0, 0), digests([b"three"])[0]]


@given(st.lists(st.binary(max_size=50), max_size=6), st.integers(0, 17))
def test_digests_depend_on_the_bytes_alone(texts, start):
    """Not on where the document lies in the buffer, nor on its neighbours."""
    alone = [digests([text])[0] for text in texts]
    assert digests(texts, b"\xab" * start) == alone
    for i, j in zip(*np.triu_indices(len(texts)), strict=True):
        assert (alone[i] == alone[j]) == (texts[i] == texts[j])


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 24, 31, 33])
def test_digests_see_every_bit_and_the_order_of_blocks(length):
    text = bytes(length)
    variants = {text, text + b"\0", text[1:]}
    variants |= {text[:i] + bytes([1 << bit]) + text[i + 1 :] for i in range(length) for bit in range(8)}
    halves = {column for digest in digests(sorted(variants)) for column in enumerate(digest)}
    assert len(halves) == 2 * len(variants), "each half of the fingerprint tells them apart by itself"
