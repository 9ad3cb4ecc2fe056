"""What does not fit in memory: band keys in a file, terms made again, tables read again, levels alone of candidates."""

import sys
import tracemalloc
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
import runs
from likewise.apps.link import comparison
from likewise.apps.link.agreement import EQUAL, LEVELS, CandidateAgreement
from likewise.apps.link.blocking import block
from likewise.apps.link.comparison import FieldComparer
from likewise.apps.link.equal_keys import KEYS_FILE
from likewise.apps.link.model import AT_ONCE, MatchModel, scores_of
from likewise.apps.link.records import records_of
from likewise.base.memory import Budget
from likewise.errors import InputError
from likewise.io.workspace import Workspace

linkage = sys.modules["likewise.apps.link.link"]  # of that name, the package has the function
RARE = np.ones(1, np.float32)


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return runs.people(tmp_path_factory.mktemp("people") / "people.parquet", 600)


@pytest.fixture(scope="module")
def fields(people):
    return records_of(people).fields


@pytest.fixture
def tight(monkeypatch):
    """Let nothing stay in memory that can be elsewhere."""
    monkeypatch.setattr(linkage, "TABLES", 1 << 40)
    monkeypatch.setattr(comparison, "TERM_BYTES", 1 << 40)
    monkeypatch.setattr(comparison, "PAIRS_AT_ONCE", 100)
    monkeypatch.setattr(linkage, "block", partial(block, most=100))
    monkeypatch.setattr(Budget, "keys", property(lambda self: 0))


def test_little_memory_does_not_change_the_tables(people, monkeypatch, tmp_path, tight):
    little = likewise.link(people, memory="64MiB", threads=2, out=tmp_path / "little")
    monkeypatch.undo()
    monkeypatch.setattr(linkage, "block", partial(block, most=100))
    much = likewise.link(people, threads=1)
    for name in ("matches", "clusters", "weights"):
        assert getattr(little, name).equals(getattr(much, name)), name
    assert little.matches.num_rows > 100
    assert "bands" in little.stats["details"]["candidates_by"]
    assert "several fields together" in little.stats["details"]["completeness"]["unknown"]
    assert not (tmp_path / "little" / ".likewise").exists()


def test_band_keys_in_a_file_give_the_same_candidates(fields, tmp_path):
    held, _ = block(fields, 0, most=100)
    space = Workspace.temporary(tmp_path)
    seen = []

    def tick(done):
        seen.append((space.large / KEYS_FILE).exists())

    stored, _ = block(fields, 0, most=100, budget=Budget(1000), space=space, tick=tick)
    assert np.array_equal(held.left, stored.left)
    assert np.array_equal(held.right, stored.right)
    assert held.ways == stored.ways
    assert seen[0]
    assert not list(space.large.iterdir())
    space.finish()
    assert not list(tmp_path.iterdir())


def test_a_table_that_was_let_go_is_read_again(people, tmp_path, tight):
    source = tmp_path / "some.parquet"
    pq.write_table(pq.read_table(people), source)
    found = likewise.link(source)
    one, other = found.matches["id_a"][0].as_py(), found.matches["id_b"][0].as_py()
    assert not found._records.tables
    assert found.explain(one, other).match
    assert found._records.row(one) == pq.read_table(people).slice(one, 1).to_pylist()[0]
    again = likewise.link(source)
    pq.write_table(pq.read_table(people).slice(1), source)
    with pytest.raises(InputError, match="have changed since"):
        again.explain(one, other)


def test_of_candidates_the_levels_are_kept_and_the_rest_is_found_again(fields):
    left, right = np.triu_indices(200, 1)
    comparer = FieldComparer(fields)
    levels, alike = comparer.candidates(left, right)
    assert sum(one.nbytes for one in levels) + alike.nbytes == len(left) * (len(fields) + 4)
    whole, kept = comparer.compare(left, right), comparer.kept(left, levels)
    chosen = np.random.default_rng(1).integers(0, len(left), 5000)
    for one, other in zip(whole, kept, strict=True):
        for some in (chosen, slice(100, 900), np.arange(len(left)) % 3 == 0):
            wanted, found = one.part(some), other.part(some)
            assert np.array_equal(wanted.level, found.level)
            assert np.array_equal(wanted.rarity, found.rarity, equal_nan=True)
    assert (np.concatenate(levels) == EQUAL).any()


def test_scoring_takes_a_number_for_each_candidate():
    """However many candidates there are, and of however many fields and kinds of related pairs."""
    n, rng = 8 * AT_ONCE, np.random.default_rng(1)
    left, codes = np.arange(n), np.zeros(n, np.int32)
    names = ["a", "b", "c", "d"]
    compared = [
        CandidateAgreement(
            name, "name", rng.integers(-1, LEVELS, n).astype(np.int8), left, codes, np.ones(1, np.float32)
        )
        for name in names
    ]
    weights = {name: np.linspace(-3, 3, LEVELS) for name in names}
    model = MatchModel(weights, {}, -3.0, 1, related={("a", "b"): 0.5, ("c", "d"): -1.0, ("a", "c"): 0.0})
    some = slice(AT_ONCE - 5, AT_ONCE + 5)
    wanted = model.scores([one.part(some) for one in compared])
    tracemalloc.start()
    found = scores_of(model, compared)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found[some], wanted)
    assert peak < 8 * n + 400 * AT_ONCE
