"""`method="exact"` and "auto" in dedup and pairs: every pair, the same answer in any memory, and why it was chosen."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import random
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
import oracles
from likewise.base.arrays import Sets, Texts
from likewise.base.memory import UNLIMITED, Budget
from likewise.base.runlog import RunLog
from likewise.cli import cli
from likewise.errors import IncompatibleError, ParameterError, TextError
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.families.tuning import Tuning
from likewise.io.workspace import Workspace
from likewise.search import by_join, prepare
from likewise.search.exact.bounds import Bounds
from likewise.search.exact.join import Join
from likewise.search.exact.prefixes import Lengths
from likewise.search.expand import listed_pairs
from likewise.search.items import TextItems
from likewise.search.local import Search
from likewise.search.matches import Sides
from likewise.search.prepare import LITTLE, choose
from likewise.search.scored import ScoredPairs
from likewise.shingle import Chars, Words

VOCABULARY = [f"w{i}" for i in range(25)]


def collection(seed: int, n: int = 60) -> list[str]:
    """Random documents, near copies, copies, copies in capitals, and empty ones."""
    rng = random.Random(seed)
    texts: list[str] = []
    for _ in range(n):
        words = rng.choices(VOCABULARY, k=rng.randint(1, 40))
        if texts and rng.random() < 0.6:
            words = rng.choice(texts).split() or ["w0"]
            words[rng.randrange(len(words))] = rng.choice(VOCABULARY)
        chance = rng.random()
        texts.append("" if chance > 0.95 else " ".join(words).upper() if chance < 0.05 else " ".join(words))
    return texts


def exact(threshold: float, budget: Budget = UNLIMITED, threads: int = 1) -> Search:
    return Search(threshold, 0.99, MinHash(), threads=threads, budget=budget, method="exact")


def rows_of(matches: likewise.search.matches.VerifiedPairs, within: bool = True) -> dict[tuple[int, int], float]:
    left, right, similarity, _ = listed_pairs(matches, within)
    pairs = list(zip(left.tolist(), right.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    return dict(zip(pairs, similarity.tolist(), strict=True))


@pytest.fixture(params=["held", "streamed"])
def budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Budget:
    """Memory for everything, or for so little that candidates are compared in portions, with sets made anew."""
    if request.param == "held":
        return UNLIMITED
    monkeypatch.setattr("likewise.search.by_join._fits", lambda *_: False)
    return Budget(200_000)


@pytest.mark.each_value
@pytest.mark.parametrize("shingler", [Words(2), Words(1, bag=True), Chars(3)], ids=str)
@pytest.mark.parametrize("threshold", [0.05, 0.5, 0.8, 1.0])
def test_pairs_are_those_of_brute_force(
    shingler: likewise.shingle.Shingler,
    threshold: float,
    budget: Budget,
    tmp_path: Path,
) -> None:
    for seed in range(3):
        texts = collection(seed)
        items = TextItems(Texts.of(texts), shingler)
        matches = exact(threshold, budget, 1 + seed % 2).find(items, RunLog(), Workspace.temporary(tmp_path))
        sets = [s.tolist() for s in shingler.sets(texts)]
        assert rows_of(matches) == oracles.similar_pairs(sets, threshold)


@pytest.mark.parametrize("threshold", [0.3, 0.8])
def test_joins_are_those_of_brute_force(threshold: float, budget: Budget) -> None:
    for seed in range(4):
        here, there = collection(seed, 30), [*collection(seed, 50)[20:], "", "a lone one"]
        items = TextItems(Texts.of(here + there), Words(2))
        matches = exact(threshold, budget).find(items, RunLog(), sides=Sides(len(here), across=True))
        sets = [s.tolist() for s in Words(2).sets(here + there)]
        assert rows_of(matches, within=False) == oracles.similar_pairs(sets, threshold, split=len(here))


@given(st.lists(st.text("abc ", max_size=12), max_size=25), st.sampled_from([0.2, 0.5, 0.75, 0.9, 1.0]))
def test_dedup_and_pairs_miss_nothing(texts: list[str], threshold: float) -> None:
    shingler = likewise.Chars(2)
    sets = [s.tolist() for s in shingler.sets(texts)]
    truth = oracles.similar_pairs(sets, threshold)
    table = likewise.pairs(texts, shingle=shingler, threshold=threshold, method="exact")
    found = {(row["id_a"], row["id_b"]): row["similarity"] for row in table.to_pylist()}
    assert found == truth
    result = likewise.dedup(texts, shingle=shingler, threshold=threshold, method="exact")
    kept = [row for row in range(len(texts)) if row not in set(result.removed["id"].to_pylist())]
    assert not [(a, b) for a in kept for b in kept if (a, b) in truth], "two kept documents are similar"
    for row in result.removed.to_pylist():
        a, b = sorted((row["id"], row["kept_id"]))
        assert truth[a, b] == row["similarity"]


def test_exact_and_lsh_keep_the_same_documents() -> None:
    texts = collection(7, 200)
    for keep in ("first", "last", "longest"):
        exact_run = likewise.dedup(texts, shingle="words:1", threshold=0.6, keep=keep, method="exact")
        lsh_run = likewise.dedup(texts, shingle="words:1", threshold=0.6, keep=keep, bands=300, rows=1)
        assert exact_run.removed.equals(lsh_run.removed)
        assert exact_run.clusters.equals(lsh_run.clusters)


def test_the_answer_is_the_same_in_any_memory_and_with_any_threads(tmp_path: Path) -> None:
    rng = random.Random(1)
    texts = [" ".join(rng.choices(VOCABULARY, k=200)) for _ in range(4000)]
    for i in range(0, 4000, 10):
        texts[i] = texts[i + 1] + " more"
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"text": texts}), source)
    answers = set()
    for memory, threads in (("64MiB", 1), ("64MiB", 2), ("4GiB", 2)):
        out = tmp_path / f"{memory}{threads}"
        likewise.dedup(source, shingle="words:3", method="exact", out=out, memory=memory, threads=threads, state=False)
        answers.add(tuple((out / name).read_bytes() for name in ("pairs.parquet", "removed.parquet")))
    assert len(answers) == 1


def test_auto_says_what_it_took_and_why(tmp_path: Path) -> None:
    stats = likewise.dedup(collection(1)).stats
    assert stats["method"]["asked"] == "auto"
    assert stats["method"]["taken"] == "exact"
    assert f"less than {LITTLE:g} s" in stats["method"]["why"]
    assert stats["details"]["predicted_recall"] == 1.0
    assert "banding" not in stats["details"]
    stats = likewise.dedup(collection(1), bands=10, rows=2).stats
    assert stats["method"]["taken"] == "lsh"
    assert stats["method"]["why"] == "bands and rows were given"


def test_auto_takes_the_cheaper_way() -> None:
    rng = np.random.default_rng(1)

    def tuning(threshold: float, crowded: float = 0.0) -> Tuning:
        return Tuning(Banding(20, 5), threshold, 0.99, 0.99, 0.0, crowded=crowded)

    def sets(size: int, universe: int) -> Sets:
        return Sets.from_lists([rng.choice(universe, size, replace=False).tolist() for _ in range(400)])

    assert choose(sets(10, 10**6), 10**6, tuning(0.9)).exact
    shared = choose(sets(200, 400), 10**7, tuning(0.5))  # every prefix meets every other
    assert not shared.exact
    assert shared.entries > 10**12
    assert shared.lsh_seconds < shared.exact_seconds
    crowds = choose(sets(200, 400), 10**7, tuning(0.5, crowded=1.0))
    assert crowds.lsh_seconds > 2 * shared.lsh_seconds, "documents in crowds are looked at again"
    few = choose(sets(200, 400), 400, tuning(0.5))
    assert few.exact == (few.exact_seconds <= max(few.lsh_seconds, LITTLE))


def test_the_choice_depends_on_the_items_alone() -> None:
    texts = collection(3, 400)
    notes = {
        json.dumps(likewise.dedup(texts, threads=threads, memory=memory).stats["method"])
        for threads, memory in ((1, "64MiB"), (2, "1GiB"))
    }
    assert len(notes) == 1


def test_bad_methods_are_refused() -> None:
    with pytest.raises(ParameterError, match="'method' parameter of dedup must be 'auto', 'exact' or 'lsh'"):
        likewise.dedup(["a"], method="fast")
    with pytest.raises(ParameterError, match="'bands' parameter of pairs has no effect with method='exact'"):
        likewise.pairs(["a"], method="exact", bands=2, rows=2)


@cache
def much_alike() -> tuple[list[str], dict[tuple[int, int], float]]:
    """Documents of the same words and some of their own, and all similar pairs of them."""
    rng = random.Random(5)
    own = [[f"x{rng.randrange(10**9)}" for _ in range(rng.randint(1, 30))] for _ in range(400)]
    texts = [" ".join([*VOCABULARY, *words]) for words in own]
    return texts, oracles.similar_pairs([list(frozenset(text.split())) for text in texts], 0.5)


@pytest.mark.parametrize("predicted", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_too_many_pairs_are_abridged_in_any_memory(
    predicted: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each document is listed with one that is kept, no two that are kept are similar, and run.json says so."""
    texts, truth = much_alike()
    monkeypatch.setattr("likewise.search.expand.MAX_LISTED", 1000)
    monkeypatch.setattr("likewise.search.expand.LISTED_PER_ITEM", 0)
    monkeypatch.setattr("likewise.search.prepare.CERTAIN", 1 if predicted else 10**9)
    items = TextItems(Texts.of(texts), Words(1))
    assert len(truth) > 2000
    answers = []
    for budget in (UNLIMITED, Budget(300_000)):
        for threads in (1, 2):
            log = RunLog()
            matches = exact(0.5, budget, threads).find(items, log, Workspace.temporary(tmp_path))
            answers.append(rows_of(matches))
            assert log.details["crowds"]["complete"] is False
            assert log.details["crowds"]["unchecked"] == 0
    assert all(answer == answers[0] for answer in answers)
    assert len(answers[0]) < len(truth)
    assert all(truth[pair] == similarity for pair, similarity in answers[0].items())
    kept = [row for row, stands in oracles.keepers(range(len(texts)), answers[0]).items() if row == stands]
    assert not [pair for pair in truth if pair[0] in kept and pair[1] in kept]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("split", [None, 150])
