"""The index from outside: what it says, what it refuses, and that it finds what it promises."""

from __future__ import annotations

import math
import os
import random
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import (
    DamagedError,
    IncompatibleError,
    Index,
    InputError,
    LikewiseError,
    MissingInput,
    OutputError,
    ParameterError,
)
from likewise.index import scheme as module
from likewise.measures import jaccard

WORDS = [f"w{i}" for i in range(3000)]


def prose(seed: int, length: int = 60) -> list[str]:
    return random.Random(seed).choices(WORDS, k=length)


@pytest.fixture
def texts() -> list[str]:
    return [" ".join(prose(seed)) for seed in range(40)]


@pytest.fixture
def index(place, texts):
    with Index.create(place, shingle="words:2", threshold=0.5) as made:
        made.add([f"t{i}" for i in range(len(texts))], texts)
        yield made


def test_answers_are_exact_and_best_first(index, texts):
    changed = texts[3].split()
    changed[10] = changed[40] = "changed"
    both = " ".join(changed)
    table = index.query([both, texts[5], "nothing like it"], ids=["a", "b", "c"])
    assert table.schema.names == ["id_a", "id_b", "similarity"]
    first, second = table.to_pylist()
    assert (first["id_a"], first["id_b"]) == ("a", "t3")
    shingles = [set(likewise.Words(2).shingles(text)) for text in (both, texts[3])]
    assert first["similarity"] == jaccard(*shingles)
    assert second == {"id_a": "b", "id_b": "t5", "similarity": 1.0}


def test_one_document_may_be_asked_for_as_it_is(index, texts):
    assert index.query(texts[7]).to_pylist() == [{"id_a": 0, "id_b": "t7", "similarity": 1.0}]


def test_the_recall_is_on_target(tmp_path):
    """Pairs at the threshold: 400 of them are found with probability 0.9 each, so 360 ± 6 standard deviations of 6."""
    pairs = 400
    chance = random.Random(1)
    left = [chance.sample(range(10**9), 90) for _ in range(pairs)]
    right = [one[:80] + chance.sample(range(10**9, 2 * 10**9), 10) for one in left]  # 80 / 100
    with Index.create(tmp_path / "index", shingle=None, threshold=0.8, recall=0.9) as index:
        index.add(None, left)
        found = index.query(right)
        probability = float(index.scheme.banding.probability(0.8))
    assert set(found["similarity"].to_pylist()) == {0.8}
    deviation = math.sqrt(pairs * probability * (1 - probability))
    assert probability >= 0.9
    assert found.num_rows >= pairs * probability - 6 * deviation
    assert found.num_rows <= pairs * probability + 6 * deviation


def test_every_item_that_contains_the_query_is_found(place):
    """A short text in long ones, however common its words: no chance is involved."""
    chance = random.Random(2)
    common = ["the same words in each of them"] * 3
    books = [" ".join([*common, *chance.choices(WORDS, k=2000)]) for _ in range(30)]
    with Index.create(place, shingle="words:3", containment=True) as index:
        index.add(None, books)
        for number, book in enumerate(books):
            place = chance.randrange(1000)
            quotation = " ".join(book.split()[place : place + 8])
            answers = index.query(quotation, measure="containment", threshold=1.0).to_pylist()
            assert number in [answer["id_b"] for answer in answers]
        assert index.query(common[0], measure="containment").num_rows == 30
        assert index.query("", measure="containment").num_rows == 0
        partly = " ".join(books[4].split()[100:106]) + " something else"
        found = index.query(partly, measure="containment", threshold=0.6).to_pylist()
        assert found == [{"id_a": 0, "id_b": 4, "similarity": 4 / 6}]


