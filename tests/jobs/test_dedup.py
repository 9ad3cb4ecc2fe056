"""The two jobs as a user calls them in Python: promises P1, P4, P5, and every kind of source."""

from __future__ import annotations

import gzip
import json
import os
import random
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
import runs
from likewise.base import memory
from likewise.shingle import Words

VOCABULARY = [f"w{i}" for i in range(400)]


def corpus(seed: int = 0, originals: int = 60) -> list[str]:
    """Documents with near-copies of all degrees, exact copies, spellings that fold together, short and empty ones."""
    rng = random.Random(seed)
    texts = ["", "  ", "one two", "One, two!", "…"]
    for _ in range(originals):
        words = rng.choices(VOCABULARY, k=rng.randint(20, 80))
        texts.append(" ".join(words))
        for _ in range(rng.randint(0, 3)):
            changed = list(words)
            for _ in range(rng.randint(0, 4)):
                changed[rng.randrange(len(changed))] = rng.choice(VOCABULARY)
            texts.append(" ".join(changed))
        if rng.random() < 0.3:
            texts.append("  ".join(words).upper())
    rng.shuffle(texts)
    return texts


def shingle_sets(texts: list[str], shingler: Any) -> list[set[str]]:
    """The shingles of each document, as text."""
    return [set(shingler.shingles(text)) for text in texts]


def exact(a: set[str], b: set[str]) -> Fraction:
    """Jaccard similarity by definition."""
    return Fraction(len(a & b), len(a | b)) if a | b else Fraction(1)


def truth(texts: list[str], threshold: float, shingler: Any) -> dict[tuple[int, int], float]:
    found = {}
    sets = shingle_sets(texts, shingler)
    for i, j in combinations(range(len(texts)), 2):
        similarity = float(exact(sets[i], sets[j]))
        if similarity >= threshold:
            found[i, j] = similarity
    return found


def as_dict(table: pa.Table) -> dict[tuple[Any, Any], float]:
    return {(row["id_a"], row["id_b"]): row["similarity"] for row in table.to_pylist()}


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return corpus()


@pytest.fixture(scope="module")
def result(texts: list[str]) -> likewise.Dedup:
    return likewise.dedup(texts, shingle=Words(2), threshold=0.6, recall=0.9999)


def test_pairs_are_exact_and_complete(texts: list[str], result: likewise.Dedup) -> None:
    """P1, P2: no false pair, the exact similarity; at recall 0.9999 the few hundred pairs are all found."""
    expected = truth(texts, 0.6, Words(2))
    assert len(expected) > 100
    assert as_dict(result.pairs) == expected


def test_pairs_are_sorted_in_input_order(result: likewise.Dedup) -> None:
    rows = list(zip(result.pairs["id_a"].to_pylist(), result.pairs["id_b"].to_pylist(), strict=True))
    assert rows == sorted(rows)
    assert all(a < b for a, b in rows)


@pytest.mark.parametrize("keep", ["first", "last", "longest", "shortest"])
def test_every_removal_is_explained(texts: list[str], keep: str) -> None:
    """P4: each removed document is similar to its own keeper, which is kept; kept ones are not similar."""
    result = likewise.dedup(texts, shingle=Words(2), threshold=0.6, recall=0.9999, keep=keep)
    pairs = truth(texts, 0.6, Words(2))
    removed = result.removed.to_pylist()
    gone = {row["id"] for row in removed}
    for row in removed:
        assert row["kept_id"] not in gone
        assert row["similarity"] == pairs[tuple(sorted((row["id"], row["kept_id"])))]
        if texts[row["id"]] == texts[row["kept_id"]]:
            assert row["kind"] == "identical"
        elif Words(2).shingles(texts[row["id"]]):
            assert row["kind"] == "near"
    for a, b in combinations(sorted(set(range(len(texts))) - gone), 2):
        assert (a, b) not in pairs
    rank = {
        "first": lambda i: (i,),
        "last": lambda i: (-i,),
        "longest": lambda i: (-len(texts[i]), i),
        "shortest": lambda i: (len(texts[i]), i),
    }[keep]
    for row in removed:
        assert rank(row["kept_id"]) < rank(row["id"])


def test_clusters_are_connected_components(texts: list[str], result: likewise.Dedup) -> None:
    label = list(range(len(texts)))
    for a, b in truth(texts, 0.6, Words(2)):
        low, high = sorted((label[a], label[b]))
        label = [low if x == high else x for x in label]
    assert result.clusters["cluster"].to_pylist() == label
    assert result.clusters["id"].to_pylist() == list(range(len(texts)))
    assert result.clusters["size"].to_pylist() == [label.count(one) for one in label]
    kept_for = dict(zip(result.removed["id"].to_pylist(), result.removed["kept_id"].to_pylist(), strict=True))
    assert result.clusters["keeper"].to_pylist() == [kept_for.get(row, row) for row in range(len(texts))]


