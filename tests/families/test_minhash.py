"""MinHash: parameters, and the estimate."""

import numpy as np
import pytest

from likewise.base.arrays import Sets
from likewise.errors import IncompatibleError, ParameterError
from likewise.families.minhash import MinHash
from likewise.search.sketch import agreement_counts, sample_signatures


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, None, "1"])
def test_seed_must_be_64_bits(seed):
    with pytest.raises(ParameterError, match="'seed' parameter of MinHash must be a whole number from 0 to"):
        MinHash(seed)


def test_method_must_be_known():
    with pytest.raises(ParameterError, match=r"'fast' or 'classic'\. Got 'quick'"):
        MinHash(method="quick")


@pytest.mark.parametrize("n", [0, -1, 1.5, "8", None])
def test_a_signature_has_a_positive_number_of_slots(n):
    with pytest.raises(ParameterError, match=f"'n' parameter .* Got {n!r} instead"):
        MinHash().signatures([["a"]], n)


def test_lists_of_tokens_will_do():
    signatures = MinHash().signatures([["a", "b"], ["b", "a", "b"], []], np.int32(8))
    assert (signatures[0] == signatures[1]).all()
    assert MinHash.estimate(signatures[0], signatures[1]) == 1.0
    assert MinHash.estimate(signatures[0], signatures[2]) == 0.0
    assert MinHash().signatures([], 4).shape == (0, 4)


def test_signatures_of_different_lengths_are_not_compared():
    with pytest.raises(IncompatibleError, match="8 and of 16 slots"):
        MinHash.estimate(np.zeros(8, np.uint32), np.zeros(16, np.uint32))


def test_how_it_is_written_down():
    assert MinHash(5, "classic").to_dict() == {"seed": 5, "method": "classic"}
    assert MinHash() == MinHash(seed=1, method="fast")


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_agreement_counts(threads):
    sets = Sets.from_lists([range(10), range(10), range(100, 110)])
    counts = agreement_counts(sample_signatures(sets, MinHash(), 32), threads)
    assert counts[32] == 1
    assert counts[0] == 2
    assert counts.sum() == 3