def test_empty_sets_are_like_each_other_only(place):
    """A segment of nothing but empty sets has no table of shingles."""
    with Index.create(place, shingle=None, containment=True) as index:
        index.add([1, 2], [[], []])
        assert index.query([["a"], []]).to_pylist() == [
            {"id_a": 1, "id_b": 1, "similarity": 1.0},
            {"id_a": 1, "id_b": 2, "similarity": 1.0},
        ]
        assert index.query([["a"], []], measure="containment").num_rows == 0


@pytest.mark.parametrize("kind", ["identical", "similar"])
def test_a_crowd_answers_with_its_best(tmp_path, kind):
    """Thousands of items in one bucket: the k best come, in the order of addition where they are equal."""
    base = [f"a{i}" for i in range(95)]
    crowd = [base + [f"x{i}.{j}" for j in range(5 if kind == "similar" else 0)] for i in range(3000)]
    crowd[1234] = [*base, "x7.0", "x7.1", "x7.2", "x7.3", "y"]
    with Index.create(tmp_path / "index", shingle=None, threshold=0.8) as index:
        index.add(None, crowd)
        found = index.query([crowd[7]], k=3).to_pylist()
        everything = index.query([crowd[7]])
    if kind == "identical":
        assert [row["id_b"] for row in found] == [0, 1, 2]
        assert everything.num_rows == 3000
    else:
        assert [row["id_b"] for row in found] == [7, 1234, 0]
        assert everything.num_rows == 3000
        assert everything["similarity"].to_pylist() == sorted(everything["similarity"].to_pylist(), reverse=True)


def test_an_add_is_all_or_nothing(index, texts, monkeypatch):
    before = index.info()["generation"]
    with pytest.raises(InputError, match="the id 't3' is in the index already"):
        index.add(["new", "t3"], ["one text", "another"])
    with pytest.raises(InputError, match="the id 'new' is given twice"):
        index.add(["new", "new"], ["one text", "another"])
    with pytest.raises(InputError, match="no item with the id 'zzz'"):
        index.remove(["t3", "zzz"])
    monkeypatch.setattr(module, "BATCH_ROWS", 2)
    with pytest.raises(InputError, match="the id 't3' is in the index already"):
        index.add([f"n{i}" for i in range(9)] + ["t3"], texts[:10])
    assert index.info()["generation"] == before
    assert len(index) == 40
    assert "new" not in index
    assert index.check().unused > 0
    index.compact()
    assert index.check().unused == 0


def test_large_additions_are_stored_in_parts(place, texts, monkeypatch):
    monkeypatch.setattr(module, "BATCH_ROWS", 7)
    with Index.create(place, shingle="words:2", threshold=0.5) as index:
        assert index.add(None, texts) == 40
        assert index.add(None, texts[:5]) == 5
        assert index.query(texts[2])["id_b"].to_pylist() == [2, 42]
        assert index.get([2, 42]) == [texts[2]] * 2
        assert index.info()["generation"] == 2


def test_items_are_numbered_where_there_are_no_ids(place):
    with Index.create(place, shingle=None) as index:
        index.add([7, 3], [["a"], ["b"]])
        index.add(None, [["c"], ["d"]])
        assert index.query([["a"], ["b"], ["c"], ["d"]])["id_b"].to_pylist() == [7, 3, 8, 9]
        with pytest.raises(IncompatibleError, match="ids of this index are integers, and these are strings"):
            index.add(["x"], [["e"]])


@pytest.mark.parametrize(
    "text", ["", "ein schönes Haus am See", "𝔘 ni\x00code\x1f of \u05d0\u05d1 kinds", "word " * 10_000]
)
def test_a_single_document_is_asked_as_a_list_of_one(tmp_path, text):
    with Index.create(tmp_path / "one", shingle="words:2,normalize=NFC") as index:
        index.add(None, [text, "something else", text])
        assert index.query(text).equals(index.query([text]))
        assert index.query(text)["id_b"].to_pylist() == [0, 2]


