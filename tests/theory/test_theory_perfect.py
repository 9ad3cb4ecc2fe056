"""Two-level perfect hashing: right for every key, linear in space, and drawn as seldom as the theory says."""

import subprocess
import sys
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import ParameterError
from likewise.theory import CarterWegman, PerfectHash, perfect

SIGMAS = 4.4
NUMBERS = st.integers(-(2**63), 2**64 - 1)
KEYS = st.lists(st.one_of(NUMBERS, st.integers(0, 50), st.text(st.characters(), max_size=8)), unique=True, max_size=60)
WORDS = [f"word {i}" for i in range(500)]


def spread_out(n, seed):
    return list(dict.fromkeys(np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64).tolist()))


@given(keys=KEYS, others=KEYS, seed=st.integers(0, 2**64 - 1))
def test_it_is_the_dictionary_of_positions(keys, others, seed):
    table = PerfectHash(keys, seed)
    assert dict(table) == {key: i for i, key in enumerate(keys)}
    assert list(table) == keys
    assert len(table) == len(keys)
    assert [key in table for key in others] == [key in keys for key in others]
    assert len({table.slot(key) for key in keys}) == len(keys)
    assert table.space <= table.most_space == 9 * len(keys)
    assert sum(size**2 for size in table.buckets) <= 4 * len(keys)
    assert sum(table.buckets) == len(keys)
    assert table.space == len(keys) + 2 * sum(size**2 for size in table.buckets)
    assert len(table.tries.second) == sum(size > 0 for size in table.buckets)


def test_a_missing_key_is_a_key_error_with_its_name():
    table = PerfectHash(WORDS)
    for missing in ("word", "word 500", 3, 2**70, None, ("word 1",), 1.0, b"word 1"):
        assert missing not in table
        assert table.get(missing) is None
        with pytest.raises(KeyError) as caught:
            table[missing]
        assert caught.value.args == (missing,)
    assert 1 not in PerfectHash([])


def test_numbers_of_numpy_are_numbers_and_booleans_are_not():
    table = PerfectHash(np.arange(10, 20))
    assert table[np.uint8(12)] == table[12] == 2
    assert True not in PerfectHash([1])


def test_numbers_and_their_digits_are_different_keys():
    table = PerfectHash([7, "7", "", -7])
    assert [table[key] for key in (7, "7", "", -7)] == [0, 1, 2, 3]


def test_two_strings_of_the_same_digest_are_told_apart(monkeypatch):
    """Digests of 64 bits can meet. Here all of them do, until the salt has been changed twice."""
    right = perfect._digest
    monkeypatch.setattr(perfect, "_digest", lambda text, salt: 5 if salt < 2 else right(text, salt))
    assert dict(PerfectHash(["a", "b", "c"])) == {"a": 0, "b": 1, "c": 2}
    assert "d" not in PerfectHash(["a", "b", "c"])


def test_a_stranger_with_the_digest_of_a_key_is_not_taken_for_it(monkeypatch):
    table = PerfectHash(["a", "b"])
    right = perfect._digest
    monkeypatch.setattr(perfect, "_digest", lambda text, salt: right("a" if text == "z" else text, salt))
    assert "a" in table
    assert "z" not in table


def test_a_look_up_computes_two_functions_whatever_the_number_of_keys(monkeypatch):
    calls = []
    right = perfect.Function.__call__
    tables = [PerfectHash(spread_out(n, seed=1)) for n in (1, 10, 1000)]
    monkeypatch.setattr(perfect.Function, "__call__", lambda self, x: calls.append(x) or right(self, x))
    for table in tables:
        for key in [*list(table)[:10], 3, "none"]:
            calls.clear()
            assert (key in table) is (key in list(table))
            assert len(calls) <= 2


def test_the_same_seed_gives_the_same_slots_in_every_process():
    """Python's own hash of a string differs from one process to the next; likewise's does not."""
    table, other = PerfectHash(WORDS, seed=5), PerfectHash(WORDS, seed=6)
    slots = [table.slot(word) for word in WORDS]
    assert slots != [other.slot(word) for word in WORDS]
    code = "from likewise.theory import PerfectHash as P; w = [f'word {i}' for i in range(500)]; h = P(w, 5)"
    run = [sys.executable, "-c", f"{code}; print([h.slot(x) for x in w])"]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == str(slots)


