import bisect
import itertools
import os
import time

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


def median_killer(n):
    """Values of which the first, middle and last one of every part have the second smallest as their median."""
    values, place = list(range(n, 2 * n)), list(range(n))
    for low in range(0, n - 2, 2):
        middle = (low + n - 1) >> 1
        values[place[low]], values[place[middle]] = low, low + 1
        place[low + 1], place[middle] = place[middle], place[low + 1]
    return values


def middle_killer(n):
    """Values of which the middle one of every part is the smallest."""
    values, place = [0] * n, list(range(n))
    for low in range(n):
        middle = (low + n - 1) >> 1
        values[place[middle]] = low
        place[low], place[middle] = place[middle], place[low]
    return values


@pytest.mark.parametrize("killer", [median_killer, middle_killer])
@pytest.mark.parametrize("n", [25, 26, 100, 1001])
def test_hostile_orders_are_sorted(killer, n):
    values = killer(n)
    array = hashes(values)
    sorting.sort_values(array, n)
    assert numbers(array) == sorted(values)
    for most in (n, n // 2, 1):
        keys, others = hashes(values), hashes(range(n))
        sorting.sort_pairs(keys, others, n, most)
        expected = sorted(zip(values, range(n), strict=True))
        assert list(zip(numbers(keys), numbers(others), strict=True))[:most] == expected[:most]
        assert sorted(numbers(others)) == list(range(n))


@given(VALUES | st.lists(st.integers(2**40, 2**40 + 3), max_size=60))
def test_the_order_of_hashes(values):
    """FEW_64 has values with the same upper half."""
    order, ordered = sorting.hash_argsort(hashes(values))
    assert numbers(order) == sorted(range(len(values)), key=values.__getitem__)
    assert numbers(ordered) == sorted(values)


@given(VALUES, st.integers(0, 60), st.integers(0, 60))
def test_heaps(values, low, high):
    low, high = min(low, len(values) - 1), min(high, len(values) - 1)
    if low <= high and values:
        array, keys, others = hashes(values), hashes([x & 1 for x in values]), hashes(values)
        sorting.heap_sort(array, low, high)
        assert numbers(array) == values[:low] + sorted(values[low : high + 1]) + values[high + 1 :]
        sorting.heap_sort_pairs(keys, others, low, high)
        pairs = [(x & 1, x) for x in values]
        expected = pairs[:low] + sorted(pairs[low : high + 1]) + pairs[high + 1 :]
        assert list(zip(numbers(keys), numbers(others), strict=True)) == expected


@pytest.mark.skipif("LIKEWISE_KERNEL_MODE" in os.environ, reason="the times of other modes say nothing")
@pytest.mark.parametrize(("killer", "pairs"), [(median_killer, False), (middle_killer, True)])
def test_hostile_orders_are_sorted_soon(killer, pairs):
    """Without the guard it is n * n / 4 steps, which is 500 times as long."""
    n = 1 << 16
    hostile = killer(n)
    random = np.random.default_rng(1).permutation(n).tolist()
    others = hashes(range(n))

    def seconds(values):
        array = hashes(values)
        begun = time.process_time()
        if pairs:
            sorting.sort_pairs(array, others.copy(), n, n)
        else:
            sorting.sort_values(array, n)
        return time.process_time() - begun

    seconds(random[:n])
    assert min(seconds(hostile) for _ in range(3)) <= 20 * min(seconds(random) for _ in range(3))