def test_settings_are_those_of_the_index(index, place):
    path = place
    with Index.open(path, shingle="words:2", threshold=0.5, recall=0.99, seed=1) as again:
        assert len(again) == 40
    with pytest.raises(IncompatibleError, match=r"made with threshold 0\.5, not 0\.8"):
        Index.open(path, threshold=0.8)
    with pytest.raises(IncompatibleError, match=r"made with shingle 'words:2', not 'words:3'"):
        Index.open(path, shingle="words:3")
    with pytest.raises(IncompatibleError, match=r"made with normalize None, not 'NFC'"):
        Index.open(path, shingle="words:2,normalize=NFC")
    with pytest.raises(IncompatibleError, match=r"made with seed 1, not 2"):
        Index.open(path, seed=2)
    with pytest.raises(ParameterError, match=r"at least 0\.5, that of the index"):
        index.query("a", threshold=0.4)
    with pytest.raises(ParameterError, match=r"was not made for it, which is an option of create"):
        index.query("a", measure="containment")


def test_what_is_wrong_is_said(tmp_path, index, place):
    with pytest.raises(MissingInput, match="there is no index in this folder"):
        Index.open(tmp_path / "nothing")
    with pytest.raises(OutputError, match="there is an index already"):
        Index.create(place)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="this folder is not empty"):
        Index.create(tmp_path)
    with pytest.raises(ParameterError, match="2 ids and 1 items"):
        index.add(["a", "b"], ["one"])
    with pytest.raises(ParameterError, match=r"'ids' parameter of Index\.add"):
        index.add("a", ["one"])
    for text in ("lone \ud800", ["lone \ud800"]):
        with pytest.raises(ParameterError, match=r"Index\.query: texts must be strings: .*surrogates not allowed"):
            index.query(text)
    with pytest.raises(ParameterError, match="made for documents, not for Sets"):
        index.query(likewise.Sets.from_lists([["a"]]))
    with pytest.raises(ParameterError, match=r"'k' parameter of Index\.query"):
        index.query("a", k=0)
    with pytest.raises(ParameterError, match="Python function"):
        Index.create(tmp_path / "other", shingle=likewise.StopWords(rule=lambda word: len(word) < 3))
    with pytest.raises(ParameterError, match=r"'texts' parameter of Index\.create has no effect for sets"):
        Index.create(tmp_path / "other", shingle=None, texts=True)
    assert not (tmp_path / "other").exists()
    with Index.create(tmp_path / "sets", shingle=None) as sets:
        with pytest.raises(ParameterError, match="made for sets, not for documents"):
            sets.add([1], ["a text"])
        with pytest.raises(LikewiseError, match="has no documents"):
            sets.get([1])
        broken = likewise.Sets(np.array([5, 5], np.uint64), np.array([0, 2]))
        with pytest.raises(InputError, match="set 0 has an element twice"):
            sets.add([1], broken)


def test_repr_and_information(index):
    assert repr(index).endswith(f"{index.where}: 40 items, words:2, jaccard ≥ 0.5>")
    info = index.info()
    assert (info["count"], info["different"], info["removed"], info["ids"]) == (40, 40, 0, "string")
    assert info["bytes_used"] <= info["bytes_on_disk"]
    assert 5 not in index
    assert object() not in index


def test_documents_come_back_as_they_were(place):
    documents = ["", "ä\0\n" * 5, "x" * 200_000, "last"]
    with Index.create(place) as index:
        index.add(list("abcd"), documents)
        index.add(["e"], ["more"])
        index.remove(["c"])
        assert index.get(list("dbae")) == ["last", documents[1], "", "more"]
        index.compact()
        assert index.get(list("dbae")) == ["last", documents[1], "", "more"]
        with pytest.raises(InputError, match="no item with the id 'c'"):
            index.get(["c"])
        assert index.query([""])["id_b"].to_pylist() == ["a"]


