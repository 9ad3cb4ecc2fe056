"""Signatures know how they were made, refuse those made otherwise, and keep in files."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import BitSignatures, MinHash, Signatures, WeightedMinHash
from likewise.errors import FormatError, IncompatibleError, MissingInput, OutputError, ParameterError
from likewise.families.signatures import Maker, estimate_bbit

SETS = [["a", "b"], ["b", "c"], []]
DATA = Path(__file__).parents[1] / "data"
MAKERS = {
    "fast": MinHash(1),
    "seed": MinHash(2),
    "classic": MinHash(1, "classic"),
    "weighted": WeightedMinHash(1),
}


def test_signatures_are_arrays_that_know_their_maker():
    found = MinHash(7, "classic").signatures(SETS, 16)
    assert isinstance(found, np.ndarray)
    assert (found.shape, found.dtype) == ((3, 16), np.uint32)
    assert found.maker == Maker("MinHash", "classic", 7, 16)
    assert found[0].maker == found[[2, 0]].maker == found[1:].maker == found.copy().maker == found.maker
    assert found[:, :5].maker is None
    assert found.astype(np.uint64).maker is None
    for plain in (found + 1, found == found, found.sum(axis=0), np.minimum(found, found)):
        assert type(plain) is np.ndarray
    assert type(MinHash().hashes(SETS, 16)) is np.ndarray


def test_rows_are_put_together_only_if_made_alike():
    a, b = MinHash().signatures(SETS, 8), MinHash().signatures([["x"]], 8)
    for together in (np.vstack([a, b]), np.concatenate([a, b]), np.concatenate((b, a), axis=0)):
        assert together.maker == a.maker
        assert len(together) == 4
    assert type(np.concatenate([a, a], axis=1)) is np.ndarray
    with pytest.raises(IncompatibleError, match=r"seed=1.*seed=2.*cannot be put together"):
        np.vstack([a, MinHash(2).signatures(SETS, 8)])


@pytest.mark.parametrize("one", MAKERS)
@pytest.mark.parametrize("other", MAKERS)
def test_only_signatures_made_alike_are_compared(one, other):
    a, b = MAKERS[one].signatures(SETS, 8), MAKERS[other].signatures(SETS, 8)
    for estimate in (MinHash.estimate, WeightedMinHash.estimate):
        if one == other:
            assert estimate(a[0], b[0]) == 1.0
            continue
        with pytest.raises(IncompatibleError, match="cannot be compared"):
            estimate(a[0], b[0])
    with pytest.raises(IncompatibleError):
        MinHash.estimate(a[0], MAKERS[other].signatures(SETS, 9)[0])
    with pytest.raises(IncompatibleError, match="unknown maker"):
        MinHash.estimate(a[0], np.asarray(b[0]).view(np.ndarray))


def test_arrays_without_a_maker_are_compared_with_each_other():
    assert MinHash.estimate(np.array([1, 2]), np.array([1, 3])) == 0.5
    for wrong in (np.array([0.5]), np.array(["a"]), "a", 1, None):
        with pytest.raises(ParameterError, match=r"'a' parameter of MinHash\.estimate"):
            MinHash.estimate(wrong, wrong)
    with pytest.raises(IncompatibleError):
        MinHash.estimate(np.zeros(0, int), np.zeros(0, int))


@pytest.mark.parametrize("method", ["fast", "classic"])
def test_only_parts_of_one_maker_are_merged(method):
    minhash = MinHash(1, method)
    a, b = minhash.parts(SETS, 8), MinHash(2, method).parts(SETS, 8)
    for parts in ((a, b), (b,), (b, b)):
        with pytest.raises(IncompatibleError, match="seed=2"):
            minhash.merge(*parts)
    with pytest.raises(IncompatibleError, match="seed=2"):
        minhash.finish(b)
    merged = minhash.finish(minhash.merge(a, minhash.parts(SETS[::-1], 8)))
    whole = minhash.signatures([["a", "b"], ["b", "c"], ["a", "b"]], 8)
    assert merged.maker == whole.maker
    assert MinHash.estimate(merged[0], whole[0]) == 1.0
    if method == "fast":
        with pytest.raises(IncompatibleError, match="cannot be compared"):
            MinHash.estimate(a[0], minhash.signatures(SETS, 8)[0])


def test_a_copy_in_another_process_knows_its_maker():
    found = MinHash().signatures(SETS, 8)
    again = pickle.loads(pickle.dumps(found))
    assert again.maker == found.maker
    assert (again == found).all()


@pytest.mark.parametrize("one", MAKERS)
def test_signatures_in_a_file(tmp_path, one):
    found = MAKERS[one].signatures(SETS, 9)
    path = found.save(tmp_path / "some.sig")
    again = Signatures.load(path)
    assert (again.maker, again.dtype) == (found.maker, found.dtype)
    assert (again == found).all()
    assert MAKERS[one].signatures([], 9).save(path) == path
    assert Signatures.load(path).shape == (0, 9)
    with pytest.raises(IncompatibleError, match=r"Signatures\.load"):
        BitSignatures.load(path)


def test_parts_in_a_file_can_be_merged(tmp_path):
    minhash = MinHash()
    again = Signatures.load(minhash.parts(SETS, 8).save(tmp_path / "parts.sig"))
    assert (minhash.finish(minhash.merge(again, again)) == minhash.signatures(SETS, 8)).all()


@pytest.mark.parametrize("bits", [1, 3, 8])
def test_bits_in_a_file(tmp_path, bits):
    few = MinHash(3).bbit(SETS, 11, bits)
    path = few.save(tmp_path / "few.sig")
    again = BitSignatures.load(path)
    assert (again.slots, again.bits, again.maker) == (11, bits, few.maker)
    assert (estimate_bbit(few, again) == 1).all()
    with pytest.raises(IncompatibleError, match=r"BitSignatures\.load"):
        Signatures.load(path)


def test_what_cannot_be_saved(tmp_path):
    found = MinHash().signatures(SETS, 8)
    for wrong in (found[0], found[:, :3], Signatures(np.zeros((1, 2), np.uint32), None)):
        with pytest.raises(ParameterError, match="know their maker"):
            wrong.save(tmp_path / "x.sig")
    with pytest.raises(OutputError, match="no folder"):
        found.save(tmp_path / "nowhere" / "x.sig")
    with pytest.raises(MissingInput):
        Signatures.load(tmp_path / "x.sig")


def test_every_damage_is_an_error(tmp_path):
    path = MinHash().signatures(SETS, 8).save(tmp_path / "some.sig")
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << place % 8]) + good[place + 1 :])
        with pytest.raises(FormatError):
            Signatures.load(path)
        path.write_bytes(good[:place])
        with pytest.raises(FormatError):
            Signatures.load(path)
    path.write_bytes(good + b"x")
    with pytest.raises(FormatError, match="damaged"):
        Signatures.load(path)


@given(st.binary(max_size=200))
def test_any_bytes_are_an_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("sig") / "x"
    for head in (b"", b"likewise signatures 1\n", b"likewise signatures 1\n{}\n"):
        path.write_bytes(head + data)
        with pytest.raises(FormatError):
            Signatures.load(path)


def test_a_later_version_of_the_format_is_named(tmp_path):
    path = MinHash().signatures(SETS, 8).save(tmp_path / "some.sig")
    path.write_bytes(path.read_bytes().replace(b"signatures 1\n", b"signatures 2\n", 1))
    with pytest.raises(FormatError, match="version 2 of the format"):
        Signatures.load(path)


def test_a_file_of_the_first_version_is_read_for_ever():
    """tests/data/signatures-1.sig: MinHash(seed=1).signatures([["a", "b"], ["b", "c"], []], 8)."""
    path = DATA / "signatures-1.sig"
    found = Signatures.load(path)
    assert found.maker == Maker("MinHash", "fast", 1, 8)
    assert (found == MinHash(1).signatures(SETS, 8)).all()
    title, header, _ = path.read_bytes().split(b"\n", 2)
    assert title == b"likewise signatures 1"
    assert json.loads(header) == {
        "family": "MinHash", "kind": "signatures", "scheme": "fast", "seed": 1, "slots": 8, "shape": [3, 8],
        "type": "<u4",
    }  # fmt: skip