def test_kept_and_removed_add_up(texts: list[str], result: likewise.Dedup) -> None:
    counts = result.stats["counts"]
    assert counts["items"] == len(texts) == counts["kept"] + counts["removed"]
    assert counts["removed"] == counts["identical"] + counts["near"] == result.removed.num_rows
    gone = set(result.removed["id"].to_pylist())
    assert result.kept["text"].to_pylist() == [text for i, text in enumerate(texts) if i not in gone]


@pytest.mark.parametrize(("threads", "batch_rows"), [(1, None), (2, 7), (4, 1), (3, 1000)])
def test_same_answer_whatever_the_threads_and_batches(
    texts: list[str], result: likewise.Dedup, threads: int, batch_rows: int | None
) -> None:
    """P5."""
    again = likewise.dedup(
        texts, shingle=Words(2), threshold=0.6, recall=0.9999, threads=threads, batch_rows=batch_rows
    )
    assert again.pairs.equals(result.pairs)
    assert again.removed.equals(result.removed)
    assert again.clusters.equals(result.clusters)


def test_another_seed_gives_another_sketch_but_verified_pairs(texts: list[str]) -> None:
    expected = truth(texts, 0.6, Words(2))
    sizes = set()
    for seed in range(5):
        found = as_dict(likewise.pairs(texts, shingle="words:2", threshold=0.6, recall=0.5, seed=seed, bands=2, rows=3))
        assert found.items() <= expected.items()
        sizes.add(frozenset(found))
    assert len(sizes) > 1


def sources(texts: list[str], folder: Path) -> Iterator[tuple[str, Any]]:
    import datasets
    import polars

    table = pa.table({"text": texts, "n": list(range(len(texts)))})
    yield "list", texts
    yield "pyarrow", table
    yield "pandas", table.to_pandas()
    yield "polars", polars.from_arrow(table)
    yield "datasets", datasets.Dataset.from_dict({"text": texts})
    pq.write_table(table, folder / "a.parquet", row_group_size=13)
    yield "parquet", folder / "a.parquet"
    yield "path string", str(folder / "a.parquet")
    yield "glob", str(folder / "*.parquet")


def test_every_source_gives_the_same_answer(texts: list[str], result: likewise.Dedup, tmp_path: Path) -> None:
    for name, source in sources(texts, tmp_path):
        again = likewise.dedup(source, shingle=Words(2), threshold=0.6, recall=0.9999)
        assert again.pairs.equals(result.pairs), name
        assert again.removed.equals(result.removed), name


def test_sets_as_source() -> None:
    baskets = [["milk", "bread", "eggs"], ["bread", "milk", "eggs", "milk"], ["tea"], [], [], ["tea", "salt"]]
    result = likewise.dedup(likewise.Sets.from_lists(baskets), threshold=0.5)
    assert as_dict(result.pairs) == {(0, 1): 1.0, (3, 4): 1.0, (2, 5): 0.5}
    assert [row["kind"] for row in result.removed.to_pylist()] == ["identical", "identical", "near"]
    assert len(result.kept) == 3


def test_ids_name_the_documents() -> None:
    table = pa.table({"text": ["a b c d e f", "x", "a b c d e f"], "key": ["u", "v", "w"]})
    result = likewise.dedup(table, id="key")
    assert result.removed.to_pylist() == [{"id": "w", "kept_id": "u", "similarity": 1.0, "kind": "identical"}]
    assert result.clusters.to_pylist() == [
        {"id": "u", "cluster": "u", "size": 2, "keeper": "u"},
        {"id": "v", "cluster": "v", "size": 1, "keeper": "v"},
        {"id": "w", "cluster": "u", "size": 2, "keeper": "u"},
    ]  # fmt: skip


def test_duplicate_ids_are_an_error() -> None:
    table = pa.table({"text": ["a", "b", "c"], "key": [7, 8, 7]})
    with pytest.raises(likewise.InputError, match="id 7 of column 'key' is in rows 0 and 2"):
        likewise.dedup(table, id="key")


