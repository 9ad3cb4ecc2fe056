"""Many copies of a record, one blocking value for all, little memory: the answer is right and the work near-linear."""

import numpy as np
import pyarrow as pa
import pytest
from made_people import two_tables

from likewise.apps.link import equal_keys, link
from likewise.apps.link.entities import LARGE, _largest_listed, cluster
from likewise.apps.link.equal_keys import LIMIT, Blocks


def table(rows):
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


@pytest.fixture(scope="module")
def people():
    return two_tables(300)


def test_many_copies_are_one_cluster(people):
    """More than LIMIT copies; and fewer than make the values of the record too common to prove anything."""
    a, _, _ = people
    copies = table([*a, *[a[7]] * 50])
    found = link(copies)
    clusters = {row["id"]: row for row in found.clusters.to_pylist()}
    assert clusters[7]["size"] == 51
    assert all(clusters[len(a) + i]["cluster"] == 7 for i in range(50))
    partners = {(row["id_a"], row["id_b"]) for row in found.matches.to_pylist()}
    assert {(7, len(a) + i) for i in range(50)} <= partners
    assert found.stats["details"]["abridged"]["groups"] == 1
    assert len(found.matches) < 3 * 51


@pytest.mark.parametrize("one_to_one", [False, True])
def test_copies_in_two_tables(people, one_to_one):
    a, b, truth = people
    i, j = min(truth)
    first, second = table([*a, *[a[i]] * 40]), table([*b, *[a[i]] * 30, b[j]])
    found = link(first, second, one_to_one=one_to_one)
    pairs = [(row["id_a"], row["id_b"]) for row in found.matches.to_pylist()]
    copies_a, copies_b = {i, *range(len(a), len(a) + 40)}, set(range(len(b), len(b) + 30))
    inside = [(x, y) for x, y in pairs if x in copies_a and y in copies_b]
    assert {y for _, y in inside} == copies_b
    assert len(set(pairs)) == len(pairs)
    if one_to_one:
        assert len({x for x, _ in pairs}) == len({y for _, y in pairs}) == len(pairs)
    else:
        assert {x for x, _ in inside} == copies_a


def test_memory_and_threads_do_not_change_the_answer(people, monkeypatch):
    a, b, _ = people
    monkeypatch.setattr("likewise.apps.link.blocking.LEAST_ROOM", 1 << 12)
    monkeypatch.setattr("likewise.apps.link.comparison.VALUES_AT_ONCE", 50)
    monkeypatch.setattr("likewise.apps.link.comparison.TERM_BYTES", 1 << 30)
    little = link(table(a), table(b), memory="64MiB", threads=1)
    monkeypatch.undo()
    much = link(table(a), table(b), threads=2)
    assert little.matches.equals(much.matches)
    assert little.stats["parameters"]["memory"] == 64 << 20


@pytest.mark.parametrize("room", [1, 500, 1 << 40])
@pytest.mark.parametrize("kept", [0, 1_500, 1 << 40])  # bytes: room for none of the columns, for some, for all
def test_blocks_yield_all_pairs_in_parts(room, kept, monkeypatch):
    monkeypatch.setattr(equal_keys, "PAIRS_AT_ONCE", 100)
    chance = np.random.default_rng(1)
    keys = [chance.integers(0, 60, 300).astype(np.uint32) for _ in range(3)]
    wanted = set()
    for column in keys:
        for key in range(1, 60):
            rows = np.flatnonzero(column == key)
            if len(rows) <= LIMIT:
                wanted |= {x * 300 + y for x in rows.tolist() for y in rows.tolist() if x < y}
    blocks = Blocks(300, 0, 2, room=kept)
    blocks.add([lambda column=column: column for column in keys])
    seen = []
    parts = list(blocks.parts(room, seen.append))
    whole = np.concatenate([np.unique(some) for part in parts for some in part])
    assert (np.diff(whole) > 0).all()
    assert set(whole.tolist()) == wanted
    assert sum(seen) == 300
    assert (len(parts) == 1) == (room > 1 << 30)
    assert len(parts) > 1 or len(parts[0]) > 1


def test_large_components_have_no_chains():
    """A path of matches longer than LARGE: every member of a cluster matches one record of it."""
    n = LARGE + 500
    left, right = np.arange(n - 1), np.arange(1, n)
    labels = cluster(n, left, right, np.ones(n - 1))
    assert np.bincount(labels).max() == 3
    assert (labels <= np.arange(n)).all()


def test_clusters_are_listed_up_to_a_number_of_pairs():
    sizes = np.array([2, 2, 5, 5, 40])
    assert _largest_listed(sizes, 1000) == 40
    assert _largest_listed(sizes, 100) == 5
    assert _largest_listed(sizes, 12) == 2


def test_a_large_cluster_is_listed_with_its_first_record(people, monkeypatch):
    a, _, _ = people
    monkeypatch.setattr("likewise.apps.link.entities.MOST_LISTED", 20)
    monkeypatch.setattr("likewise.apps.link.entities.LISTED_PER_RECORD", 0)
    found = link(table([*a, *[a[3]] * 9]))
    members = [row["id"] for row in found.clusters.to_pylist() if row["cluster"] == 3]
    assert len(members) == 10
    pairs = [(row["id_a"], row["id_b"]) for row in found.matches.to_pylist()]
    assert sorted(pair for pair in pairs if set(pair) <= set(members)) == [(3, y) for y in members[1:]]
