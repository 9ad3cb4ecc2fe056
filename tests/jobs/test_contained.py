"""`dedup` by containment: what is part of one kept document goes, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
import runs
from likewise.errors import IncompatibleError, InputError, ParameterError
from likewise.jobs.settings import Settings
from likewise.kernels import graph
from likewise.report import write_report
from likewise.search import by_join

Run = Callable[..., CompletedProcess[str]]
TEXTS = st.lists(st.text("abc", max_size=14), max_size=12)
POLICIES = ["longest", "first", "last", "shortest", "shortest,last"]


def contained(a: set[str], b: set[str]) -> float:
    """The share of a that is in b; an empty document is in another empty one, and in nothing else."""
    return len(a & b) / len(a) if a else float(not b)


def naive_kept(sets: list[set[str]], ranks: list[int], threshold: float) -> set[int]:
    """Of what waits for nothing that contains it and is not contained in it, the most wanted is decided next."""
    points = [[contained(a, b) >= threshold for b in sets] for a in sets]
    rows, kept, decided = range(len(sets)), set(), set()
    while len(decided) < len(sets):
        ready = [
            a for a in rows
            if a not in decided and all(b in decided for b in rows if points[a][b] and not points[b][a])
        ]  # fmt: skip
        row = min(ready, key=ranks.__getitem__)
        decided.add(row)
        if not any(points[row][other] for other in kept):
            kept.add(row)
    return kept


@given(TEXTS, st.sampled_from([0.3, 0.6, 0.75, 1.0]), st.sampled_from(POLICIES))
def test_exactly_what_a_kept_document_contains_goes(texts: list[str], threshold: float, policy: str) -> None:
    settings: dict[str, Any] = {"shingle": "chars:2", "measure": "containment", "threshold": threshold}
    result = likewise.dedup(texts, keep=policy, **settings)
    shingler = likewise.Chars(2)
    sets = [set(shingler.shingles(text)) for text in texts]
    removed = {row["id"]: row for row in result.removed.to_pylist()}
    kept = [row for row in range(len(texts)) if row not in removed]
    for row, told in removed.items():
        assert told["kept_id"] in kept, "no chains"
        assert told["similarity"] == contained(sets[row], sets[told["kept_id"]]) >= threshold
    for a in kept:
        for b in kept:
            assert a == b or contained(sets[a], sets[b]) < threshold
    lengths = [len(text) for text in texts]
    keys = {
        "longest": [(-length, row) for row, length in enumerate(lengths)],
        "first": list(range(len(texts))),
        "last": [-row for row in range(len(texts))],
        "shortest": [(length, row) for row, length in enumerate(lengths)],
        "shortest,last": [(length, -row) for row, length in enumerate(lengths)],
    }[policy]
    different: dict[frozenset[str], int] = {}
    for row in sorted(range(len(texts)), key=keys.__getitem__):
        different.setdefault(frozenset(sets[row]), row)
    best = list(different.values())
    chosen = naive_kept([sets[row] for row in best], list(range(len(best))), threshold)
    assert set(kept) == {best[number] for number in chosen}
    pairs = {(row["id_a"], row["id_b"]): row["similarity"] for row in result.pairs.to_pylist()}
    shares = {(a, b): contained(sets[a], sets[b]) for a in range(len(sets)) for b in range(len(sets)) if a != b}
    assert pairs == {pair: share for pair, share in shares.items() if share >= threshold}
    if policy == "longest":
        assert likewise.dedup(texts, **settings).removed.equals(result.removed), "by default the longest is kept"


@given(TEXTS)
def test_none_by_containment(texts: list[str]) -> None:
    """Every document that is part of another goes, also if that one goes; what only contains others stays."""
    result = likewise.dedup(texts, shingle="chars:2", measure="containment", threshold=0.6, keep="none")
    shingler = likewise.Chars(2)
    sets = [set(shingler.shingles(text)) for text in texts]
    rows = range(len(texts))
    expected = [a for a in rows if any(a != b and contained(sets[a], sets[b]) >= 0.6 for b in rows)]
    assert result.removed["id"].to_pylist() == expected
    for row in result.removed.to_pylist():
        best = max(contained(sets[row["id"]], sets[b]) for b in rows if b != row["id"])
        assert row["similarity"] == contained(sets[row["id"]], sets[row["kept_id"]]) == best


def planted(path: Path, originals: int = 300) -> dict[str, str]:
    """Write documents and parts of them: their beginning, their middle, sentences from all over; return where from."""
    random = np.random.default_rng(5)
    rows, source = [], {}
    for number in range(originals):
        sentences = [" ".join(f"w{word}" for word in random.integers(0, 3000, 12)) for _ in range(30)]
        rows.append((f"d{number}", ". ".join(sentences)))
        kinds = {"prefix": sentences[:8], "middle": sentences[10:18], "scattered": sentences[::3]}
        for kind, part in kinds.items() if number < originals // 3 else ():
            rows.append((f"{kind}{number}", ". ".join(part)))
            source[f"{kind}{number}"] = f"d{number}"
    shuffled = [rows[place] for place in random.permutation(len(rows))]
    pq.write_table(pa.table({"id": [row[0] for row in shuffled], "text": [row[1] for row in shuffled]}), path)
    return source


def test_planted_parts_are_found(typed: Run, tmp_path: Path) -> None:
    """From the command line: all planted parts and nothing else, the same bytes with one thread and two; the page."""
    source = planted(tmp_path / "docs.parquet")
    command = ("dedup", "docs.parquet", "--id", "id", "--shingle", "words:3", "--measure", "containment")
    for threads in ("1", "2"):
        done = typed(*command, "--threshold", "0.7", "--threads", threads, "--out", f"t{threads}")
        assert done.returncode == 0, done.stderr
        assert "every pair at 0.7 or more (containment) is found" in done.stdout + done.stderr
    assert runs.answer(tmp_path / "t1") == runs.answer(tmp_path / "t2")
    removed = pq.read_table(tmp_path / "t1" / "removed.parquet").to_pylist()
    assert {row["id"]: row["kept_id"] for row in removed} == source
    page = write_report(tmp_path / "t1").read_text()
    assert "is in a kept one (" in page
    assert "(keep: longest)" in page
    told = typed("explain", "t1", "prefix0", "d0")
    assert "a pair; containment similarity 1.0000" in told.stdout, told.stderr
    assert "no pair; containment" in typed("explain", "t1", "d0", "prefix0").stdout
    higher = typed("rethreshold", "t1", "--threshold", "0.99", "--out", "higher")
    assert higher.returncode == 0, higher.stderr
    fresh = likewise.dedup(tmp_path / "docs.parquet", id="id", shingle="words:3", measure="containment", threshold=0.99)
    assert pq.read_table(tmp_path / "higher" / "removed.parquet").equals(fresh.removed)
    assert 0 < fresh.removed.num_rows < len(source)


def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The join is kept; the run that continues has the same bytes."""
    planted(tmp_path / "docs.parquet", 60)
    settings: dict[str, Any] = {"id": "id", "shingle": "words:3", "measure": "containment", "threshold": 0.7}
    search = Settings.search
    monkeypatch.setattr(Settings, "search", lambda *given: replace(search(*given), patience=0.0))
    whole = likewise.dedup(tmp_path / "docs.parquet", out=tmp_path / "whole", **settings)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.jobs.dedup.removals", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(tmp_path / "docs.parquet", out=tmp_path / "out", **settings)
    result = likewise.dedup(tmp_path / "docs.parquet", out=tmp_path / "out", **settings)
    assert runs.answer(tmp_path / "out") == runs.answer(tmp_path / "whole")
    assert result.stats["details"].get("resumed")
    assert result.stats["method"] == whole.stats["method"]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"method": "lsh"}, "'method' parameter of dedup must be 'auto' or 'exact' with measure='containment'"),
        ({"recall": 0.9}, "'recall' parameter of dedup has no effect with measure='containment'"),
        ({"certify": 100}, "'certify' parameter of dedup has no effect"),
        ({"estimate": True}, "'estimate' parameter of dedup has no effect"),
        ({"against": "run"}, "'against' parameter of dedup needs measure='jaccard'"),
        ({"measure": "cosine"}, "'measure' parameter of dedup must be"),
    ],
)
def test_what_does_not_go_with_containment(wrong: dict[str, Any], says: str) -> None:
    """It is said before anything is read."""
    with pytest.raises(ParameterError, match=says):
        likewise.dedup("nowhere.parquet", **{"measure": "containment", **wrong})