@pytest.mark.parametrize(
    ("policy", "kept"),
    [("max:score", 2), ("min:score", 1), ("first", 0), ("last", 3), ("max:day", 1), ("max:none", 0)],
)
def test_keep_by_a_column(policy: str, kept: int) -> None:
    table = pa.table(
        {
            "text": ["same text here"] * 4,
            "score": [2.0, None, 9.5, float("nan")] if policy == "max:score" else [2.0, 1.0, 9.5, None],
            "day": pa.array([1, 30, None, 2], pa.date32()),
            "none": pa.array([None] * 4, pa.int64()),
        }
    )
    removed = likewise.dedup(table, keep=policy).removed
    assert set(removed["kept_id"].to_pylist()) == {kept}


def test_join_of_two_collections(texts: list[str]) -> None:
    here, there = texts[:70], texts[70:]
    shingler = Words(2)
    left, right = shingle_sets(here, shingler), shingle_sets(there, shingler)
    expected = {
        (i, j): float(exact(a, b)) for i, a in enumerate(left) for j, b in enumerate(right) if exact(a, b) >= 0.6
    }
    assert as_dict(likewise.pairs(here, there, shingle=shingler, threshold=0.6, recall=0.9999)) == expected
    assert len(likewise.pairs(here, [], shingle=shingler)) == 0
    assert len(likewise.pairs([], there, shingle=shingler)) == 0


def test_top_partners(texts: list[str]) -> None:
    everything = truth(texts, 0.3, Words(2))
    table = likewise.pairs(texts, shingle=Words(2), threshold=0.3, recall=0.9999, k=2)
    for i in range(len(texts)):
        partners = [(s, a + b - i) for (a, b), s in everything.items() if i in (a, b)]
        best = sorted(partners, key=lambda partner: (-partner[0], partner[1]))[:2]
        found = [(row["similarity"], row["id_b"]) for row in table.to_pylist() if row["id_a"] == i]
        assert found == best


def test_pairs_carries_its_statistics(texts: list[str]) -> None:
    table = likewise.pairs(texts, threshold=0.9)
    stats = table.stats
    assert stats["counts"]["pairs"] == len(table)
    assert stats["details"]["predicted_recall"] >= 0.99


