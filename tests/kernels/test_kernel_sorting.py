import bisect
import itertools

import numpy as np
import pytest
from arrays_of import FEW_64, WORDS_64, Opened, hashes, ints, numbers
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import sorting

sorting = Opened(sorting)

VALUES = st.lists(WORDS_64, max_size=60) | st.lists(FEW_64, max_size=60)


@given(VALUES, st.integers(0, 60))
def test_sort_values(values, n):
    n = min(n, len(values))
    array = hashes(values)
    sorting.sort_values(array, n)
    assert numbers(array) == sorted(values[:n]) + values[n:]


@pytest.mark.parametrize("shape", ["ascending", "descending", "equal", "organ pipe", "random"])
def test_many_values(shape):
    n = 300
    values = {
        "ascending": list(range(n)),
        "descending": list(range(n))[::-1],
        "equal": [7] * n,
        "organ pipe": [min(i, n - i) for i in range(n)],
        "random": np.random.default_rng(1).integers(0, 2**64, n, np.uint64).tolist(),
    }[shape]
    array, others = hashes(values), hashes(range(n))
    sorting.sort_values(array, n)
    assert numbers(array) == sorted(values)
    keys = hashes(values)
    sorting.sort_pairs(keys, others, n, n)
    assert list(zip(numbers(keys), numbers(others), strict=True)) == sorted(zip(values, range(n), strict=True))


@pytest.mark.parametrize("most", [sorting.FEW, 60])
@given(data=st.data())
def test_sort_pairs(most, data):
    pairs = data.draw(st.lists(st.tuples(st.sampled_from([0, 1, 2**63, 2**64 - 1]), WORDS_64), max_size=most))
    n = data.draw(st.integers(0, len(pairs)))
    wanted = data.draw(st.integers(0, n))
    keys, others = hashes([key for key, _ in pairs]), hashes([other for _, other in pairs])
    sorting.sort_pairs(keys, others, n, wanted)
    found = list(zip(numbers(keys), numbers(others), strict=True))
    assert found[:wanted] == sorted(pairs[:n])[:wanted]
    assert sorted(found[:n]) == sorted(pairs[:n])
    assert found[n:] == pairs[n:]
    for a, b in itertools.pairwise(pairs):
        assert sorting.is_before(*map(np.uint64, (*a, *b))) == (a < b)


@given(st.lists(st.integers(-5, 5), max_size=12), st.integers(-6, 6))
def test_first_from(values, least):
    assert sorting.first_from(ints(sorted(values)), least) == bisect.bisect_left(sorted(values), least)