def test_a_join_resumes_in_its_middle(
    streamed: bool, split: int | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Stopped after any number of units, it takes over the pairs of those that were committed."""
    monkeypatch.setattr("likewise.search.by_join._fits", lambda *_: not streamed)
    monkeypatch.setattr(by_join, "Join", functools.partial(Join, stretch=7))
    texts = collection(3, 300)
    items = TextItems(Texts.of(texts), Words(2))
    sides = None if split is None else Sides(split, across=False)
    budget = Budget(200_000)
    searching = Search(0.5, 0.99, MinHash(), budget=budget, method="exact", patience=0.0)
    expected = rows_of(searching.find(items, RunLog(), None, sides))
    assert len(expected) > 50
    taken = []
    verify = by_join.concatenated

    for stop in (1, 2, 5, 11):
        folder = tmp_path / f"{stop}"
        calls = itertools.count()

        class Stopped(Exception):
            pass

        def sometimes(parts: list[ScoredPairs], stop: int = stop, calls: itertools.count = calls) -> ScoredPairs:
            if next(calls) == stop:
                raise Stopped
            return verify(parts)

        space = Workspace.open(folder, {"parameters": {}, "inputs": {}}, None, fresh=False)
        monkeypatch.setattr(by_join, "concatenated", sometimes)
        with contextlib.suppress(Stopped):
            searching.find(items, RunLog(), space, sides)
        space.close()
        monkeypatch.setattr(by_join, "concatenated", verify)
        space = Workspace.open(folder, {"parameters": {}, "inputs": {}}, None, fresh=False)
        taken.append(len([name for name in space.steps if name.startswith(by_join.PART)]))
        assert rows_of(searching.find(items, RunLog(), space, sides)) == expected
        space.close()
    assert max(taken) >= (1 if streamed else 3)


def write(path: Path, rows: list[tuple[int, str]]) -> Path:
    path.write_text("".join(json.dumps({"n": n, "text": text}) + "\n" for n, text in rows))
    return path


def kept(folder: Path) -> list[int]:
    return [json.loads(line)["n"] for path in (folder / "kept").iterdir() for line in path.read_text().splitlines()]


def test_later_runs_go_against_exact_ones(tmp_path: Path) -> None:
    rows = list(enumerate(collection(11, 120)))
    options = {"id": "n", "shingle": "words:2", "threshold": 0.6}
    likewise.dedup(write(tmp_path / "all.jsonl", rows), **options, method="exact", out=tmp_path / "all")
    folders: list[str | Path] = []
    for day in range(3):
        file = write(tmp_path / f"{day}.jsonl", rows[40 * day : 40 * day + 40])
        likewise.dedup(
            file, **options, method="exact" if day == 0 else "auto", out=tmp_path / f"d{day}", against=folders
        )
        folders.append(tmp_path / f"d{day}")
    assert [n for folder in folders for n in kept(Path(folder))] == kept(tmp_path / "all")
    with pytest.raises(IncompatibleError, match="made with method 'exact' and this run has 'lsh'"):
        likewise.dedup(file, **options, method="lsh", out=tmp_path / "x", against=folders)
    higher = likewise.rethreshold(tmp_path / "all", threshold=0.8, out=tmp_path / "higher")
    anew = likewise.dedup(tmp_path / "all.jsonl", **{**options, "threshold": 0.8}, method="exact")
    assert higher.removed.equals(anew.removed)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_later_runs_know_the_separator(tmp_path: Path, separator: str) -> None:
    rows = [separator.join(tokens) for tokens in (["a b", "c"], ["c", "a b"], ["d"])]
    write(tmp_path / "one.jsonl", list(enumerate(rows)))
    write(tmp_path / "two.jsonl", [(3, separator.join(["c", "a b"])), (4, "a b c")])
    likewise.dedup(tmp_path / "one.jsonl", id="n", shingle=likewise.Tokens(separator=separator), out=tmp_path / "one")
    assert likewise.rethreshold(tmp_path / "one", keep="last", out=tmp_path / "last").removed["id"].to_pylist() == [0]
    words = ["dedup", tmp_path / "two.jsonl", "--id", "n", "--against", tmp_path / "one", "--out", tmp_path / "two"]
    cli.main([str(word) for word in words], standalone_mode=False)
    assert kept(tmp_path / "two") == [4]


def test_an_interrupted_exact_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = write(tmp_path / "in.jsonl", list(enumerate(collection(2, 200))))
    monkeypatch.setattr("likewise.jobs.settings.Settings.search", _impatient(likewise.jobs.settings.Settings.search))
    whole = likewise.dedup(source, id="n", method="exact", out=tmp_path / "whole")

    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.jobs.dedup.removals", stopped)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(source, id="n", method="exact", out=tmp_path / "again")
    with monkeypatch.context() as patch:
        patch.setattr("likewise.search.by_join.find", stopped)  # it is not searched again
        result = likewise.dedup(source, id="n", method="exact", out=tmp_path / "again")
    assert result.stats["details"]["resumed"]
    for name in ("pairs.parquet", "removed.parquet", "clusters.parquet"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert whole.removed.num_rows > 0


def _impatient(search):
    from dataclasses import replace

    return lambda *given: replace(search(*given), patience=0.0)


# sets in files


def truth_of(sets: list[set[str]], threshold: float) -> list[tuple[int, int]]:
    pairs = [(i, j) for i in range(len(sets)) for j in range(i + 1, len(sets))]
    return [(i, j) for i, j in pairs if likewise.measures.jaccard(sets[i], sets[j]) >= threshold]


BASKETS = [["whole milk", "bread"], ["bread", "whole milk", "tea"], [], ["tea"], ["tea", "bread"], [], ["bread", "tea"]]


@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl", "parquet", "arrow", "strings"])
def test_sets_come_from_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"baskets.{'parquet' if kind == 'strings' else kind}"
    shingle: str | likewise.Tokens = "tokens"
    if kind == "txt":
        path.write_text("".join("; ".join(basket) + "\n" for basket in BASKETS))
        shingle = "tokens,separator=;"
    elif kind == "csv":
        path.write_text("text\n" + "".join('"' + ",".join(basket) + '"\n' for basket in BASKETS))
        shingle = likewise.Tokens(separator=",")
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"text": basket}) + "\n" for basket in BASKETS))
    else:
        lists = pa.array(BASKETS, pa.list_(pa.string()))
        table = pa.table({"text": lists if kind != "strings" else [";".join(basket) for basket in BASKETS]})
        if kind == "arrow":
            with pa.ipc.new_file(path, table.schema) as out:
                out.write_table(table)
        else:
            pq.write_table(table, path)
        shingle = "tokens,separator=;" if kind == "strings" else shingle
    for method in ("exact", "lsh"):
        table = likewise.pairs(path, shingle=shingle, threshold=0.5, method=method)
        found = [(row["id_a"], row["id_b"]) for row in table]
        assert found == truth_of([set(basket) for basket in BASKETS], 0.5)
    kept_rows = likewise.dedup(path, shingle=shingle, threshold=0.5).kept
    assert kept_rows.num_rows == 3


@pytest.mark.parametrize("values", [[[1, 2], [2, 1], [3]], [[1.5], [1.5], [2.5]]])
def test_lists_of_numbers_are_sets(tmp_path: Path, values: list[list[float]]) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"items": values}), path)
    table = likewise.pairs(path, text="items", shingle="tokens", threshold=1.0)
    assert table.to_pylist() == [{"id_a": 0, "id_b": 1, "similarity": 1.0}]


def test_list_columns_ask_for_sets_and_bad_tokens_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": [["a", None]]}), path)
    with pytest.raises(TextError, match=r"a\.parquet: the column 'text' is not text but list.*; shingle='tokens'"):
        likewise.pairs(path)
    with pytest.raises(TextError, match=r"a\.parquet: a token of a list is null"):
        likewise.pairs(path, shingle="tokens")
    pq.write_table(pa.table({"text": [["a\x1fb"]]}), path)
    with pytest.raises(TextError, match=r"U\+001F"):
        likewise.pairs(path, shingle="tokens")
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"text": ["a"]}\n{"text": ["b", {"c": 1}]}\n')
    with pytest.raises(TextError, match=r"a\.jsonl:2: a token of the list is neither"):
        likewise.pairs(lines, shingle="tokens")
    assert len(likewise.pairs(lines, shingle="tokens", on_error="skip")) == 0
    pq.write_table(pa.table({"text": [[["a"]]]}), path)
    with pytest.raises(TextError, match="is not text but"):
        likewise.pairs(path, shingle="tokens")


# the command line


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    cli.main([str(argument) for argument in arguments], standalone_mode=False)
    return capsys.readouterr().out


def test_the_command_line_takes_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baskets = tmp_path / "baskets.txt"
    baskets.write_text("a b c\nb a c\nx\nx y\n")
    out = tmp_path / "pairs.csv"
    told = run(capsys, "pairs", baskets, "--sets", "--threshold", 0.5, "--out", out)
    assert "tokens: exact, every pair at 0.5 or more is found" in told
    assert "method: exact, predicted to take less than" in told
    assert [line.split(",")[:2] for line in out.read_text().splitlines()[1:]] == [["0", "1"], ["2", "3"]]
    told = run(capsys, "pairs", baskets, "--sets", "--threshold", 0.5, "--out", out, "--explain")
    assert "2 pairs" in told
    assert all(name in told for name in ("length", "prefix", "position", "suffix", "bitmap", "similar"))
    stats = json.loads(run(capsys, "pairs", baskets, "--sets", "--threshold", 0.5, "--explain", "--json"))
    assert stats["details"]["explained"][0]["filter"] == "none"
    other = tmp_path / "other.txt"
    other.write_text("a b c d\n")
    options = ["--sets", "--measure", "containment", "--threshold", 1, "--out", out]
    run(capsys, "pairs", baskets, "--with", other, *options)
    assert out.read_text().splitlines()[1:] == ["0,0,1", "1,0,1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pairs", "{in}", "--sets"], "Use --out PATH to write the pairs"),
        (["pairs", "{in}", "--threshold", "0", "--out", "p.csv"], "--threshold option of pairs must be in (0, 1]"),
        (
            ["pairs", "{in}", "--sets", "--shingle", "words", "--out", "p.csv"],
            "--sets and --shingle exclude each other",
        ),
        (["pairs", "{in}", "--separator", ";", "--out", "p.csv"], "--separator requires --sets"),
        (["pairs", "{in}", "--shingle", "words", "--separator", ";", "--explain"], "--separator requires --sets"),
        (
            ["pairs", "{in}", "--sets", "--separator", ";;", "--out", "p.csv"],
            "--separator option of Tokens must be one ASCII",
        ),
    ],
)
def test_wrong_calls_say_what_is_wrong(tmp_path: Path, arguments: list[str], message: str) -> None:
    path = tmp_path / "in.txt"
    path.write_text("a b\n")
    with pytest.raises(ParameterError, match=message.replace("(", r"\(").replace("]", r"\]")):
        cli.main([argument.replace("{in}", str(path)) for argument in arguments], standalone_mode=False)


@given(st.lists(st.sets(st.integers(0, 12), max_size=9), min_size=2, max_size=9), st.sampled_from([0.3, 0.5, 0.8, 1.0]))
def test_predicted_visits_are_those_of_prefixes_written_out(lists, threshold):
    """Elements ordered by how many sets have them, then by value; a probe visits smaller sets in the lists of its
    prefix, but for elements that no other set has."""
    sets = Sets(np.array([x for one in lists for x in one], np.uint64), np.cumsum([0, *map(len, lists)]))
    counts = Counter(x for one in lists for x in one)
    ordered = [sorted(one, key=lambda x: (counts[x], x)) for one in lists]
    lengths = Lengths.of(sets.sizes, Bounds("jaccard", threshold), False, 2)
    rank = {place: i for i, place in enumerate(sorted(range(len(lists)), key=lambda place: len(lists[place])))}
    visits = sum(
        x == y and rank[b] < rank[a] and len(lists[b]) >= threshold * len(lists[a])
        for a, b in itertools.permutations(range(len(lists)), 2)
        for x in ordered[a][: lengths.probe[a]]
        for y in ordered[b][: lengths.index[b]]
    )
    entries, _, alone = prepare._expected(sets, len(lists), threshold)
    assert entries == pytest.approx(visits)
    total = sum(map(len, lists))
    assert alone == pytest.approx(sum(counts[x] == 1 for one in lists for x in one) / max(1, total) if total else 1.0)