def test_save_writes_everything(texts: list[str], tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": texts, "extra": [str(i) for i in range(len(texts))]}), source)
    result = likewise.dedup(source, shingle=Words(2), threshold=0.6)
    out = result.save(tmp_path / "out")
    assert sorted(path.name for path in out.iterdir()) == [
        "clusters.parquet", "kept", "pairs.parquet", "removed.parquet", "run.json",
    ]  # fmt: skip
    for name in ("clusters", "pairs", "removed"):
        assert pq.read_table(out / f"{name}.parquet").equals(getattr(result, name))
    gone = set(result.removed["id"].to_pylist())
    kept = pq.read_table(out / "kept" / "in.parquet")
    assert kept["extra"].to_pylist() == [str(i) for i in range(len(texts)) if i not in gone]
    run = json.loads((out / "run.json").read_text())
    assert run["likewise"] == likewise.__version__
    assert run["parameters"]["threshold"] == 0.6
    assert run["details"]["predicted_recall"] >= 0.99
    assert run["peak_memory_bytes"] > 1e7
    assert {"read", "sets", "join", "write"} <= run["seconds"].keys()
    result = likewise.dedup(source, shingle=Words(2), threshold=0.6, method="lsh")
    assert {"read", "sketch", "candidates", "verify"} <= result.stats["seconds"].keys()


def test_the_same_bytes_for_any_number_of_threads(texts: list[str], tmp_path: Path) -> None:
    """P5, on the files."""
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": texts}), source, row_group_size=10)
    folders = []
    for threads, batch_rows in ((1, 10_000), (2, 3), (4, 17)):
        out = tmp_path / f"{threads}"
        likewise.dedup(source, threshold=0.6, threads=threads, batch_rows=batch_rows).save(out)
        folders.append({p.name: p.read_bytes() for p in sorted(out.rglob("*.parquet"))})
    assert folders[0] == folders[1] == folders[2]


WAYS: list[dict[str, Any]] = [
    {"threads": 1},
    {"threads": 3, "batch_rows": 7},
    {"threads": 2, "memory": 60_000},
    {"threads": 1, "memory": 9000, "batch_rows": 50},
    {"threads": 2, "memory": 20_000, "spill": "elsewhere", "batch_rows": 13},
]


def write_files(texts: list[str], folder: Path, kind: str) -> Path:
    """Write documents, each with a number and a note, as files of one kind; return what names them."""
    rows = [{"text": text, "n": n, "note": f"é{n}"} for n, text in enumerate(texts)]
    table = pa.Table.from_pylist(rows)
    if kind == "parquet":
        for place in range(3):
            pq.write_table(table.slice(place * 60, 60 if place < 2 else None), folder / f"{place}.parquet")
    elif kind == "arrow":
        with pa.ipc.new_file(folder / "a.arrow", table.schema) as out:
            out.write_table(table, 17)
    elif kind == "csv":
        pa.csv.write_csv(table, folder / "a.csv")
    elif kind == "jsonl":
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    else:
        for n, text in enumerate(texts):
            (folder / f"{n:04d}.txt").write_text(text)
    return folder


@pytest.mark.parametrize(
    "kind", ["parquet", "jsonl", *(pytest.param(kind, marks=pytest.mark.soak) for kind in ("arrow", "csv", "text"))]
)
def test_the_same_bytes_whatever_the_memory(
    texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """P5: memory, spill, threads and batches do not change a byte of any file."""
    monkeypatch.setattr(memory, "LEAST", 1)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # which takes long, and is seen by nobody here
    (tmp_path / "in").mkdir()
    source = write_files(texts, tmp_path / "in", kind)
    answers = []
    for number, way in enumerate(WAYS):
        options = {**way, "spill": tmp_path / way["spill"]} if "spill" in way else way
        out = tmp_path / str(number)
        result = likewise.dedup(source, shingle="words:2", threshold=0.6, out=out, **options)
        assert (result.stats["parameters"]["spilled_bytes"] > 0) == ("memory" in way)
        assert result.stats["counts"]["near"] > 20
        answers.append(runs.answer(out))
    assert all(answer == answers[0] for answer in answers)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_answer_outlives_its_workspace(texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `out` everything on disk is gone when the run is over, and the answer is still whole."""
    monkeypatch.setattr(memory, "LEAST", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": texts, "key": [f"k{n}" for n in range(len(texts))]}), source, row_group_size=20)
    options: dict[str, Any] = {"id": "key", "shingle": Words(2), "threshold": 0.6}
    expected = likewise.dedup(source, **options)
    for place in (None, tmp_path / "temporary"):
        lean = likewise.dedup(source, memory=9000, spill=place, **options)
        assert lean.stats["parameters"]["spilled_bytes"] > 0
        assert list((tmp_path / "temporary").iterdir()) == []
        for name in ("pairs", "removed", "clusters", "kept"):
            assert getattr(lean, name).equals(getattr(expected, name)), name
    lean.save(tmp_path / "lean")
    written = likewise.dedup(source, memory=9000, out=tmp_path / "written", **options)
    assert written.stats["parameters"]["spilled_bytes"] > 0
    assert written.kept.equals(expected.kept)
    expected.save(tmp_path / "expected")
    assert runs.answer(tmp_path / "lean") == runs.answer(tmp_path / "expected")


def test_the_same_pairs_whatever_the_memory(texts: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "LEAST", 1)
    for name, part in (("here", texts[:120]), ("there", texts[60:])):
        pq.write_table(pa.table({"text": part}), tmp_path / f"{name}.parquet", row_group_size=20)
    (tmp_path / "spill").mkdir()
    for other in (None, tmp_path / "there.parquet"):
        options: dict[str, Any] = {"shingle": Words(2), "threshold": 0.6}
        expected = likewise.pairs(tmp_path / "here.parquet", other, **options)
        assert len(expected) > 50
        for threads in (1, 2):
            lean = likewise.pairs(
                tmp_path / "here.parquet", other, memory=9000, spill=tmp_path / "spill", threads=threads, **options
            )
            assert lean.table.equals(expected.table)
            assert list((tmp_path / "spill").iterdir()) == []


@pytest.mark.parametrize("threshold", [0, -1, 1.4, float("nan"), "high", None, True])
def test_bad_thresholds(threshold: Any) -> None:
    with pytest.raises(likewise.ParameterError, match=r"threshold.*must be in \(0, 1\]"):
        likewise.dedup(["a"], threshold=threshold)


@pytest.mark.parametrize(
    "wrong",
    [
        {"recall": 1}, {"recall": 0}, {"recall": float("nan")}, {"keep": "best"}, {"keep": "max:"}, {"seed": -1},
        {"seed": 1.5}, {"threads": 0}, {"shingle": "lines:3"}, {"shingle": "words:0"}, {"shingle": "words:x"},
        {"bands": 3}, {"bands": 0, "rows": 1}, {"max_slots": 0}, {"sketch": "slow"}, {"on_error": "ignore"},
        {"encoding_errors": "drop"}, {"batch_rows": 0}, {"threshold": 0.001, "recall": 0.999, "method": "lsh"},
    ],
)  # fmt: skip
def test_other_bad_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(likewise.ParameterError) as caught:
        likewise.dedup(["some text", "other text"], **wrong)
    assert "\n" not in str(caught.value)


def test_what_hashing_cannot_find_is_found_by_the_exact_join() -> None:
    result = likewise.dedup(["a b c d e f g", "g h i j k l m", "n o"], threshold=0.001, recall=0.999, shingle="words:1")
    assert as_dict(result.pairs) == {(0, 1): 1 / 13}
    assert result.stats["method"]["taken"] == "exact"
    assert "so low a threshold" in result.stats["method"]["why"]


def test_threshold_one_finds_what_has_the_same_shingles() -> None:
    result = likewise.dedup(["a b c d e f g", "a, b, c, d, e, f, g.", "a b c d e f h"], threshold=1)
    assert as_dict(result.pairs) == {(0, 1): 1.0}


@pytest.mark.parametrize("source", [[], pa.table({"text": pa.array([], pa.string())}), likewise.Sets.from_lists([])])
def test_nothing_in_nothing_out(source: Any) -> None:
    result = likewise.dedup(source)
    assert result.pairs.num_rows == result.removed.num_rows == result.clusters.num_rows == 0
    assert result.stats["counts"]["kept"] == 0


def test_a_missing_column_names_those_there_are() -> None:
    with pytest.raises(likewise.ColumnError, match="no column 'text'; the columns are: body, key"):
        likewise.dedup(pa.table({"body": ["a"], "key": [1]}))


def test_a_million_copies_cost_one() -> None:
    """P7 in small: copies are one group, and not all their pairs are listed."""
    result = likewise.dedup(pa.array(["the same words in every one of these documents"] * 20_000))
    assert result.stats["counts"]["groups"] == 1
    assert result.stats["counts"]["candidates"] == 0
    assert result.stats["details"]["abridged"] == {"groups": 1, "items": 20_000}
    assert result.pairs["id_a"].unique().to_pylist() == [0]
    assert result.pairs.num_rows == result.removed.num_rows == 19_999


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=9).map(" ".join), max_size=25),
    st.sampled_from([0.3, 0.5, 2 / 3, 0.8, 1.0]),
)
def test_against_brute_force(texts: list[str], threshold: float) -> None:
    """Small documents with many ties; b·1 bands find a pair at the threshold all but certainly."""
    found = as_dict(likewise.pairs(texts, shingle=Words(1), threshold=threshold, bands=60, rows=1))
    expected = truth(texts, threshold, Words(1))
    # A pair at 0.3 is missed by all of 60 bands with probability 0.7**60 = 5e-10.
    assert found == expected


def test_reading_stays_out_of_the_answer() -> None:
    """Ids of rows are positions in the input even when documents are read in many batches."""
    texts = [str(np.base_repr(i, 36)) for i in range(3000)] + ["zz top", "zz top"]
    result = likewise.dedup(texts, batch_rows=100, shingle="words:1", threads=2)
    assert result.removed.to_pylist()[-1]["id"] == 3001


def test_rows_set_aside_are_counted() -> None:
    """An id is the row number in the input, also when earlier rows were broken."""
    result = likewise.dedup(pa.array(["same words", None, "same words", None, "other words"]), on_error="skip")
    assert [row["id"] for row in result.removed.to_pylist()] == [2]
    assert result.clusters["id"].to_pylist() == [0, 2, 4]


@pytest.mark.parametrize("other", [False, True])
def test_every_copy_has_its_best_partners(other: bool) -> None:
    """So many copies are not listed pair by pair, but the best partners of each are all there."""
    texts = ["one two three four five six"] * 1500
    table = likewise.pairs(texts, texts if other else None, k=2).table
    assert table.num_rows == 3000
    assert set(table["similarity"].to_pylist()) == {1.0}
    assert set(table["id_a"].to_pylist()) == set(range(1500))
    assert other or all(a != b for a, b in zip(table["id_a"].to_pylist(), table["id_b"].to_pylist(), strict=True))


@pytest.mark.parametrize("method", ["exact", "lsh"])
def test_empty_documents_are_identical_copies(method: str) -> None:
    result = likewise.dedup(["", "one two", "\n", "!?", "one two", "  "], method=method)
    copies = [(row["id"], row["kept_id"], row["kind"]) for row in result.removed.to_pylist()]
    assert copies == [(2, 0, "identical"), (3, 0, "identical"), (4, 1, "identical"), (5, 0, "identical")]
    counts = result.stats["counts"]
    assert (counts["identical"], counts["near"], counts["different"]) == (4, 0, 2)
    blanks = likewise.dedup(["   ", ""], shingle="chars:2", method=method)  # blanks are characters
    assert len(blanks.removed) == 0
    assert blanks.stats["counts"]["different"] == 2