@pytest.mark.parametrize("kind", ["random", "consecutive"])
def test_space_and_draws_are_on_average_what_theory_says(kind):
    """Draws are geometric: at most 2 and 4/3 expected, with variances of at most 2 and 4/9.

    The sum of squares is from n to 4n, with a mean of at most 2n: its variance is at most (4n − 2n)·(2n − n).
    """
    n, seeds = 60, 600
    keys = spread_out(n, seed=9) if kind == "random" else range(n)
    tables = [PerfectHash(keys, seed) for seed in range(seeds)]
    first = np.array([table.tries.first for table in tables])
    second = np.concatenate([table.tries.second for table in tables])
    assert tables[0].expected_tries == (2, pytest.approx(4 / 3))
    assert first.mean() <= 2 + SIGMAS * (2 / seeds) ** 0.5
    assert second.mean() <= 4 / 3 + SIGMAS * (4 / 9 / len(second)) ** 0.5
    assert second.max() > 1
    space = np.array([table.space for table in tables])
    assert tables[0].expected_space == n + 2 * (2 * n - 1)
    assert space.mean() <= tables[0].expected_space + SIGMAS * 2 * (2 * n * n / seeds) ** 0.5


def test_a_tight_sum_of_squares_is_drawn_again():
    tries = [PerfectHash(range(20), seed, beta=2.05).tries.first for seed in range(200)]
    assert max(tries) > 1
    assert np.mean(tries) <= 41 + SIGMAS * (41 * 40 / 200) ** 0.5


def test_space_is_linear_in_the_number_of_keys():
    for n in (1, 10, 100, 1000, 20_000):
        table = PerfectHash(spread_out(n, seed=n))
        assert table.space <= 9 * n
        assert max(table.buckets) <= 2 * n**0.5


def test_the_fullest_bucket_of_one_level_grows():
    """Of n balls in n bins some bin holds about log n/log log n or more: one level alone is not enough."""
    for n in (100, 3000, 50_000):
        assert max(PerfectHash(spread_out(n, seed=1)).buckets) > np.log(n) / np.log(np.log(n))


def test_the_sum_of_squares_counted_over_a_whole_family():
    """First level: the mean over all functions is at most 2n − 1, and fewer than half of them exceed 4n."""
    table = CarterWegman(31, 6).table()
    for keys in ([0, 1, 2, 3, 4, 5], [0, 5, 10, 15, 20, 25], [1, 2, 4, 8, 16, 30]):
        sums = np.array([(np.bincount(row) ** 2).sum() for row in table[:, keys]])
        assert sums.mean() <= 2 * 6 - 1
        assert (sums > 4 * 6).mean() < 1 / 2


@pytest.mark.parametrize("b", [2, 3])
def test_collisions_in_a_bucket_counted_over_a_whole_family(b):
    """Second level: b keys in 2b² slots collide under fewer than a quarter of all functions."""
    table = CarterWegman(31, 2 * b * b).table()
    for keys in ([0, 1, 2], [0, 10, 20], [3, 7, 30]):
        collided = [len(set(row)) < b for row in table[:, keys[:b]].tolist()]
        assert np.mean(collided) < 1 / 4


@pytest.mark.parametrize(("alpha", "beta"), list(product([1, 2, 5], [2.5, 4, 10])))
def test_other_constants(alpha, beta):
    table = PerfectHash(WORDS, alpha=alpha, beta=beta)
    assert [table[word] for word in WORDS] == list(range(500))
    assert table.space == 500 + alpha * sum(size**2 for size in table.buckets) <= table.most_space
    assert table.most_space == 500 + int(alpha * beta * 500)
    assert table.expected_tries == (beta / (beta - 2), 2 * alpha / (2 * alpha - 1))


def test_no_keys_and_one():
    empty, one = PerfectHash([]), PerfectHash(["only"])
    assert (len(empty), empty.space, empty.most_space, empty.expected_space, list(empty)) == (0, 0, 0, 0, [])
    assert (one["only"], one.space, one.tries) == (0, 3, (1, (1,)))
    assert repr(one) == "<PerfectHash of 1 key in 3 cells>"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PerfectHash(["a", "b", "a"]), "must be distinct keys. Got 'a' at 0 and at 2"),
        (lambda: PerfectHash([1, np.int8(1)]), "Got 1 at 0 and at 1"),
        (lambda: PerfectHash([1.5]), "strings or whole numbers"),
        (lambda: PerfectHash([True]), "Got True instead"),
        (lambda: PerfectHash([2**64]), "2\\^64 − 1"),
        (lambda: PerfectHash("abc"), "a list of whole numbers or strings"),
        (lambda: PerfectHash([1], seed=-1), "'seed' parameter of PerfectHash"),
        (lambda: PerfectHash([1], alpha=0), "'alpha'"),
        (lambda: PerfectHash([1], beta=2), "'beta' parameter of PerfectHash must be a number above 2"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ParameterError, match=message):
        call()
