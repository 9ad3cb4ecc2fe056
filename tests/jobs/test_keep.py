"""What is kept of similar documents: none of them, or the one that several rules in their order choose."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from subprocess import CompletedProcess

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
import oracles
import runs
from likewise.base import memory
from likewise.base.runlog import RunLog
from likewise.report import write_report
from likewise.search.cluster import Keep, note_unlisted

Run = Callable[..., CompletedProcess[str]]

TEXTS = st.lists(st.text("abc ", max_size=12), max_size=12)
"""Documents of few letters: many are similar, some are copies, some have equal sets, some are empty."""


def letters(texts: list[str]) -> list[set[str]]:
    """The shingles of each document, pairs of letters, as text."""
    shingler = likewise.Chars(2)
    return [set(shingler.shingles(text)) for text in texts]


@given(TEXTS)
def test_none_removes_exactly_the_documents_with_a_similar_one(texts: list[str]) -> None:
    result = likewise.dedup(texts, shingle="chars:2", threshold=0.5, method="exact", keep="none")
    sets = letters(texts)
    alike = {
        pair: float(oracles.jaccard(sets[pair[0]], sets[pair[1]])) if sets[pair[0]] | sets[pair[1]] else 1.0
        for pair in combinations(range(len(texts)), 2)
    }
    similar = {pair for pair, value in alike.items() if value >= 0.5}
    removed = result.removed.to_pylist()
    assert [row["id"] for row in removed] == sorted({row for pair in similar for row in pair})
    for row in removed:
        a, b = sorted((row["id"], row["kept_id"]))
        best = max(value for pair, value in alike.items() if row["id"] in pair)
        assert (a, b) in similar
        assert row["similarity"] == alike[a, b] == best
        assert (row["kind"] == "identical") == (texts[a] == texts[b] or not (sets[a] | sets[b]))
    kept_for = {row["id"]: row["kept_id"] for row in removed}
    assert result.clusters["keeper"].to_pylist() == [kept_for.get(row, row) for row in range(len(texts))]
    assert result.stats["counts"]["kept"] == len(texts) - len(removed)


def test_none_beside_earlier_runs(tmp_path: Path) -> None:
    """Documents that were kept earlier stay kept; new ones go if they are like one of these, or like each other."""
    base = [f"{name} one two three four five six seven eight nine" for name in "abcd"]
    (tmp_path / "old.txt").write_text("\n".join(base[:2]))
    (tmp_path / "new.txt").write_text("\n".join([base[0], base[2], base[2].upper(), "something else entirely"]))
    likewise.dedup(tmp_path / "old.txt", lines=True, threshold=0.95, keep="none", out=tmp_path / "run")
    result = likewise.dedup(
        tmp_path / "new.txt", lines=True, threshold=0.95, keep="none", against=tmp_path / "run", out=tmp_path / "next"
    )
    rows = [(row["id"], row["kept_id"], row["kept_in"] is not None, row["kind"]) for row in result.removed.to_pylist()]
    assert rows == [(0, 0, True, "identical"), (1, 2, False, "near"), (2, 1, False, "near")]
    assert result.kept["text"].to_pylist() == ["something else entirely"]


def test_none_from_the_command_line(typed: Run, tmp_path: Path) -> None:
    """The same bytes with one thread and two; the page says what became of the documents, and so does explain."""
    source = runs.corpus(tmp_path / "docs.parquet", 400, near=60)
    for threads in ("1", "2"):
        done = typed("dedup", str(source), "--keep", "none", "--threads", threads, "--out", f"t{threads}")
        assert done.returncode == 0, done.stderr
    assert runs.answer(tmp_path / "t1") == runs.answer(tmp_path / "t2")
    page = write_report(tmp_path / "t1").read_text()
    assert "similar to another" in page
    assert "(keep: none)" in page
    removed = pq.read_table(tmp_path / "t1" / "removed.parquet").to_pylist()
    gone = {row["id"] for row in removed}
    assert gone
    assert all(row["kept_id"] in gone for row in removed)
    told = typed("explain", "t1", str(removed[0]["id"]), str(removed[0]["kept_id"]))
    assert "is removed, because" in told.stdout, told.stderr


def test_articles_need_a_page_that_represents_the_others() -> None:
    with pytest.raises(likewise.ParameterError, match="'keep' parameter of articles must be a rule"):
        likewise.articles(["it was the best of times"], keep="none")


def test_crowds_with_none_say_what_is_missing() -> None:
    for complete, policy, notes in ((False, "none", 1), (True, "none", 0), (False, "first", 0)):
        log = RunLog()
        log.details["crowds"] = {"complete": complete}
        note_unlisted(Keep.parse(policy), log)
        assert len(log.notes) == notes


ROWS = {
    "text": ["a b c d e f", "A b c d e f", "a b c d e f.", "a b c d e f", "x y z"],
    "stars, of five": [2, 5, 5, 5, 1],
    "date": ["2024-01-02", "2024-03-01", "2024-02-01", "2024-03-01", "2020-01-01"],
    "name": list("vwxyz"),
}


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "memory", "odd.csv", "odd.jsonl"])
@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("max:stars, of five,max:date", "w"),
        ("max:stars, of five,max:date,last", "y"),
        ("max:stars, of five,min:date", "x"),
        ("min:stars, of five,last", "v"),
        ("longest,max:date", "x"),
        ("shortest,max:date", "w"),
    ],
)
def test_several_columns_in_every_format(tmp_path: Path, ending: str, policy: str, kept: str) -> None:
    table, path = pa.table(ROWS), tmp_path / f"docs.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending.endswith("csv"):
        pyarrow.csv.write_csv(table, path)
    elif ending.endswith("jsonl"):
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    if ending.startswith("odd"):  # a row that Arrow does not read: the slow way
        path.write_text(path.read_text() + ("broken\n" if ending.endswith("csv") else "{\n"))
    source = table if ending == "memory" else path
    skip = {"on_error": "skip"} if ending.startswith("odd") else {}
    result = likewise.dedup(source, id="name", keep=policy, **skip)
    assert {row["kept_id"] for row in result.removed.to_pylist()} == {kept}
    assert result.stats["counts"]["kept"] == 2
    assert result.stats["parameters"]["keep"] == policy


def test_columns_that_do_not_fit_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are kept beside the texts on disk, each in its column, and are the same then."""
    source = runs.corpus(tmp_path / "docs.parquet", 3000, near=300)
    table = pq.read_table(source)
    table = table.append_column("even", pa.array([number % 2 for number in range(3000)]))
    pq.write_table(table, source)
    given: dict[str, str] = {"id": "number", "keep": "max:even,min:number"}
    large = likewise.dedup(source, **given)
    monkeypatch.setattr(memory, "LEAST", 1)
    small = likewise.dedup(source, memory="300KiB", out=tmp_path / "out", **given)
    assert small.stats["parameters"]["spilled_bytes"] > 1 << 20
    assert large.removed.equals(small.removed)
    kept = set(large.removed["kept_id"].to_pylist())
    assert sum(number % 2 for number in kept) > len(kept) * 0.8


