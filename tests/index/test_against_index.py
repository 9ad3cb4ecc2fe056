"""`dedup --against INDEX`: the answer is that against a run with the same documents; `--add` adds what is kept."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise import IncompatibleError, Index, InputError, OutputError, ParameterError, Words
from likewise.index.redis_server import RedisAddress
from likewise.index.reference_index import ReferenceIndex, ReferenceVectorIndex
from likewise.io.workspace import Workspace
from likewise.jobs import addition, reference_items
from likewise.jobs.result import Dedup

SETTINGS = {"shingle": "words:2", "threshold": 0.5, "bands": 12, "rows": 2}
QUICK = {**SETTINGS, "threads": 1}


def texts(seed: int, count: int) -> list[str]:
    """Documents with near-copies and copies among them, and empty ones."""
    rng = random.Random(seed)
    found = ["", " ", "short"]
    while len(found) < count:
        words = [f"w{rng.randrange(400)}" for _ in range(rng.randint(5, 30))]
        found.append(" ".join(words))
        for _ in range(rng.randrange(3)):
            words[rng.randrange(len(words))] = f"w{rng.randrange(400)}"
            found.append(" ".join(words) if rng.random() < 0.7 else " ".join(words).upper())
    rng.shuffle(found)
    return found[:count]


def write(path: Path, rows: list[tuple[object, str]]) -> Path:
    path.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in rows))
    return path


def kept(folder: Path) -> list[object]:
    return [
        json.loads(line)["n"] for path in sorted((folder / "kept").iterdir()) for line in path.read_text().splitlines()
    ]


def tables(folder: Path) -> dict[str, list[dict[str, object]]]:
    """The tables of a run; where the known document of a row is becomes True."""
    found = {}
    for name in ("removed", "pairs", "clusters"):
        rows = pq.read_table(folder / f"{name}.parquet").to_pylist()
        found[name] = [
            {key: (value is not None) if key in ("kept_in", "a_in") else value for key, value in row.items()}
            for row in rows
        ]
    return found


def content(index: Index) -> list[tuple[object, str]]:
    with index.snapshot() as view:
        ids = view.ids(np.arange(int(view.starts[-1])))
    names = [one for one in ids.to_pylist() if one in index]
    return list(zip(names, index.get(names), strict=True))


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """The run of some documents, an index made from it, and more documents."""
    folder = tmp_path_factory.mktemp("half")
    rows = list(enumerate(texts(5, 240)))
    old, new = write(folder / "old.jsonl", rows[:120]), write(folder / "new.jsonl", rows[120:])
    likewise.dedup(old, id="n", out=folder / "run", **SETTINGS)
    Index.from_run(folder / "run", folder / "index").close()
    likewise.dedup(new, id="n", out=folder / "expected", against=folder / "run", **SETTINGS)
    return folder


@pytest.mark.parametrize("memory", [None, "64MiB"])
def test_the_answer_is_that_against_a_run(half, tmp_path, memory):
    result = likewise.dedup(
        half / "new.jsonl", id="n", out=tmp_path / "out", against=half / "index", memory=memory, **SETTINGS
    )
    assert tables(tmp_path / "out") == tables(half / "expected")
    assert kept(tmp_path / "out") == kept(half / "expected")
    expected = json.loads((half / "expected" / "run.json").read_text())["counts"]
    fewer = {"groups": 0, "candidates": 0}  # items of the index that are not similar to a document do not take part
    assert {**expected, **fewer} == {**result.stats["counts"], **fewer}
    places = {row["kept_in"] for row in result.removed.to_pylist()}
    assert places == {str(half / "index"), None}
    assert result.stats["parameters"]["against"] == [str(half / "index")]


@settings(max_examples=settings.default.max_examples // 2)  # each makes four runs
@given(st.integers(0, 10_000), st.integers(0, 40), st.integers(1, 40), st.booleans())
def test_the_answer_is_that_against_a_run_whatever_the_documents(tmp_path_factory, seed, old, new, removing):
    folder = tmp_path_factory.mktemp("any")
    rows = list(enumerate(texts(seed, old + new)))
    likewise.dedup(write(folder / "old.jsonl", rows[:old]), id="n", out=folder / "run", **QUICK)
    given = write(folder / "new.jsonl", rows[old:])
    likewise.dedup(given, id="n", out=folder / "expected", against=folder / "run", **QUICK)
    with Index.from_run(folder / "run", folder / "index") as index:
        if removing:  # items that are gone, and segments, make no difference
            words = [f"{text} and more" for _, text in rows[old:]]
            index.add([10_000 + i for i in range(new)], words)
            index.remove([10_000 + i for i in range(new)])
        likewise.dedup(given, id="n", out=folder / "out", against=index, **QUICK)
    assert tables(folder / "out") == tables(folder / "expected")
    assert kept(folder / "out") == kept(folder / "expected")


def test_both_stores_and_a_run_together(place, half, tmp_path):
    more = list(enumerate(texts(6, 60), 1000))
    with Index.create(place, **SETTINGS) as index:
        index.add([n for n, _ in more], [text for _, text in more])
    where = str(place)
    write(tmp_path / "both.jsonl", [(n + 5000, text) for n, text in more[::3]] + list(enumerate(texts(5, 240)))[120:])
    given = {"id": "n", "against": [half / "run", where], **SETTINGS}
    result = likewise.dedup(tmp_path / "both.jsonl", **given)
    assert set(result.removed["kept_in"].to_pylist()) == {None, str(half / "run"), Index.open(place).where}
    assert not {n for n, _ in more[::3]} & set(result.kept["n"].to_pylist())
    assert result.stats["counts"]["earlier"] == 60 + len(kept(half / "run"))
    same = [row for row in result.removed.to_pylist() if row["id"] >= 5000 and row["kind"] == "identical"]
    assert len(same) >= 15, "each is there, byte for byte"


def test_known_documents_that_are_similar_to_each_other_are_all_known(tmp_path):
    words = [f"w{i}" for i in range(30)]
    first, second, third = (" ".join(words[start : start + 20]) for start in (0, 5, 10))
    rows = {"text": [second, third, third + " end"], "id": ["x", "y", "z"]}
    for name, text in (("run1", first), ("run2", second)):
        likewise.dedup(write(tmp_path / f"{name}.jsonl", [(name, text)]), id="n", out=tmp_path / name, **SETTINGS)
    with Index.create(tmp_path / "ix", **SETTINGS) as index:
        index.add(["run1", "run2"], [first, second])
        for against in (index, [tmp_path / "run1", tmp_path / "run2"]):
            removed = likewise.dedup(pa.table(rows), id="id", against=against, **SETTINGS).removed
            found = [(row["id"], row["kept_id"], row["kind"]) for row in removed.to_pylist()]
            assert found == [("x", "run2", "identical"), ("y", "run2", "near"), ("z", "run2", "near")]


def test_the_certificate_does_not_count_pairs_that_are_both_known(tmp_path):
    """Two known documents are never compared, so copies of them say nothing about how many pairs were found."""
    fox = "the quick brown fox jumps over the lazy dog and runs into the forest to hide"
    documents = [fox, f"{fox} from rain", "a different story about the weather in the mountains"]
    with Index.create(tmp_path / "index", shingle="words:2", threshold=0.5) as index:
        index.add(list("abc"), documents)
        again = likewise.dedup(documents, shingle="words:2", threshold=0.5, against=index)
        more = likewise.dedup([*documents, f"{fox} in the rain"], shingle="words:2", threshold=0.5, against=index)
    assert again.removed.num_rows == 3
    assert again.stats["certificate"]["true_pairs"] == 0
    certificate = more.stats["certificate"]
    assert certificate["found_pairs"] == certificate["true_pairs"] > 0


def test_an_index_without_documents_cannot_tell_copies(tmp_path):
    words = " ".join(f"w{i}" for i in range(20))
    with Index.create(tmp_path / "ix", texts=False, **SETTINGS) as index:
        index.add(["a"], [words])
        removed = likewise.dedup(pa.table({"text": [words], "n": ["b"]}), id="n", against=index, **SETTINGS).removed
        assert removed.to_pylist() == [
            {"id": "b", "kept_id": "a", "similarity": 1.0, "kind": "near", "kept_in": str(tmp_path / "ix")}
        ]
        assert len(index) == 1  # it is still open


def test_many_similar_items_are_more_than_enough(tmp_path, monkeypatch):
    monkeypatch.setattr(reference_items, "MOST", 3)
    words = [f"w{i}" for i in range(40)]
    with Index.create(tmp_path / "ix", **SETTINGS) as index:
        index.add(None, [" ".join([*words, f"x{i}"]) for i in range(50)])
        result = likewise.dedup([" ".join(words), "another one"], against=index, **SETTINGS)
    assert [row["id"] for row in result.removed.to_pylist()] == [0]
    assert result.pairs.num_rows == 3


def test_common_shingles_are_those_of_the_index(tmp_path):
    menu = " ".join(f"menu{i}" for i in range(30))
    rows = [(i, f"{menu} " + " ".join(f"d{i}w{j}" for j in range(12))) for i in range(30)]
    file = write(tmp_path / "a.jsonl", rows)
    likewise.dedup(file, id="n", out=tmp_path / "run", ignore_common=0.5, **SETTINGS)
    Index.from_run(tmp_path / "run", tmp_path / "ix").close()
    new = write(tmp_path / "b.jsonl", [(100, rows[3][1] + " end"), (101, f"{menu} of something else")])
    for against in ("run", "ix"):
        result = likewise.dedup(new, id="n", out=tmp_path / f"out-{against}", against=tmp_path / against, **SETTINGS)
        assert [(row["id"], row["kept_id"]) for row in result.removed.to_pylist()] == [(100, 3)]
    Index.create(tmp_path / "plain", **SETTINGS).close()
    with pytest.raises(IncompatibleError, match="ignore different common shingles"):
        likewise.dedup(new, against=[tmp_path / "run", tmp_path / "plain"], **SETTINGS)


def test_other_settings_are_refused(tmp_path):
    Index.create(tmp_path / "ix", **SETTINGS).close()
    for name, value in [("threshold", 0.6), ("seed", 2), ("shingle", Words(2, casefold=False)), ("method", "exact")]:
        more = {**SETTINGS, name: value}
        if name == "method":
            del more["bands"], more["rows"]
        wrong = "casefold" if name == "shingle" else name
        with pytest.raises(IncompatibleError, match=f"ix was made with {wrong} .* and this run has"):
            likewise.dedup(["a b c"], against=tmp_path / "ix", **more)
    with pytest.raises(ParameterError, match="bands"):
        likewise.dedup(["a b c"], against=tmp_path / "ix", shingle="words:2", threshold=0.5, bands=9)
    Index.create(tmp_path / "other", **{**SETTINGS, "threshold": 0.7}).close()
    with pytest.raises(IncompatibleError, match=r"different settings: threshold is 0\.5 and 0\.7"):
        likewise.dedup(["a b c"], against=[tmp_path / "ix", tmp_path / "other"], **SETTINGS)
    Index.create(tmp_path / "sets", shingle=None).close()
    with pytest.raises(IncompatibleError, match="does not hold documents"):
        likewise.dedup(["a b c"], against=tmp_path / "sets")
    likewise.dedup(write(tmp_path / "a.jsonl", [(1, "a b c")]), out=tmp_path / "run", shingle="words:2", threshold=0.5)
    with pytest.raises(IncompatibleError, match="method is 'exact' and 'lsh'"):
        likewise.dedup(["a b c"], against=[tmp_path / "run", tmp_path / "ix"], **SETTINGS)


def test_adding_needs_one_index_and_ids(half, tmp_path):
    file = half / "new.jsonl"
    Index.create(tmp_path / "ix", **SETTINGS).close()
    for against in (None, []):
        with pytest.raises(ParameterError, match="'add' parameter of dedup has no effect without an index"):
            likewise.dedup(file, add=True, against=against, **SETTINGS)
    with pytest.raises(ParameterError, match="exactly one index; it names none"):
        likewise.dedup(file, add=True, against=half / "run", **SETTINGS)
    with pytest.raises(ParameterError, match="exactly one index; it names 2"):
        likewise.dedup(file, add=True, against=[tmp_path / "ix", half / "index"], **SETTINGS)
    with pytest.raises(ParameterError, match="needs documents with ids"):
        likewise.dedup(file, add=True, against=tmp_path / "ix", **SETTINGS)
    with pytest.raises(ParameterError, match="'add' parameter of dedup must be False with engine='spark'"):
        likewise.dedup(file, add=True, against=tmp_path / "ix", engine="spark", **SETTINGS)
    with Index.open(tmp_path / "ix") as index:
        index.add(["a string"], ["something"])
        with pytest.raises(ParameterError, match="ids must be integers or strings, not double"):
            likewise.dedup(pa.table({"text": ["x y z"], "n": [1.5]}), id="n", add=True, against=index, **SETTINGS)


@pytest.mark.parametrize("kept_texts", [True, False])
def test_tasks_of_a_cluster_have_the_answers_of_one_process(place, kept_texts):
    known, new = texts(6, 90), texts(6, 120)[60:]
    with Index.create(place, **SETTINGS, texts=kept_texts) as index:
        for start in range(0, 90, 30):
            index.add(list(range(start, start + 30)), known[start : start + 30])
        index.remove([3, 4, 50])
        reference = ReferenceIndex(index)
        asked = pickle.loads(pickle.dumps(reference.asked()))
        assert str(place) in asked.address or "lease=0.5" in asked.address
        assert "lease" not in repr(asked)
        assert (asked.rows, asked.live, asked.strings) == (90, 87, False)
        batches = [Words(2).sets(new[:10]), Words(2).sets(new[10:])]
        whole = together(reference.similar(batches, 5, 2))
        found = list(asked.similar(batches, 5))
        rows = np.unique(np.concatenate([rows for rows, _ in found]))
        equal = np.isin(rows, np.concatenate([rows[same] for rows, same in found]))
        assert 0 < equal.sum() < len(rows)
        parts = [together(asked.items(rows[part], equal[part])) for part in (slice(0, 7), slice(7, None))]
        assert whole == [one for part in parts for one in part]
        asked.check()
        index.remove([8])
        for call in (asked.check, lambda: list(asked.similar(batches, 5)), lambda: list(asked.items(rows, equal))):
            with pytest.raises(InputError, match="the index has changed since the run began"):
                call()


def test_a_process_of_tasks_finds_an_index_that_was_made_anew(tmp_path):
    place = tmp_path / "index"
    for count in (1, 2):
        with Index.create(tmp_path / "next", **SETTINGS) as index:
            index.add(list(range(count)), ["one two three"] * count)
            asked = replace(ReferenceIndex(index).asked(), address=str(place))
        shutil.rmtree(place, ignore_errors=True)
        (tmp_path / "next").rename(place)
        found = list(asked.similar([Words(2).sets(["one two three four"])], 5))
        assert [rows.tolist() for rows, _ in found] == [list(range(count))]


def together(parts):
    """Similar items, one by one."""
    return [
        (name, sets.tolist(), digest.tolist(), unit.tolist())
        for some in parts
        for name, sets, digest, unit in zip(some.ids.to_pylist(), some.sets, some.digests, some.units, strict=True)
    ]


def test_the_address_of_an_index_has_what_another_process_needs(monkeypatch):
    monkeypatch.setenv("REDISCLI_AUTH", "a/b?c&d")
    given = "redis://reader@host:6380/2?name=library&socket_timeout=3&grace=60"
    address = RedisAddress.of("test", given)
    monkeypatch.delenv("REDISCLI_AUTH")
    again = RedisAddress.of("test", address.whole)
    assert again == address
    assert again.password == "a/b?c&d"
    assert "a/b" not in repr(address)


def test_days_one_after_another_keep_what_one_run_keeps(place, tmp_path):
    rows = list(enumerate(texts(9, 180)))
    days = [write(tmp_path / f"day{i}.jsonl", rows[60 * i : 60 * i + 60]) for i in range(3)]
    likewise.dedup(write(tmp_path / "all.jsonl", rows), id="n", out=tmp_path / "all", **SETTINGS)
    Index.create(place, **SETTINGS).close()
    found = []
    for i, day in enumerate(days):
        out = tmp_path / f"out{i}"
        result = likewise.dedup(day, id="n", out=out, against=str(place), add=True, **SETTINGS)
        found += kept(out)
        assert json.loads((out / "run.json").read_text())["counts"]["added"] == len(kept(out))
        assert result.stats["counts"]["added"] == len(kept(out))
    assert found == kept(tmp_path / "all")
    with Index.open(place) as index:
        index.check()
        assert content(index) == [row for row in rows if row[0] in set(found)]


def test_what_was_kept_is_added_from_memory_too(tmp_path):
    rows = texts(3, 50)
    with Index.create(tmp_path / "ix", **SETTINGS) as index:
        result = likewise.dedup(pa.table({"text": rows, "n": range(50)}), id="n", against=index, add=True, **SETTINGS)
        assert [n for n, _ in content(index)] == result.kept["n"].to_pylist()


def test_an_id_of_another_document_is_an_error_before_anything_is_written(tmp_path):
    with Index.create(tmp_path / "ix", **SETTINGS) as index:
        index.add([7], ["one two three four"])
        file = write(tmp_path / "a.jsonl", [(6, "five six seven eight"), (7, "nine ten eleven twelve")])
        with pytest.raises(InputError, match="the id 7 is in the index already, with another document"):
            likewise.dedup(file, id="n", out=tmp_path / "out", against=index, add=True, **SETTINGS)
        assert len(index) == 1
        assert not (tmp_path / "out" / "run.json").exists()


class KilledError(BaseException):
    """Stands for the death of the process."""


@pytest.mark.parametrize("moment", ["asked", "written", "adding", "added", "noted"])
def test_a_run_that_was_killed_ends_as_if_it_had_not_been(half, tmp_path, monkeypatch, moment):
    def run(name: str) -> None:
        Index.open(tmp_path / f"index-{name}").close()
        likewise.dedup(
            half / "new.jsonl", id="n", out=tmp_path / name, against=tmp_path / f"index-{name}", add=True, **SETTINGS
        )

    for name in ("plain", "killed"):
        Index.from_run(half / "run", tmp_path / f"index-{name}").close()
    run("plain")

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        owner, name = {
            "asked": (Dedup, "__init__"), "written": (addition.Addition, "make"), "adding": (ReferenceIndex, "add"),
            "added": (addition, "write_json"), "noted": (Workspace, "finish"),
        }[moment]  # fmt: skip
        patch.setattr(owner, name, die)
        with pytest.raises(KilledError):
            run("killed")
    assert (tmp_path / "killed" / "run.json").exists() == (moment != "asked")
    run("killed")
    assert tables(tmp_path / "killed") == tables(tmp_path / "plain")
    assert kept(tmp_path / "killed") == kept(tmp_path / "plain")
    counts = [json.loads((tmp_path / name / "run.json").read_text())["counts"] for name in ("plain", "killed")]
    assert counts[0] == counts[1]
    with Index.open(tmp_path / "index-plain") as one, Index.open(tmp_path / "index-killed") as other:
        assert content(one) == content(other)
        other.check()
    before = (tmp_path / "killed" / "run.json").read_bytes()
    with pytest.raises(OutputError, match="this run is finished, and what it kept is in"):
        run("killed")
    assert (tmp_path / "killed" / "run.json").read_bytes() == before
    assert not (tmp_path / "killed" / ".likewise").exists()


def test_the_command_line(typed, tmp_path):
    rows = list(enumerate(texts(11, 60)))
    write(tmp_path / "a.jsonl", rows[:30])
    write(tmp_path / "b.jsonl", rows)
    assert typed("index", "create", "seen", "--shingle", "words:2", "--threshold", "0.5").returncode == 0
    for name in ("a", "b"):
        words = ["dedup", f"{name}.jsonl", "--id", "n", "--against", "seen", "--add", "--out", name]
        done = typed(*words)
        assert done.returncode == 0, done.stderr
        assert "documents to the index" in done.stdout
    stats = json.loads((tmp_path / "b" / "run.json").read_text())
    assert (stats["parameters"]["threshold"], stats["parameters"]["shingle"]) == (0.5, "words:2")
    assert set(kept(tmp_path / "b")).isdisjoint(range(30))
    info = json.loads(typed("index", "info", "seen", "--json").stdout)
    assert info["count"] == len(kept(tmp_path / "a")) + len(kept(tmp_path / "b"))
    again = typed(*words)
    assert again.returncode == 1
    assert "finished" in again.stderr
    other = typed("dedup", "b.jsonl", "--against", "seen", "--threshold", "0.7", "--out", "c")
    assert other.returncode == 1
    assert "seen was made with threshold 0.5 and this run has 0.7" in other.stderr
    lost = typed("dedup", "b.jsonl", "--against", "nowhere", "--out", "c")
    assert lost.returncode == 1
    assert "nowhere: there is no finished run" in lost.stderr


WITHIN = {"measure": "angle", "within": 5}


def crowds(seed: int, count: int) -> np.ndarray:
    """Vectors with near-copies and copies among them."""
    rng = np.random.default_rng(seed)
    base = rng.standard_normal((count // 3 + 1, 8)).astype(np.float32)
    noise = rng.choice([0, 0.02], (3, len(base), 1)) * rng.standard_normal((3, *base.shape))
    return (base + noise).reshape(-1, 8)[rng.permutation(3 * len(base))[:count]].astype(np.float32)


@pytest.mark.parametrize("named", [True, False])
def test_days_of_vectors_keep_what_one_run_keeps(place, tmp_path, named):
    table, ids = crowds(4, 180), np.arange(180) * 7
    Index.create(place, measure="angle").close()
    found, kept_rows, first = [], [], 0
    for day in range(3):
        rows, out = slice(60 * day, 60 * day + 60), tmp_path / f"out{day}"
        given = pa.table({"vector": list(table[rows]), "n": ids[rows]}) if named else table[rows]
        result = likewise.dedup(
            given, id="n" if named else None, against=str(place), add=True, out=out, threads=1, **WITHIN
        )
        keep = np.flatnonzero(result.keep_mask)
        found.append(table[rows][keep])
        kept_rows += (ids[rows][keep] if named else keep + first).tolist()
        details = json.loads((out / "run.json").read_text())["details"]
        assert details.get("added_from") == (None if named else first)
        first = kept_rows[-1] + 1
    assert np.array_equal(np.concatenate(found), likewise.dedup(table, **WITHIN).kept)
    with Index.open(place) as index:
        index.check()
        assert np.array_equal(index.get(kept_rows), np.concatenate(found))
        assert len(index) == len(kept_rows) < 150


@pytest.mark.parametrize("moment", ["asked", "written", "adding", "added", "noted"])
def test_a_run_of_vectors_that_was_killed_ends_as_if_it_had_not_been(tmp_path, monkeypatch, moment):
    table = crowds(5, 90)
    np.save(tmp_path / "new.npy", table[30:])

    def run(name: str) -> None:
        likewise.dedup(
            tmp_path / "new.npy", out=tmp_path / name, against=tmp_path / f"index-{name}", add=True, threads=1, **WITHIN
        )

    for name in ("plain", "killed"):
        with Index.create(tmp_path / f"index-{name}", **WITHIN) as index:
            index.add(None, likewise.dedup(table[:30], **WITHIN).kept)
    run("plain")

    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        owner, name = {
            "asked": (Dedup, "__init__"), "written": (addition.Addition, "make"),
            "adding": (ReferenceVectorIndex, "add"), "added": (addition, "write_json"), "noted": (Workspace, "finish"),
        }[moment]  # fmt: skip
        patch.setattr(owner, name, die)
        with pytest.raises(KilledError):
            run("killed")
    assert (tmp_path / "killed" / "run.json").exists() == (moment != "asked")
    run("killed")
    assert tables(tmp_path / "killed") == tables(tmp_path / "plain")
    both = [np.load(tmp_path / name / "kept" / "new.npy") for name in ("plain", "killed")]
    assert np.array_equal(*both)
    counts = [json.loads((tmp_path / name / "run.json").read_text())["counts"] for name in ("plain", "killed")]
    assert counts[0] == counts[1]
    with Index.open(tmp_path / "index-plain") as one, Index.open(tmp_path / "index-killed") as other:
        assert content(one)[0][0] == content(other)[0][0]
        assert [(n, row.tolist()) for n, row in content(one)] == [(n, row.tolist()) for n, row in content(other)]
        other.check()
    with pytest.raises(OutputError, match="this run is finished, and what it kept is in"):
        run("killed")


def test_what_an_index_of_vectors_refuses(tmp_path):
    table = crowds(6, 12)
    rows = pa.table({"vector": list(table), "n": range(12)})
    with Index.create(tmp_path / "ix", **WITHIN) as index:
        index.add(["a"], -table[:1])
        with pytest.raises(IncompatibleError, match=r"was made with within 5\.0 and this run has 4"):
            likewise.dedup(table, measure="angle", within=4, against=index)
        with pytest.raises(IncompatibleError, match="was made with measure 'angle' and this run has 'l2'"):
            likewise.dedup(table, measure="l2", within=5, against=index)
        with pytest.raises(IncompatibleError, match="of this index have 8 components, and these 3"):
            likewise.dedup(table[:, :3], against=index, **WITHIN)
        with pytest.raises(IncompatibleError, match=r"float32, and these float64.*astype"):
            likewise.dedup(table.astype(np.float64), against=index, add=True, **WITHIN)
        with pytest.raises(ParameterError, match=r"needs vectors with ids, as those of .* are strings"):
            likewise.dedup(table, against=index, add=True, **WITHIN)
        with pytest.raises(IncompatibleError, match="this index holds vectors; use measure='angle'"):
            likewise.dedup(["a b c"], against=index)
        index.add(["0"], -table[:1] * np.float32(3))
        with pytest.raises(InputError, match=r"the id .0. is in the index already, with another vector; nothing was"):
            likewise.dedup(rows, id="n", out=tmp_path / "out", against=index, add=True, **WITHIN)
        assert not (tmp_path / "out" / "run.json").exists()
        zeros = table.copy()
        zeros[3] = 0
        np.save(tmp_path / "zeros.npy", zeros)
        with pytest.raises(InputError, match=r"zeros\.npy: row 3 \(counted from 0\) is all zeros"):
            likewise.dedup(tmp_path / "zeros.npy", against=index, **WITHIN)
        with pytest.raises(ParameterError, match="'fresh'"):
            likewise.dedup(table, against=index, fresh=True, **WITHIN)
        with pytest.raises(ParameterError, match="names exactly one index; it names 2"):
            likewise.dedup(table, against=[index, index], add=True, **WITHIN)
    Index.create(tmp_path / "texts").close()
    with pytest.raises(IncompatibleError, match="does not hold vectors"):
        likewise.dedup(table, against=tmp_path / "texts", **WITHIN)


def test_vectors_on_the_command_line(typed, tmp_path):
    table = crowds(7, 60)
    np.save(tmp_path / "a.npy", table[:40])
    np.save(tmp_path / "b.npy", table)
    assert typed("index", "create", "seen", "--measure", "angle", "--within", "5").returncode == 0
    for name in ("a", "b"):
        words = ("dedup", f"{name}.npy", "--measure", "angle", "--against", "seen", "--add", "--out", name)
        done = typed(*words)
        assert done.returncode == 0, done.stderr
        assert "vectors to the index" in done.stdout
    gone = pq.read_table(tmp_path / "b" / "removed.parquet").to_pylist()
    assert {row["id"] for row in gone} >= set(range(40))
    assert {row["kept_in"] for row in gone} == {"seen", None}
    again = typed(*words)
    assert again.returncode == 1
    assert "finished" in again.stderr
    assert typed("report", "b").returncode == 0
