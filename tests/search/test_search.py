"""The heart of a run against brute force: the same pairs, whatever the threads and the chunks."""

import contextlib
import errno
import itertools
import os
import re
import shutil
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oracles
from likewise.base import checks
from likewise.base.arrays import Sets, Texts
from likewise.base.memory import UNLIMITED
from likewise.base.parallel import in_order
from likewise.base.runlog import RunLog
from likewise.errors import OutputError, ParameterError
from likewise.families.banding import Banding
from likewise.families.minhash import METHODS, MinHash
from likewise.io.workspace import Workspace
from likewise.search import candidates as pairing
from likewise.search.crowds import profile
from likewise.search.expand import listed_pairs
from likewise.search.items import SetItems, TextItems
from likewise.search.local import Search
from likewise.search.matches import Sides
from likewise.search.prepare import seed_hashes
from likewise.shingle import Chars, Words

CERTAIN = Banding(60, 1)  # misses a pair of similarity 0.5 once in 10^18
VOCABULARY = [f"{a}{b}" for a in ("ba", "Do", "ké", "中") for b in ("lu", "ma", "ni", "so", "ta", "x")]


def collection(seed, n=60):
    """Random documents, near copies of them, exact copies, copies that differ in case and commas, and empty ones."""
    random = np.random.default_rng(seed)
    texts = []
    for _ in range(n):
        choice = random.random()
        words = random.choice(VOCABULARY, random.integers(1, 60)).tolist()
        if texts and choice < 0.6:
            words = texts[random.integers(len(texts))].split()
            for _ in range(random.integers(0, 4)):
                place = random.integers(len(words) + 1)
                words[place : place + random.integers(2)] = random.choice(VOCABULARY, random.integers(2)).tolist()
        text = " ".join(words)
        texts.append(text.upper() + " !" if choice < 0.05 else "" if choice > 0.95 else text)
    return texts


def search(threshold=0.5, banding=CERTAIN, threads=1, method="fast", seed=1):
    return Search(threshold, 0.99, MinHash(seed, method), banding, threads=threads)


def rows_of(matches, within=True):
    left, right, similarity, abridged = listed_pairs(matches, within)
    assert abridged == {}
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(a < b for a, b in pairs)
    return dict(zip(pairs, similarity.tolist(), strict=True))


def same(a, b):
    columns = ("left", "right", "similarity", "copies")
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in columns) and np.array_equal(
        a.groups.of, b.groups.of
    )


@pytest.mark.each_value
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "shingler", [Words(2), Words(1, bag=True), Chars(4), Chars(3, casefold=True, bits=32)], ids=str
)
@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_pairs_within_a_collection(shingler, method, threshold):
    for seed in range(3):
        texts = collection(seed)
        matches = search(threshold, method=method, seed=seed).find(TextItems(Texts.of(texts), shingler), RunLog())
        truth = oracles.similar_pairs([s.tolist() for s in shingler.sets(texts)], threshold)
        assert rows_of(matches) == truth
        assert len(truth) > 10


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_pairs_across_two_collections(threshold):
    for seed in range(4):
        here, there = collection(seed, 30), [*collection(seed, 50)[20:], "", "a lone one"]
        texts = here + there
        items = TextItems(Texts.of(texts), Words(2))
        matches = search(threshold).find(items, RunLog(), sides=Sides(len(here), across=True))
        sets = [s.tolist() for s in Words(2).sets(texts)]
        assert rows_of(matches, within=False) == oracles.similar_pairs(sets, threshold, split=len(here))


A, B = "the quick brown fox jumps over the lazy dog", "the quick brown fox jumps over the lazy cat"


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ([""], [A, B, A]),
        (["", "..."], [A, "", A, B]),
        ([A, B, A], [""]),
        ([A, "", "!"], ["", B, "", A]),
        ([""], [""]),
        ([A], [A]),
        ([A], [B]),
        ([A], ["something else"]),
    ],
)
def test_joins_with_empty_documents(here, there):
    items = TextItems(Texts.of(here + there), Words(2))
    matches = search(0.5).find(items, RunLog(), sides=Sides(len(here), across=True))
    sets = [s.tolist() for s in Words(2).sets(here + there)]
    assert rows_of(matches, within=False) == oracles.similar_pairs(sets, 0.5, split=len(here))


@pytest.mark.parametrize("split", [0, 20])
def test_sets_of_the_user(split):
    random = np.random.default_rng(5)
    lists = [random.choice(30, random.integers(0, 25)).tolist() for _ in range(40)]
    lists += [[*lists[row], 99] for row in range(10)] + [lists[3], []]
    sets = Sets.from_lists(lists)
    matches = search(0.5).find(SetItems(sets), RunLog(), sides=Sides(split, across=True) if split else None)
    truth = oracles.similar_pairs(lists, 0.5, split=split or None)
    assert rows_of(matches, within=not split) == truth