def test_wrong_policies_on_the_command_line(typed: Run, tmp_path: Path) -> None:
    pq.write_table(pa.table(ROWS), tmp_path / "docs.parquet")
    for policy, code, says in (
        ("first,longest", 2, "must be without a rule after 'first'"),
        ("max:stars,longest", 1, "no column 'stars'"),
        ("best,first", 2, "must be one of first, last, longest, shortest, max:COLUMN, min:COLUMN, none"),
    ):
        done = typed("dedup", "docs.parquet", "--keep", policy, "--out", "out")
        assert done.returncode == code, done.stderr
        assert says in done.stderr
        assert not (tmp_path / "out").exists()
    done = typed("dedup", "docs.parquet", "--id", "name", "--keep", "max:stars, of five,longest", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert "keep: max:stars, of five,longest" in write_report(tmp_path / "out").read_text()
    for policy in ("max:date,max:stars, of five,last", "none"):
        again = typed("rethreshold", "out", "--keep", policy, "--out", "again")
        assert again.returncode == 0, again.stderr
        fresh = likewise.dedup(tmp_path / "docs.parquet", id="name", keep=policy)
        assert pq.read_table(tmp_path / "again" / "removed.parquet").equals(fresh.removed)


@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_what_other_rules_would_keep_is_what_they_keep(measure):
    words = [f"w{i % 97}" for i in range(400)]
    texts = [" ".join(words[start : start + 40 + start % 7]) for start in range(0, 120, 2)] * 2
    asked = {"threshold": 0.6, "measure": measure}
    found = likewise.dedup(texts, keep="longest", **asked)
    here = set(found.removed["id"].to_pylist())
    rows = found.stats["details"]["policies"]
    assert [row["keep"] for row in rows] == ["longest", "first", "last", "shortest", "none"]
    assert rows[0]["kept"] == found.stats["counts"]["kept"]
    assert rows[0]["length"] == sum(map(len, found.kept["text"].to_pylist()))
    for row in rows[1:]:
        other = likewise.dedup(texts, keep=row["keep"], **asked)
        assert row["kept"] == other.stats["counts"]["kept"]
        assert row["length"] == sum(map(len, other.kept["text"].to_pylist()))
        assert row["removed_here"] == len(here - set(other.removed["id"].to_pylist()))
    assert "policies" not in likewise.dedup(texts[:3], threshold=0.99).stats["details"]
