import random

import numpy as np
import pytest
from arrays_of import FEW_64, LAST_SLOTS, WORDS_64, Opened, gathered, hashes, numbers, spread
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import hashtable

hashtable = Opened(hashtable)

SETS = st.lists(FEW_64 | WORDS_64, unique=True, max_size=12)
LAST = LAST_SLOTS[:4]


@given(SETS.map(lambda values: [x for x in values if x]), SETS)
def test_a_table_of_values_other_than_0(values, asked):
    table = np.zeros(32, np.uint64)
    hashtable.fill_table(hashes([*values, *LAST]), table)
    slots = np.empty(len(asked), np.int64)
    hashtable.slots_of(table, hashes(asked), slots)
    for x, slot in zip(asked, numbers(slots), strict=True):
        assert int(table[slot]) == (x if x in values or x in LAST else 0)


@given(SETS, SETS)
def test_values_are_numbered_by_their_places_among_known_ones(known, asked):
    known = [*dict.fromkeys([*known, *LAST])]
    out = np.empty(len(asked), np.int64)
    hashtable.number_values(hashes(known), hashes(asked), out)
    assert numbers(out) == [known.index(x) if x in known else -1 for x in asked]


@given(SETS, SETS, st.integers(-3, 12))
def test_values_that_a_table_spares(values, others, spare):
    table, owner = np.empty(64, np.uint64), np.full(64, -1, np.int32)
    for stamp, held in enumerate([others, values, [*dict.fromkeys([*values, *LAST])]]):
        down, mask = map(np.uint64, hashtable.enter_set(hashes(held), 0, len(held), stamp, table, owner))
        missed = sum(x not in held for x in others)
        found = hashtable.spared(hashes(others), 0, len(others), stamp, table, owner, down, mask, spare)
        assert found == spare - missed if spare >= missed else found < 0
        for x in others:
            slot = hashtable.owned_slot(np.uint64(x), stamp, table, owner, down, mask)
            assert (owner[slot] == stamp) == (x in held)


@given(SETS, SETS)
def test_a_table_of_numbers(values, asked):
    table, numbered = np.zeros(32, np.uint64), np.full(32, -1, np.int64)
    down, mask = np.uint64(64 - 5), np.uint64(31)
    for number, x in enumerate(values):
        slot = hashtable.numbered_slot(np.uint64(x), table, numbered, down, mask)
        table[slot], numbered[slot] = x, number
    for x in asked:
        slot = hashtable.numbered_slot(np.uint64(x), table, numbered, down, mask)
        assert numbered[slot] == (values.index(x) if x in values else -1)


@given(WORDS_64)
def test_values_are_spread_and_gathered(value):
    assert int(hashtable.spread(np.uint64(value))) == spread(value)
    assert gathered(spread(value)) == value


# How far values are from the slots where they belong. In a table that is at most half full and where slots are random
# it is at most (1 / (1 - 1/2) - 1) / 2 = 1/2 on average (Knuth, The Art of Computer Programming, volume 3, 6.4).

SIZE = 1 << 11
ODD = int(hashtable.TABLE_ODD)
RANDOM = random.Random(5)
STRIDES = {
    "ones": 1,
    **{f"bit {bit}": 1 << bit for bit in range(4, 54, 6)},
    "a small product": pow(ODD, -1, 2**64),
    "the product of a slot": pow(ODD, -1, 2**64) << 10,
    "the multiplier": ODD,
    "hundreds": 100,
    "microseconds of days": 86_400_000_000,
    "halves": 2**32 + 1,
    "a random one": RANDOM.getrandbits(64),
}


def hostile_values(kind):
    if kind == "chosen by their product":  # as the prefixes of sets are, where frequencies are equal
        return sorted((RANDOM.getrandbits(64) for _ in range(10 * SIZE)), key=lambda x: x * ODD % 2**64)[: SIZE // 2]
    return [(i + 1) * STRIDES[kind] % 2**64 for i in range(SIZE // 2)]


@pytest.mark.parametrize("kind", ["chosen by their product", *STRIDES])
def test_values_are_near_the_slots_where_they_belong(kind):
    values = hostile_values(kind)
    bits = SIZE.bit_length() - 1
    down, mask = np.uint64(64 - bits), np.uint64(SIZE - 1)
    table, numbered = np.zeros(SIZE, np.uint64), np.full(SIZE, -1, np.int64)
    plain = np.zeros(SIZE, np.uint64)
    for number, x in enumerate(values):
        slot = hashtable.numbered_slot(np.uint64(x), table, numbered, down, mask)
        table[slot], numbered[slot] = x, number
    hashtable.fill_table(hashes(values), plain)
    owned, owner = np.zeros(SIZE, np.uint64), np.full(SIZE, -1, np.int32)
    hashtable.enter_set(hashes(values), 0, len(values), 3, owned, owner)
    for filled, home in ((table, 64 - bits), (owned, 64 - bits), (plain, 32)):
        away = [(slot - (spread(int(filled[slot])) >> home)) % SIZE for slot in np.flatnonzero(filled)]
        assert len(away) == len(values)
        assert sum(away) <= 2 * len(values)
