"""Measure the constants of the cost model in families/tuning.py on this machine, on one core.

python benchmarks/constants.py

Only their ratios matter: a machine twice as fast in everything chooses the same bands and rows.
"""

from __future__ import annotations

import math

import numpy as np

from likewise.base.arrays import Sets
from likewise.families import tuning
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.search.band_keys import HeldKeys
from likewise.search.candidates import Wanted, candidates
from likewise.search.crowds.gather import Gathering
from likewise.search.items import SetItems
from likewise.search.scored import no_pairs
from likewise.search.sketch import SketchPlan, key_sets
from likewise.search.verify import similarities
from likewise.shingle import Words
from runs import nanoseconds

ITEMS, SIZE, SLOTS = 20_000, 300, 128
random = np.random.default_rng(1)


def random_sets(items: int, size: int) -> Sets:
    """Return sets of random numbers, so many of one size."""
    values = random.integers(0, 2**64, items * size, dtype=np.uint64)
    return Sets(values, np.arange(items + 1) * size)


def hash_cost() -> float:
    """Sketching, for each of the hashes that the model counts."""
    sets, minhash = random_sets(ITEMS, SIZE), MinHash()
    spent = nanoseconds(lambda: minhash.signatures(sets, SLOTS))
    return spent / ITEMS / (SIZE + SLOTS * (1 + math.log(SLOTS)))


def band_cost() -> float:
    """One band of one item: its key (keys less signatures), and its place in a sort in which nobody meets."""
    bands, rows = 32, 4
    sets, minhash, banding = random_sets(ITEMS, SIZE), MinHash(), Banding(bands, rows)
    room = HeldKeys(np.empty((ITEMS, bands), np.uint32))
    keyed = nanoseconds(lambda: key_sets(sets, SketchPlan(minhash, banding, room)))
    sketched = nanoseconds(lambda: minhash.signatures(sets, banding.slots))
    keys = HeldKeys(random.integers(0, 2**32, (10 * ITEMS, bands), dtype=np.uint32))
    sorting = nanoseconds(lambda: candidates(keys, 1), repeat=2)
    return max(0.0, keyed - sketched) / (ITEMS * bands) + sorting / (10 * ITEMS * bands)


def candidate_cost() -> float:
    """Meeting a candidate in a bucket: the time for buckets of ten in the middle band, less that for buckets of one."""
    items, bands, bucket = 10 * ITEMS, 16, 10
    lonely = random.integers(0, 2**32, (items, bands), dtype=np.uint32)
    crowded = lonely.copy()
    crowded[:, bands // 2] = random.permutation(items) // bucket
    busy, idle = HeldKeys(crowded), HeldKeys(lonely)
    more = nanoseconds(lambda: candidates(busy, 1), 2) - nanoseconds(lambda: candidates(idle, 1), 2)
    return more / (items * (bucket - 1) / 2)


def probe_cost() -> float:
    """Ruling a candidate out, for each shingle of a document: all pairs of groups of 40 that share half, at 0.8."""
    group = 40
    sets = random_sets(ITEMS // group * group, SIZE)
    values = sets.values.reshape(-1, SIZE)
    for partner in range(1, group):
        values[partner::group, : SIZE // 2] = values[0::group, : SIZE // 2]
    for row in values:
        random.shuffle(row)
    heads = np.arange(0, len(sets), group)
    first, second = np.triu_indices(group, 1)
    left, right = (heads[:, None] + first).ravel(), (heads[:, None] + second).ravel()
    return nanoseconds(lambda: similarities(left, right, sets, 0.8, 1)) / len(left) / SIZE


def shingle_cost() -> float:
    """Reading one shingle of a document again: text to set."""
    vocabulary = np.array(["".join(map(chr, random.integers(97, 123, random.integers(2, 10)))) for _ in range(5000)])
    texts = [" ".join(random.choice(vocabulary, SIZE)) for _ in range(ITEMS // 10)]
    shingler = Words(5)
    return nanoseconds(lambda: shingler.sets(texts)) / len(shingler.sets(texts).values)


def crowd_cost() -> float:
    """A shingle of a document in a crowd that shares a template: its set is made, and compared with the others'."""
    sets = random_sets(5 * ITEMS, SIZE)
    values = sets.values.reshape(-1, SIZE)
    values[:, : SIZE // 2] = values[0, : SIZE // 2]
    rows = np.arange(len(sets))

    def compare() -> None:
        Gathering(SetItems(sets), rows, [rows], rows, Wanted(0, len(sets)), 0.8, 1, 1).pairs(no_pairs())

    return nanoseconds(compare, repeat=2) / len(sets.values) + shingle_cost()


def main() -> None:
    """Print what was measured beside what is used."""
    measured = {
        "HASH": hash_cost(),
        "BAND": band_cost(),
        "CANDIDATE": candidate_cost(),
        "PROBE": probe_cost(),
        "SHINGLE": shingle_cost(),
        "CROWD": crowd_cost(),
    }
    print(f"{'nanoseconds':<12} {'measured':>9} {'used':>9}")
    for name, value in measured.items():
        print(f"{name:<12} {value:>9.2f} {getattr(tuning, name):>9.2f}")


if __name__ == "__main__":
    main()
