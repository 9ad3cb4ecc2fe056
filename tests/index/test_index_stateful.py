"""Whatever is done to an index, in whatever order: it answers as brute force does."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from naive_index import NaiveIndex

import likewise
from likewise.index import segment

BANDS = 64
"""Bands of one row: a pair of similarity 0.5 or more is missed with probability 2**-64 at most."""
TOKENS = st.lists(st.integers(0, 9), max_size=6, unique=True)
IDS = {"integers": st.integers(-3, 25), "strings": st.sampled_from(["", "ä", "b\0", *"cdefghijklmnopqrstuvwxyz"])}


NUMBERS = itertools.count()


class Anything(RuleBasedStateMachine):
    """Random changes of an index and of its oracle."""

    def place(self):
        return self.folder / "index"

    @initialize(kind=st.sampled_from(sorted(IDS)))
    def begin(self, kind):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.place()
        self.kind = kind
        self.oracle = NaiveIndex()
        self.index = likewise.Index.create(
            self.path, shingle=None, threshold=0.5, bands=BANDS, rows=1, containment=True, threads=1
        )

    def teardown(self):
        if hasattr(self, "folder"):
            self.index.close()
            shutil.rmtree(self.folder)

    @rule(data=st.data(), replace=st.booleans())
    def add(self, data, replace):
        ids = data.draw(st.lists(IDS[self.kind], unique=True, max_size=8))
        if not replace:
            ids = [id for id in ids if id not in self.oracle.sets]
        sets = [data.draw(TOKENS) for _ in ids]
        assert self.index.add(ids, sets, replace=replace) == len(ids)
        self.oracle.add(ids, sets)

    @rule(data=st.data())
    def add_in_parts(self, data):
        ids = data.draw(st.lists(IDS[self.kind], unique=True, max_size=8))
        sets = [data.draw(TOKENS) for _ in ids]
        batches = [([id], [one]) for id, one in zip(ids, sets, strict=True)]
        assert self.index.add_batches(batches, replace=True) == len(ids)
        self.oracle.add(ids, sets)

    @rule(data=st.data())
    def remove(self, data):
        ids = data.draw(st.lists(IDS[self.kind], unique=True, max_size=5))
        there = [id for id in ids if id in self.oracle.sets]
        assert self.index.remove(ids, missing="skip") == len(there)
        self.oracle.remove(there)

    @rule()
    def reopen(self):
        self.index.close()
        self.index = likewise.Index.open(self.path, threads=1)

    @rule()
    def compact(self):
        info = self.index.compact()
        assert info["removed"] == 0
        assert len(info["segments"]) <= 1
        assert info["different"] == len(set(self.oracle.sets.values()))

    @rule()
    def check(self):
        assert self.index.check().items == len(self.oracle.sets)

    @rule(
        queries=st.lists(TOKENS, min_size=1, max_size=4),
        k=st.none() | st.integers(1, 4),
        threshold=st.sampled_from([0.5, 0.6, 2 / 3, 0.75, 1.0]),
        measure=st.sampled_from(["jaccard", "containment"]),
    )
    def query(self, queries, k, threshold, measure):
        table = self.index.query(queries, k, threshold, measure).to_pylist()
        for number, tokens in enumerate(queries):
            mine = [(row["id_b"], row["similarity"]) for row in table if row["id_a"] == number]
            assert mine == self.oracle.query(tokens, k, threshold, measure)

    @invariant()
    def counts(self):
        if hasattr(self, "index"):
            assert len(self.index) == len(self.oracle.sets)
            for id in list(self.oracle.sets)[:2]:
                assert id in self.index


TestAnything = Anything.TestCase
TestAnything.settings = settings(stateful_step_count=20)


def test_anything_on_a_server(redis_server):
    class AnythingOnAServer(Anything):
        def place(self):
            return redis_server.url(f"state{next(NUMBERS)}")

    fewer = settings.default.max_examples // 2  # what differs is the store, which has tests of its own
    run_state_machine_as_test(AnythingOnAServer, settings=settings(stateful_step_count=20, max_examples=fewer))


def test_the_number_of_segments_grows_with_the_logarithm():
    rows: list[int] = []
    most = 0
    for _ in range(5000):
        rows.append(1)
        count = segment.how_many_to_merge(rows, [0] * len(rows))
        rows[-count:] = [sum(rows[-count:])]
        most = max(most, len(rows))
    assert sum(rows) == 5000
    assert most <= 8  # each is more than four times as large as the next: 4**6 < 5000 < 4**7, and one that is new
