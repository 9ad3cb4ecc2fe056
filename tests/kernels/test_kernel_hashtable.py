import numpy as np
from arrays_of import FEW_64, WORDS_64, Opened, hashes, numbers
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import hashtable

hashtable = Opened(hashtable)

SETS = st.lists(FEW_64 | WORDS_64, unique=True, max_size=12)
LAST = [(2**64 - 1 - i) * pow(int(hashtable.TABLE_ODD), -1, 2**64) % 2**64 for i in range(4)]
"""Values that belong in the last slot, so that probing goes round."""


@given(SETS.map(lambda values: [x for x in values if x]), SETS)
def test_a_table_of_values_other_than_0(values, asked):
    table = np.zeros(32, np.uint64)
    hashtable.fill_table(hashes([*values, *LAST]), table)
    slots = np.empty(len(asked), np.int64)
    hashtable.slots_of(table, hashes(asked), slots)
    for x, slot in zip(asked, numbers(slots), strict=True):
        assert int(table[slot]) == (x if x in values or x in LAST else 0)


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