@given(st.data())
def test_same_answer_for_any_threads_and_chunks(data):
    texts = collection(data.draw(st.integers(0, 5)), 40)
    sides = data.draw(st.sampled_from([None, Sides(15, across=True), Sides(15, across=False)]))
    banding = data.draw(st.sampled_from([None, CERTAIN, Banding(3, 4)]))
    items = TextItems(Texts.of(texts), Words(2))
    expected = search(0.6, banding).find(items, RunLog(), sides=sides)
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=5))), len(texts)]
    pieces = [pa.array(texts[a:b], pa.string()) for a, b in itertools.pairwise(cuts)]
    chunked = TextItems(Texts.of(pa.chunked_array(pieces, pa.string())), Words(2))
    for threads in (1, 2, 4):
        found = search(0.6, banding, threads).find(chunked, RunLog(), sides=sides)
        assert same(found, expected)
        assert found.sketched.banding == expected.sketched.banding


@pytest.mark.parametrize("method", ["fast", pytest.param("classic", marks=pytest.mark.soak)])
def test_recall_is_on_target_and_nothing_is_invented(method):
    """300 planted pairs at 0.8 or a little above: each is found with probability 0.9 or more, independently."""
    random = np.random.default_rng(9)
    texts = []
    for number in range(300):
        words = [f"w{number}x{i}" for i in range(random.integers(20, 100))]
        changed = list(words)
        for place in random.choice(len(words), len(words) // 10, replace=False):
            changed[place] = f"new{number}x{place}"
        texts += [" ".join(words), " ".join(changed)]
    truth = oracles.similar_pairs([set(text.split()) for text in texts], 0.8)
    recall, log = 0.9, RunLog()
    matches = Search(0.8, recall, MinHash(2, method)).find(TextItems(Texts.of(texts), Words(1)), log)
    found = rows_of(matches)
    assert found.items() <= truth.items(), "every reported pair is true, with its exact similarity"
    expected = recall * len(truth)
    assert len(found) > expected - 4.4 * (expected * (1 - recall)) ** 0.5
    assert log.details["predicted_recall"] == matches.sketched.banding.probability(0.8) >= recall


def test_tuning_on_a_sample_depends_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr("likewise.search.prepare.SAMPLE", 20)
    items = TextItems(Texts.of(collection(1, 80)), Words(2))
    log = RunLog()
    first = search(0.6, None).find(items, log)
    assert log.details["tuning"]["sample"] <= 20
    assert same(first, search(0.6, None, threads=3).find(items, RunLog()))


def test_the_sample_is_drawn_by_splitmix():
    base = oracles.seed_sequence(3 ^ 0x5A17, 1)[0]
    assert seed_hashes(3, 5).tolist() == oracles.seed_sequence(base, 5)


@pytest.mark.parametrize("texts", [[], [""], ["a"], ["", ""], ["", "", "a"], ["!", "?"], ["a", "a"]])
@pytest.mark.parametrize("banding", [None, CERTAIN])
def test_next_to_nothing(texts, banding):
    log = RunLog()
    matches = search(0.8, banding).find(TextItems(Texts.of(texts), Words(5)), log)
    units = [tuple(Words(5).units(text)) for text in texts]
    assert rows_of(matches) == oracles.similar_pairs(units, 0.8)
    assert log.counts["items"] == len(texts)
    assert log.counts["different"] == len(set(texts))
    assert log.counts["groups"] == len(set(units))


def test_a_run_tells_what_it_does():
    seen = []
    log = RunLog(lambda stage, done, total: seen.append((stage, done, total)))
    texts = [A, B, A, A.upper(), "nothing of the kind at all"]
    search(0.5).find(TextItems(Texts.of(texts), Words(2)), log)
    assert log.counts == {"items": 5, "different": 4, "groups": 3, "candidates": 1, "verified": 1}
    assert log.details["banding"] == {"bands": 60, "rows": 1, "slots": 60}
    assert list(log.seconds) == ["identical", "tune", "sketch", "candidates", "verify", "certify"]
    assert ("sketch", 4, 4) in seen
    assert min(log.seconds.values()) >= 0


# threads over batches


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("tasks", [0, 1, 5, 40])
def test_results_come_back_in_order(threads, tasks):
    assert list(in_order(lambda task: task * task, iter(range(tasks)), threads)) == [i * i for i in range(tasks)]


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_in_a_batch_is_raised_and_stops_the_rest(threads):
    started = []

    def work(task):
        started.append(task)
        return 1 // (3 - task)

    with pytest.raises(ZeroDivisionError):
        list(in_order(work, range(1000), threads))
    assert len(started) < 100


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_must_be_a_positive_number(threads):
    with pytest.raises(ParameterError, match="'threads' parameter of dedup must be a positive whole number"):
        checks.threads("dedup", threads)


def test_threads_by_default_are_the_cores():
    assert checks.threads("dedup", None) >= 1
    assert checks.threads("dedup", 3) == 3


# with little memory, and cut off


@dataclass(frozen=True)
class Shares:
    """A budget whose shares are set one by one, in bytes: keys, sorting, pairs, sets."""

    keys: int
    sort: int
    pairs: int
    sets: int

    def beside(self, documents):
        """They are what is left beside the documents."""
        return self

    def too_many(self, documents):
        """Documents take none of them."""


LITTLE = Shares(0, 500, 40 * 60, 2000)  # everything is on disk, in a few parts
LESS = Shares(0, 200, 40 * 25, 400)  # and in many
MORE = Shares(0, 1 << 20, 40 * 150, 1 << 20)
IDENTITY = {"parameters": {"threshold": 0.5}, "inputs": {}}


def lean(budget, threads=1, patience=0.0):
    return Search(0.5, 0.99, MinHash(1, "fast"), Banding(8, 1), threads=threads, budget=budget, patience=patience)


@contextlib.contextmanager
def workspace(folder, **options):
    space = Workspace.open(folder, IDENTITY, **options)
    try:
        yield space
    finally:
        space.close()


def told(log):
    """What a run says of itself, but for the time it took."""
    return log.counts, log.notes, log.method, log.certificate, log.details


@pytest.mark.each_value
@pytest.mark.parametrize("sides", [None, Sides(25, across=True), Sides(25, across=False)], ids=str)
@pytest.mark.parametrize(
    ("budget", "threads"), [(LESS, 1), (LITTLE, 2), (MORE, 1), (Shares(1 << 20, 500, 40 * 25, 1000), 1)], ids=str
)
def test_memory_does_not_change_the_answer(tmp_path, quick_disk, budget, threads, sides):
    """P5: documents with a workspace that lasts, and sets with a temporary one."""
    texts = collection(3, 60)
    lasting = Workspace.open(tmp_path / "out", IDENTITY, fresh=True)
    documents, sets = TextItems(Texts.of(texts), Words(2)), SetItems(Words(2).sets(texts))
    for items, space in ((documents, lasting), (sets, Workspace.temporary(tmp_path))):
        log, again = RunLog(), RunLog()
        expected = lean(UNLIMITED).find(items, log, sides=sides)
        assert len(expected.left) > 10
        assert same(lean(budget, threads).find(items, again, space, sides), expected)
        assert told(again) == told(log)
        space.finish()
    assert list(tmp_path.rglob("*")) == [tmp_path / "out"]


@pytest.fixture
def quick_disk(monkeypatch):
    """Bringing files to the disk takes most of the time, and nobody will switch it off."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.mark.parametrize(
    "sides", [None, Sides(25, across=True), pytest.param(Sides(25, across=False), marks=pytest.mark.soak)], ids=str
)
def test_memory_does_not_change_what_crowds_are(tmp_path, quick_disk, monkeypatch, sides):
    """P5: with few pairs allowed, most items share a heavy bucket; light and heavy ones are told apart the same way."""
    monkeypatch.setattr(pairing, "PAIRS_AT_LEAST", 100)
    monkeypatch.setattr(pairing, "PAIRS_AN_ITEM", 0)
    monkeypatch.setattr(profile, "PARTS", 8)  # files that light shingles are sorted in
    items = TextItems(Texts.of(collection(3, 50)), Words(2))
    log = RunLog()
    expected = lean(UNLIMITED).find(items, log, sides=sides)
    assert log.details["crowds"]
    for budget in (LESS, MORE):
        for patience in (0.0, 1e9):
            with workspace(tmp_path / str(budget.sets), fresh=True) as space:
                lean(budget, 2, patience).find(items, RunLog(), space, sides)
            with workspace(tmp_path / str(budget.sets)) as space:
                again = RunLog()
                assert same(lean(LITTLE, 1, patience).find(items, again, space, sides), expected)
                assert told(again) == told(log)


class Killed(BaseException):
    """The process ends here."""


def cut_off(patch, calls):
    """End the process before so manieth a rename; every commit makes two, and forgetting a step one."""
    replace, left = os.replace, iter(range(calls))

    def replaced(source, target):
        if next(left, None) is None:
            raise Killed
        replace(source, target)

    patch.setattr(os, "replace", replaced)


def resume_everywhere(tmp_path, first, then, items, step=1):
    """Cut a run off before every rename in turn, and go on: always the same answer. Return the steps taken up."""
    log = RunLog()
    expected = lean(UNLIMITED).find(items, log)
    assert len(expected.left) > 10
    taken, over = [], False
    for calls in itertools.count(0, step):
        folder = tmp_path / str(calls)
        with pytest.MonkeyPatch.context() as patch:
            cut_off(patch, calls)
            with contextlib.suppress(Killed), workspace(folder) as space:
                first.find(items, RunLog(), space)
                over = True
        with workspace(folder) as space:
            again = RunLog()
            taken.append(space.resumed)
            assert same(then.find(items, again, space), expected), (calls, space.resumed)
            assert told(again) == told(log)
            space.finish()
        if over:
            return taken
    return taken


@pytest.mark.parametrize("budget", [LITTLE, UNLIMITED], ids=["little", "unlimited"])
def test_a_run_goes_on_wherever_it_was_cut_off(tmp_path, quick_disk, budget):
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    taken = resume_everywhere(tmp_path, lean(budget), lean(budget, threads=2), items)
    assert taken[0] == []
    assert ["sketch"] in taken
    assert "verify" in taken[-1]
    portions = [[step for step in steps if step.startswith("verify-")] for steps in taken if "verify" not in steps]
    assert max(map(len, portions)) == (7 if budget == LITTLE else 0)


@pytest.mark.parametrize(
    ("first", "then"), [(LITTLE, MORE), (MORE, LITTLE), (LITTLE, UNLIMITED)], ids=["more", "less", "unlimited"]
)
def test_a_run_goes_on_with_other_memory(tmp_path, quick_disk, first, then):
    """The memory is no part of the identity of a run, and changes nothing but the speed."""
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    resume_everywhere(tmp_path, lean(first), lean(then), items, step=2)


def test_a_quick_run_goes_on_after_its_last_step(tmp_path):
    """Keys and candidates are on disk and committed; verifying was quick, and was not. Then it was cut off."""
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    expected = lean(UNLIMITED).find(items, RunLog())
    with workspace(tmp_path) as space:
        lean(LITTLE, patience=1e9).find(items, RunLog(), space)
    with workspace(tmp_path) as space:
        assert same(lean(LITTLE, patience=1e9).find(items, RunLog(), space), expected)


def test_quick_steps_are_not_committed(tmp_path):
    """A run that is over in less than its patience leaves no more than it must."""
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    with workspace(tmp_path) as space:
        lean(UNLIMITED, patience=1e9).find(items, RunLog(), space)
        assert space.steps == []
        lean(UNLIMITED, patience=0.0).find(items, RunLog(), space)
        assert space.steps == ["sketch", "verify"]


@pytest.mark.parametrize("step", ["sketch", "candidates", "verify-", "verify"])
def test_damage_costs_time_and_nothing_else(tmp_path, step, monkeypatch):
    """A byte of a step's first file is changed while the run is cut off, just before the steps would be forgotten."""
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    expected = lean(UNLIMITED).find(items, RunLog())
    monkeypatch.setattr(Workspace, "forget", lambda space, *steps: None)
    with workspace(tmp_path) as space:
        lean(LITTLE).find(items, RunLog(), space)
        step = next(one for one in space.steps if one.startswith(step))
        steps = space.steps
        path = next(path for path in sorted(space.path(step, "").iterdir()) if path.stat().st_size)
    content = bytearray(path.read_bytes())
    content[-1] ^= 255
    path.write_bytes(content)
    monkeypatch.undo()
    with workspace(tmp_path) as space:
        assert space.resumed == steps[: steps.index(step)]
        assert same(lean(LITTLE).find(items, RunLog(), space), expected)


def test_no_room_for_the_keys(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=500))
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    with workspace(tmp_path) as space:
        with pytest.raises(OutputError, match="the band keys will need 896 bytes on disk and 500 bytes are free"):
            lean(LITTLE).find(items, RunLog(), space)
        lean(UNLIMITED).find(items, RunLog(), space)


@pytest.mark.parametrize("calls", [0, 14, 60])
def test_a_full_disk_can_be_gone_on_from(tmp_path, calls):
    """Every write that is brought to the disk may fail; what is said names the folder, and the next run goes on."""
    items = TextItems(Texts.of(collection(3, 30)), Words(2))
    expected = lean(UNLIMITED).find(items, RunLog())
    fsync, left = os.fsync, iter(range(calls))

    def full(handle):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    with workspace(tmp_path) as space, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match=f"{re.escape(str(tmp_path))}/.*the disk is full"):
            lean(LITTLE).find(items, RunLog(), space)
    with workspace(tmp_path) as space:
        assert ("sketch" in space.resumed) == (calls > 0)
        assert same(lean(LITTLE).find(items, RunLog(), space), expected)
