"""`pairs` by every measure of sets: against the definitions, across collections, with k, with ids, and explained."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from fractions import Fraction
from math import sqrt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import InputError, OutputError, Sets, exact

Run = Callable[..., Any]
Tokens = frozenset[str]


def jaccard(a: Tokens, b: Tokens) -> float:
    return float(Fraction(len(a & b), len(a | b))) if a | b else 1.0


def dice(a: Tokens, b: Tokens) -> float:
    return float(Fraction(2 * len(a & b), len(a) + len(b))) if a or b else 1.0


def cosine(a: Tokens, b: Tokens) -> float:
    return len(a & b) / sqrt(len(a) * len(b)) if a and b else float(a == b)


def overlap(a: Tokens, b: Tokens) -> float:
    return float(Fraction(len(a & b), min(len(a), len(b)))) if a and b else float(a == b)


def containment(a: Tokens, b: Tokens) -> float:
    return float(Fraction(len(a & b), len(a))) if a else 1.0


MEASURES = {
    "jaccard": jaccard,
    "dice": dice,
    "cosine": cosine,
    "overlap": overlap,
    "containment": containment,
}


def truth(
    here: list[list[str]], there: list[list[str]] | None, measure: str, threshold: float, k: int | None
) -> list[tuple[int, int, float]]:
    """By definition: pairs in order; with k, the best partners of each."""
    function, within = MEASURES[measure], there is None
    a, b = [frozenset(one) for one in here], [frozenset(one) for one in (here if there is None else there)]
    found = [(i, j, function(a[i], b[j])) for i in range(len(a)) for j in range(len(b)) if not within or i != j]
    found = [pair for pair in found if pair[2] >= threshold]
    if k is None:
        return [pair for pair in found if not within or measure == "containment" or pair[0] < pair[1]]
    best: list[tuple[int, int, float]] = []
    for i in range(len(a)):
        best += sorted((pair for pair in found if pair[0] == i), key=lambda pair: (-pair[2], pair[1]))[:k]
    return best


def rows(result: likewise.Pairs) -> list[tuple[Any, Any, float]]:
    return [(row["id_a"], row["id_b"], row["similarity"]) for row in result]


baskets = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=6), max_size=9)


@given(
    here=baskets,
    there=st.none() | baskets,
    measure=st.sampled_from(sorted(MEASURES)),
    threshold=st.sampled_from([0.3, 0.5, 2 / 3, 0.8, 1.0]),
    k=st.none() | st.integers(1, 3),
)
def test_every_measure_of_sets_is_what_its_definition_says(
    here: list[list[str]], there: list[list[str]] | None, measure: str, threshold: float, k: int | None
) -> None:
    other = None if there is None else Sets.from_lists(there)
    found = likewise.pairs(Sets.from_lists(here), other, measure=measure, threshold=threshold, k=k, method="exact")
    expected = truth(here, there, measure, threshold, k)
    assert [pair[:2] for pair in rows(found)] == [pair[:2] for pair in expected]
    assert [pair[2] for pair in rows(found)] == pytest.approx([pair[2] for pair in expected], abs=1e-15)
    assert found.stats["counts"]["pairs"] == len(expected)


@pytest.mark.parametrize("measure", sorted(MEASURES))
def test_documents_and_the_exact_module_agree(measure: str) -> None:
    rng = random.Random(3)
    texts = [" ".join(rng.choices([f"w{i}" for i in range(30)], k=rng.randint(3, 12))) for _ in range(200)]
    found = likewise.pairs(texts, shingle="tokens", measure=measure, threshold=0.6)
    table = exact.pairs([text.split() for text in texts], 0.6, measure=measure)
    names = [name for name in table.column_names if name != "similarity"]
    assert [pair[:2] for pair in rows(found)] == [tuple(row[name] for name in names) for row in table.to_pylist()]
    assert len(found) > 5


def test_ids_shingles_and_common_shingles() -> None:
    menu = "home news sport weather contact"
    table = pa.table({"body": [f"{menu} alpha", f"{menu} beta", "alpha beta"], "key": ["p", "q", "r"]})
    options: dict[str, Any] = {"text": "body", "id": "key", "shingle": "words:1", "measure": "overlap"}
    assert [pair[:2] for pair in rows(likewise.pairs(table, threshold=0.8, **options))] == [("p", "q")]
    found = likewise.pairs(table, threshold=0.5, ignore_common=0.65, **options)
    assert [pair[:2] for pair in rows(found)] == [("p", "q"), ("p", "r"), ("q", "r")]


def test_the_statistics_say_how() -> None:
    found = likewise.pairs(["a b c", "a b"], shingle="tokens", measure="dice", threshold=0.5)
    stats = found.stats
    assert stats["method"] == {"asked": "auto", "taken": "exact", "why": "dice has no hash family"}
    assert stats["parameters"]["measure"] == "dice"
    assert stats["details"]["predicted_recall"] == 1.0
    assert {"items", "different", "candidates", "verified", "pairs"} <= stats["counts"].keys()


@pytest.mark.parametrize("measure", ["jaccard", "containment"])
def test_explain_counts_what_filters_leave(measure: str) -> None:
    rng = random.Random(1)
    lists = [rng.sample([f"w{i}" for i in range(60)], 10) for _ in range(300)]
    found = likewise.pairs(Sets.from_lists(lists), measure=measure, threshold=0.5, explain=True)
    names = ["filter", "pairs", "share"]
    explained = [{name: row[name] for name in names} for row in found.stats["details"]["explained"]]
    table = exact.explain(lists, 0.5, measure).select(names).to_pylist()
    assert explained == table
    assert explained[-1]["pairs"] == len(found)
    assert found.stats["method"]["taken"] == "exact"
    plain = likewise.pairs(Sets.from_lists(lists), measure=measure, threshold=0.5, method="exact")
    assert found.table.equals(plain.table)
    with pytest.raises(InputError, match="nothing to explain"):
        likewise.pairs(Sets.from_lists([]), explain=True)


@pytest.mark.parametrize("name", ["p.parquet", "p.csv", "p.jsonl", "p.arrow", "p.feather", "p.CSV"])
def test_save_to_a_file(tmp_path: Path, name: str) -> None:
    found = likewise.pairs(["a b c d e f"] * 3)
    assert found.save(tmp_path / name) == tmp_path / name
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name == "p.parquet":
        assert pq.read_table(tmp_path / name).equals(found.table)


def test_save_to_a_folder(tmp_path: Path) -> None:
    found = likewise.pairs(["a b c d e f"] * 3)
    assert found.save(tmp_path / "run.2") == tmp_path / "run.2"
    assert sorted(path.name for path in (tmp_path / "run.2").iterdir()) == ["pairs.parquet", "run.json"]
    assert json.loads((tmp_path / "run.2" / "run.json").read_text())["counts"] == found.stats["counts"]
    near = likewise.nearest([[1.0, 2.0], [2.0, 1.0]], 1)
    assert sorted(path.name for path in near.save(tmp_path / "near").iterdir()) == ["neighbours.parquet", "run.json"]
    with pytest.raises(OutputError, match="pairs"):
        near.save(tmp_path / "run.2")


def test_a_result_is_a_table() -> None:
    found = likewise.pairs(["a b c d e f"] * 3)
    assert repr(found) == "<Pairs: 3 pairs among 3 items>"
    assert len(found) == 3
    assert next(iter(found)) == {"id_a": 0, "id_b": 1, "similarity": 1.0}
    assert pa.table(found).equals(found.table)
    assert list(found.to_pandas()["id_b"]) == [1, 2, 2]
    assert "3 pairs among 3 items" in found._repr_html_()


def test_html_is_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert('&')</script>"
    table = pa.table({"text": ["a b c d e f"] * 2, "key": [hostile, "x"]})
    for result in (likewise.pairs(table, id="key"), likewise.dedup(table, id="key")):
        shown = result._repr_html_()
        assert "<script>" not in shown
        assert "&lt;script&gt;alert(&#x27;&amp;&#x27;)&lt;/script&gt;" in shown


# the command line


@pytest.fixture
def run(typed: Run, tmp_path: Path) -> Run:
    (tmp_path / "baskets.txt").write_text("a b c d\na b c\nx y\nb a d c\n")
    (tmp_path / "other.txt").write_text("a b\nx\n")
    return typed


def test_measures_on_the_command_line(run: Run, tmp_path: Path) -> None:
    done = run("pairs", "baskets.txt", "--sets", "--measure", "containment", "--threshold", "1", "--out", "p.csv")
    assert done.returncode == 0, done.stderr
    assert "tokens: exact, every pair at 1 or more (containment) is found" in done.stdout
    assert "method: exact, containment has no hash family" in done.stdout
    lines = (tmp_path / "p.csv").read_text().splitlines()
    assert lines[1:] == ["0,3,1", "1,0,1", "1,3,1", "3,0,1"]
    options = ["--sets", "--measure", "overlap", "--threshold", "1", "-k", "1", "--out", "found"]
    assert run("pairs", "baskets.txt", "--with", "other.txt", *options).returncode == 0
    table = pq.read_table(tmp_path / "found" / "pairs.parquet")
    assert table.to_pylist()[0] == {"id_a": 0, "id_b": 0, "similarity": 1.0}
    assert json.loads((tmp_path / "found" / "run.json").read_text())["parameters"]["measure"] == "overlap"


def test_explain_on_the_command_line(run: Run, tmp_path: Path) -> None:
    done = run("pairs", "baskets.txt", "--sets", "--threshold", "0.7", "--explain")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("filter "))
    names = ["filter", "none", "length", "prefix", "position", "suffix", "bitmap", "similar"]
    assert [line.split()[0] for line in lines[start : start + 8]] == names
    assert lines[-1].endswith("nothing written (use --out PATH to write the pairs)")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["baskets.txt", "other.txt"]
    assert run("pairs", "baskets.txt", "--sets", "--explain", "--out", "p.csv").returncode == 0
    assert (tmp_path / "p.csv").exists()


def test_the_command_exact_is_gone(run: Run) -> None:
    done = run("exact", "baskets.txt")
    assert done.returncode == 2
    assert "No such command" in done.stderr


def test_a_threshold_too_low_for_signatures_takes_the_exact_way() -> None:
    texts = ["a b c d e f g", "a b c d e x y", "q"]
    found = likewise.pairs(texts, threshold=0.001)
    assert found.stats["method"]["taken"] == "exact"
    assert "signatures of 2,048 slots" in found.stats["method"]["why"]
    assert [(row["id_a"], row["id_b"]) for row in found.to_pylist()] == [(0, 1)]
    assert likewise.dedup(texts, threshold=0.001).stats["method"]["taken"] == "exact"
    assert likewise.plan(texts, threshold=0.001).method == "exact"
    with pytest.raises(likewise.ParameterError, match="max_slots is 2,048"):
        likewise.pairs(texts, threshold=0.001, method="lsh")


def test_a_text_in_place_of_a_list_is_not_printed_whole() -> None:
    text = "to be or not to be " * 1000
    for call in (lambda: likewise.pairs(text), lambda: likewise.nearest(text), lambda: likewise.passages(text, text)):
        with pytest.raises(InputError, match="if it is a text, put it in a list") as found:
            call()
        assert len(str(found.value)) < 200


def test_explain_says_that_copies_are_compared_once() -> None:
    sets = Sets.from_lists([list("abcdefghij"), list("abcdefghij"), list("abcdefghi"), [], ["x"]])
    found = likewise.pairs(sets, threshold=0.9, explain=True)
    assert found.stats["details"]["explained_sets"] == {"sets": [5], "compared": [3]}
    assert repr(likewise.pairs(["a b", "a b"])) == "<Pairs: 1 pair among 2 items>"


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl", "arrow", ""])
def test_pairs_in_files_are_saved_like_pairs_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """Also with ids that are names, and more than one batch of rows."""
    table = pa.table({"id": [f"n{i}" for i in range(40)], "text": [f"a b c x{i // 2}" for i in range(40)]})
    options: dict[str, Any] = {"id": "id", "shingle": "tokens", "measure": "dice", "threshold": 0.5, "threads": 1}
    monkeypatch.setattr("likewise.jobs.rows.ROWS", 64)
    monkeypatch.setattr("likewise.io.write.ROWS", 64)
    saved = []
    for held in (1 << 16, 100):
        monkeypatch.setattr("likewise.search.exact.listing.LEAST_HELD", held)
        monkeypatch.setattr("likewise.search.exact.listing.PAIR_BYTES", 1 << 40)
        found = likewise.pairs(table, **options)
        assert len(found) == 40 * 39 // 2
        path = tmp_path / (f"{held}.{ending}" if ending else str(held))
        found.save(path)
        saved.append((path if ending else path / "pairs.parquet").read_bytes())
        assert len(found.to_pylist()) == len(list(found)) == found.table.num_rows == len(found)
    assert saved[0] == saved[1]