def test_the_command_line_says_what_does_not_go(typed: Run, tmp_path: Path) -> None:
    planted(tmp_path / "docs.parquet", 20)
    for extra in (("--method", "lsh"), ("--certify", "5")):
        done = typed("dedup", "docs.parquet", "--measure", "containment", *extra, "--out", "out")
        assert done.returncode == 2
        assert len(done.stderr.strip().splitlines()) == 1
    likewise.dedup(tmp_path / "docs.parquet", id="id", measure="containment", out=tmp_path / "run")
    with pytest.raises(IncompatibleError, match="that run compared by containment"):
        likewise.dedup(tmp_path / "docs.parquet", id="id", against=tmp_path / "run")


def test_more_pairs_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_join, "MAX_LISTED", 5)
    monkeypatch.setattr(by_join, "PAIR_BYTES", 1 << 60)
    texts = ["abcdefghij"[:length] for length in range(2, 10)]
    with pytest.raises(InputError, match="more than 5 pairs by containment; use a higher threshold"):
        likewise.dedup(texts, shingle="chars:2", measure="containment")


def test_a_circle_that_only_the_sizes_open() -> None:
    """a waits for b, which contains it; b and c, c and a contain each other; c is wanted least, then a."""
    left, right = np.array([0, 0, 1, 2, 2]), np.array([1, 2, 2, 0, 1])
    mutual = np.array([False, True, True, True, True])
    assert graph.absorbers(np.array([1, 0, 2]), left, right, mutual).tolist() == [0, -1, 4]
    assert graph.absorbers(np.array([1, 2, 0]), left, right, mutual).tolist() == [1, 2, -1]