def test_removed_items_free_their_space(place):
    with Index.create(place, shingle=None) as index:
        rng = np.random.default_rng(1)
        sets = [rng.integers(0, 2**40, 500).tolist() for _ in range(400)]
        index.add(None, sets)
        large = index.info()["bytes_on_disk"]
        assert index.remove(range(380)) == 380
        assert index.query(sets[:380]).num_rows == 0
        assert index.compact()["bytes_on_disk"] < large / 5
        assert index.query(sets[380:])["id_b"].to_pylist() == list(range(380, 400))


def test_a_run_becomes_an_index(tmp_path, texts):
    source = tmp_path / "docs.parquet"
    pq.write_table(pa.table({"key": [f"k{i}" for i in range(45)], "text": [*texts, *texts[:5]]}), source)
    run = tmp_path / "run"
    settings = {"shingle": "words:2", "threshold": 0.6, "seed": 9, "ignore_common": 0.5}
    likewise.dedup(str(source), id="key", out=run, method="lsh", **settings)
    with Index.from_run(run, tmp_path / "index") as index:
        assert len(index) == 40
        assert (index.scheme.threshold, index.scheme.minhash.seed) == (0.6, 9)
        assert index.query(texts)["id_b"].to_pylist() == [f"k{i}" for i in range(40)]
    with pytest.raises(MissingInput):
        Index.from_run(tmp_path / "nothing", tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_another_process_sees_what_was_added(index, texts):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if index.query(texts[3])["id_b"].to_pylist() == ["t3"] and len(index) == 40 else 2
            index.add(["from the child"], ["a text of the child"])
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "from the child" in index
    assert len(index) == 41


def test_threads_read_while_one_writes(place, texts):
    stop, errors = threading.Event(), []
    with Index.create(place, shingle="words:2", threshold=0.5) as index:
        index.add([f"t{i}" for i in range(40)], texts)

        def ask():
            try:
                while not stop.is_set():
                    found = index.query(texts[:5])["id_b"].to_pylist()
                    assert found[:1] == ["t0"]
                    assert [one for one in found if one.startswith("t")] == [f"t{i}" for i in range(5)]
            except BaseException as error:
                errors.append(error)

        readers = [threading.Thread(target=ask) for _ in range(2)]
        for reader in readers:
            reader.start()
        for number in range(10):
            index.add([f"n{number}"], [" ".join(prose(1000 + number, 3000))])
            if number % 5 == 4:
                index.remove([f"n{number}"])
                index.compact()
        stop.set()
        for reader in readers:
            reader.join()
        assert errors == []
        assert len(index) == 48


def damage(path, what):
    """Flip a bit in the middle of these bytes of the database, also in pages that are not used any more."""
    data = path / "1" / "data.mdb"
    content = data.read_bytes()
    assert what in content
    other = bytearray(what)
    other[len(what) // 2] ^= 1
    data.write_bytes(content.replace(what, other))


def parts_of(index):
    """The bytes of every value of an index, by the name of the array."""
    with index._store.read() as snapshot:
        names = [name for name in snapshot.names() if "/" in name]
        return {name.split("/")[1]: bytes(snapshot.get(name)) for name in names}


@pytest.mark.parametrize("name", ["keys", "sets", "starts", "digests", "id_hashes", "id_rows", "shingles", "owners"])
def test_damaged_tables_are_made_again(tmp_path, texts, name):
    path = tmp_path / "index"
    with Index.create(path, shingle="words:2", containment=True) as index:
        index.add([f"t{i}" for i in range(40)], texts)
        index.remove(["t7"])
        what = parts_of(index)[name]
    damage(path, what)
    with Index.open(path) as index:
        if name in ("digests", "id_hashes", "id_rows"):  # which queries do not read
            assert index.query(texts).num_rows == 39
        else:
            with pytest.raises(DamagedError, match=rf"/{name} of the index is damaged: .*; run index check"):
                index.query(texts)
        with pytest.raises(DamagedError, match=r"1 value of \d+ damaged, such as .*keeps all items but 0 of 39"):
            index.check()
        assert index.check(repair=True).lost == 0
        assert index.check().items == 39
        left = [f"t{i}" for i in range(40) if i != 7]
        assert index.query(texts)["id_b"].to_pylist() == left
        assert index.query(texts, measure="containment")["id_b"].to_pylist() == left
        assert index.get(left) == [text for i, text in enumerate(texts) if i != 7]


@pytest.mark.parametrize("name", ["elements", "offsets", "ids", "id_offsets", "texts", "text_offsets", "blocks"])
def test_items_whose_data_is_damaged_are_lost_and_counted(tmp_path, texts, name, monkeypatch):
    path = tmp_path / "index"
    monkeypatch.setattr("likewise.index.segment.CHUNK_BYTES", 1)
    with Index.create(path, shingle="words:2", threshold=0.5) as index:
        index.add([f"t{i}" for i in range(10)], [f"{text} more" for text in texts[:10]])
        what = parts_of(index)[name]
        index.add([f"t{i}" for i in range(10, 40)], [*texts[10:39], f"{texts[2]} more"])
        assert len(index.info()["segments"]) == 1
    damage(path, what)
    with Index.open(path) as index:
        with pytest.raises(DamagedError, match="keeps all items but 10 of 40"):
            index.check()
        report = index.check(repair=True)
        assert report.lost == 11, "ten of the chunk, and one whose set was in it"
        assert str(report).endswith("11 items lost in the repair")
        assert index.query(texts[10:39])["id_b"].to_pylist() == [f"t{i}" for i in range(10, 39)]
        assert "t2" not in index
        index.add(["t2"], [texts[2]])
        assert index.check().items == 30


def test_what_an_interrupted_addition_left_is_removed(index, monkeypatch):
    monkeypatch.setattr(module, "BATCH_ROWS", 2)
    with pytest.raises(InputError):
        index.add(["x", "y", "z", "t1"], ["a b", "c d", "e f", "g h"])
    assert index.check().unused > 0
    assert "of an interrupted add" in str(index.check())
    assert index.check(repair=True).unused == 0
    assert index.check().unused == 0
    assert len(index) == 40


SHINGLERS = {
    "words:2": "to be or not to be that is the question {}",
    "words:2,bits=32": "to be or not to be that is the question {}",
    "chars:4,bag=true": "to be or not to be {} to be or not to be",
    "chars:3,whitespace=remove,normalize=NFKC": "ﬁne weather for ducks {}",
    "tokens": "milk bread eggs tea x{}",
    "tokens,counts=true": "milk:3 bread:2 eggs x{}:2",
    "stopwords:en": "the cat sat on the mat and the dog lay by the door of the house {}",
    "stopwords:auto": "the cat sat on the mat and the dog lay by the door of the house {}",
    "urls": "http://www.example.org/docs/manual/part/chapter{}/index.html",
}


@pytest.mark.parametrize("spec", SHINGLERS)
def test_every_shingler_gives_the_similarities_of_pairs(tmp_path, spec):
    documents = [SHINGLERS[spec].format(f"{'abcdefgh'[i % 8]}{i // 4}") for i in range(12)]
    expected = likewise.pairs(documents, shingle=spec, threshold=0.5, method="exact").table.to_pylist()
    with Index.create(tmp_path / "index", shingle=spec, threshold=0.5, bands=64, rows=1) as index:
        index.add(None, documents[:7])
        index.add(None, documents[7:])
        index.close()
    with Index.open(tmp_path / "index", shingle=spec) as index:
        found = index.query(documents).to_pylist()
    assert sorted(
        (row["id_a"], row["id_b"], row["similarity"]) for row in found if row["id_a"] < row["id_b"]
    ) == sorted((row["id_a"], row["id_b"], row["similarity"]) for row in expected)
    assert len(found) == 2 * len(expected) + 12
