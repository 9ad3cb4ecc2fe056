"""Estimates in place of verified similarities (MMDS §3.4.3, step 6): the signatures decide, and the result says so."""

import json
from itertools import combinations, product

import numpy as np
import pytest

import likewise
import oracles
import runs
from likewise import Banding, MinHash, Sets
from likewise.errors import IncompatibleError, ParameterError
from likewise.io.workspace import WORK
from likewise.search import estimate

RANDOM = np.random.default_rng(5)
BASES = [RANDOM.choice(10_000, 80, replace=False) for _ in range(12)]
LISTS = [
    sorted({*base[: 80 - cut].tolist(), *(20_000 + RANDOM.choice(10_000, cut)).tolist()})
    for base in BASES
    for cut in (0, 0, 4, 8, 12, 20)
]
LISTS += [[], [], [1]]


def naive(lists, banding, threshold, seed=1, pairs=None):
    """Every pair that agrees in a band and in enough slots; equal sets are always a pair."""
    signatures = MinHash(seed=seed).signatures(Sets.from_lists(lists), banding.slots)
    found = {}
    for i, j in combinations(range(len(lists)), 2) if pairs is None else pairs:
        a, b = signatures[i].tolist(), signatures[j].tolist()
        bands = [slice(band * banding.r, (band + 1) * banding.r) for band in range(banding.b)]
        share = sum(p == q for p, q in zip(a, b, strict=True)) / banding.slots
        candidates = lists[i] == lists[j] or (lists[i] and lists[j] and any(a[band] == b[band] for band in bands))
        if candidates and share >= threshold:
            found[i, j] = share
    return found


def given(result):
    return {(row["id_a"], row["id_b"]): row["estimated_similarity"] for row in result}


@pytest.mark.parametrize(("b", "r"), [(20, 5), (32, 1), (4, 16)])
@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_the_pairs_are_those_whose_signatures_agree(b, r, threshold):
    found = likewise.pairs(Sets.from_lists(LISTS), bands=b, rows=r, threshold=threshold, estimate=True)
    assert given(found) == naive(LISTS, Banding(b, r), threshold)
    assert found.table.column_names == ["id_a", "id_b", "estimated_similarity", "standard_error"]
    known = found.stats["details"]["estimate"]
    assert known["slots"] == b * r
    assert known["standard_error"] == pytest.approx((threshold * (1 - threshold) / (b * r)) ** 0.5, abs=1e-6)
    for row in found:
        same = LISTS[row["id_a"]] == LISTS[row["id_b"]]
        assert (row["standard_error"] == 0) == same


def test_two_collections_and_the_best_partners():
    half = len(LISTS) // 2
    here, there = Sets.from_lists(LISTS[:half]), Sets.from_lists(LISTS[half:])
    truth = naive(LISTS, Banding(25, 4), 0.6, pairs=product(range(half), range(half, len(LISTS))))
    found = likewise.pairs(here, there, bands=25, rows=4, threshold=0.6, estimate=True)
    assert {(a, b + half): share for (a, b), share in given(found).items()} == truth
    truth = naive(LISTS, Banding(25, 4), 0.6)
    best = likewise.pairs(Sets.from_lists(LISTS), bands=25, rows=4, threshold=0.6, estimate=True, k=1)
    for (a, b), share in given(best).items():
        assert share == truth[min(a, b), max(a, b)] == max(s for pair, s in truth.items() if a in pair)
    nothing = likewise.pairs(here, Sets.from_lists([]), estimate=True)
    assert nothing.table.column_names == found.table.column_names


def test_the_error_is_what_it_says():
    """The estimates of 600 pairs of known similarity, from signatures of 256 slots: mean square error as stated."""
    lists = []
    for number in range(600):
        base = (number * 10_000 + np.arange(1000)).tolist()
        lists += [base[:900], base[100:]]  # Jaccard similarity 0.8
    found = likewise.pairs(Sets.from_lists(lists), threshold=0.5, estimate=True, recall=0.999999)
    assert found.stats["details"]["estimate"]["slots"] >= 256
    assert len(found) == 600
    z = [(row["estimated_similarity"] - 0.8) / row["standard_error"] for row in found]
    # 600 independent z of variance at most 1 (the fast sketch does slightly better): four standard errors of each
    assert abs(np.mean(z)) < 4 / 600**0.5
    assert 0.6 < np.mean(np.square(z)) < 1 + 4 * (2 / 600) ** 0.5


def test_half_of_the_pairs_at_the_threshold_are_accepted():
    lists = []
    for number in range(800):
        base = (number * 10_000 + np.arange(1000)).tolist()
        lists += [base[:900], base[100:]]
    found = likewise.pairs(Sets.from_lists(lists), threshold=0.8, estimate=True, bands=40, rows=5, certify=1600)
    predicted = found.stats["details"]["predicted_recall"]
    assert predicted == pytest.approx(Banding(40, 5).probability(0.8) * estimate.acceptance(0.8, 200))
    assert abs(len(found) / 800 - predicted) < 4 * (0.25 / 800) ** 0.5
    assert found.stats["certificate"]["recall"] == len(found) / 800  # measured against the true similarities
    assert "expected_recall" not in found.stats["details"]


@pytest.mark.parametrize(("threshold", "slots"), [(0.8, 5), (0.5, 3), (0.3, 7), (1 / 3, 9), (1.0, 4), (0.1, 2)])
def test_acceptance_is_a_binomial_tail(threshold, slots):
    chances = oracles_binomial(threshold, slots)
    expected = sum(chance for agree, chance in enumerate(chances) if agree / slots >= threshold)
    assert estimate.acceptance(threshold, slots) == pytest.approx(expected, abs=1e-12)


def oracles_binomial(p, n):
    chances = [1.0]
    for _ in range(n):
        chances = [a * (1 - p) + b * p for a, b in zip([*chances, 0.0], [0.0, *chances], strict=True)]
    return chances


def texts(count):
    words = [f"w{number}" for number in range(400)]
    made = []
    for _ in range(count):
        base = RANDOM.choice(words, 120)
        made.append(" ".join(base))
        changed = base.copy()
        changed[RANDOM.integers(0, 120, 3)] = "x"
        made.append(" ".join(changed))
    return [*made, made[0], ""]


def test_dedup_and_another_threshold(tmp_path):
    documents = texts(60)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in documents))
    options = {"bands": 30, "rows": 4, "threshold": 0.6, "estimate": True}
    result = likewise.dedup(tmp_path / "a.jsonl", out=tmp_path / "out", **options)
    sets = [likewise.Words(5).shingles(text) for text in documents]
    by_pairs = likewise.pairs(documents, **options)
    assert result.pairs.to_pylist() == by_pairs.to_pylist()
    assert len(by_pairs) > 30
    columns = ["id", "kept_id", "estimated_similarity", "standard_error", "kind"]
    assert result.removed.column_names == columns
    for row in result.removed.to_pylist():
        pair = min(row["id"], row["kept_id"]), max(row["id"], row["kept_id"])
        assert row["estimated_similarity"] == given(by_pairs)[pair] >= 0.6
        assert abs(row["estimated_similarity"] - oracles.jaccard(sets[pair[0]], sets[pair[1]])) < 6 * 0.05
    again = likewise.rethreshold(tmp_path / "out", 0.85, out=tmp_path / "again")
    wanted = [row for row in by_pairs.to_pylist() if row["estimated_similarity"] >= 0.85]
    assert again.pairs.to_pylist() == wanted
    assert again.stats["details"]["estimate"]["slots"] == 120
    with pytest.raises(IncompatibleError, match="the similarities of that run are estimates"):
        likewise.dedup(tmp_path / "a.jsonl", against=tmp_path / "out")


def test_crowds_are_filtered_by_their_signatures():
    """3,000 documents that share 60 of 63 words, more than can be paired: the signatures of every pair listed agree."""
    page = [f"w{number}" for number in range(60)]
    documents = [" ".join([*page, f"a{number}", f"b{number}", f"c{number}"]) for number in range(3000)]
    found = likewise.pairs(documents, shingle="words:1", threshold=0.8, estimate=True, bands=16, rows=2)
    assert found.stats["details"]["crowds"]["documents"] == 3000
    signatures = MinHash(seed=1).signatures(likewise.Words(1).sets(documents), 32)
    rows = found.to_pylist()
    assert len(rows) >= 1000
    for row in rows[:: len(rows) // 500]:
        agreed = MinHash.estimate(signatures[row["id_a"]], signatures[row["id_b"]])
        assert row["estimated_similarity"] == agreed >= 0.8


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "exact"},
        {"measure": "cosine"},
        {"explain": True},
        {"estimate": "yes"},
    ],
)
def test_where_there_are_no_estimates_it_is_an_error(wrong):
    with pytest.raises(ParameterError, match="'estimate' parameter of pairs"):
        likewise.pairs(["a b c", "a b c d"], **{"estimate": True, **wrong})


def test_the_command_line(typed, tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(texts(30)))
    words = ("--lines", "--threshold", "0.7", "--estimate", "--out")
    done = typed("pairs", "a.txt", *words, "pairs.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "pairs.csv").read_text().splitlines()[
        0
    ] == '"id_a","id_b","estimated_similarity","standard_error"'
    assert "similarities are estimated from 256 slots, standard error 0.029 at 0.7" in done.stdout
    done = typed("dedup", "a.txt", *words, "clean", "--json")
    stats = json.loads(done.stdout)
    assert stats["details"]["estimate"] == {"slots": 256, "standard_error": 0.028641}
    assert stats["parameters"]["estimate"] is True
    done = typed("pairs", "a.txt", *words, "pairs.csv", "--method", "exact")
    assert (done.returncode, "estimate" in done.stderr) == (2, True)
    done = typed("rethreshold", "clean", "--threshold", "0.9")
    assert "similarities are estimated from 256 slots, standard error 0.019 at 0.9" in done.stdout
    assert typed("dedup", "a.txt", "--lines", "--method", "exact", "--out", "exact").returncode == 0
    done = typed("dedup", "a.txt", "--lines", "--estimate", "--against", "exact", "--out", "new")
    assert done.returncode == 2
    assert "The --estimate option of dedup has no effect with --against" in done.stderr


def test_little_memory_and_a_run_that_is_killed(tmp_path):
    """Signatures on disk, and a run that goes on where it was: the same bytes."""
    source = runs.corpus(tmp_path / "corpus.parquet", 12_000, near=1000)
    options = ("--estimate", "--bands", "90", "--rows", "6")
    code, _, errors = runs.dedup(source, tmp_path / "whole", *options)
    assert code == 0, errors
    whole = runs.answer(tmp_path / "whole")
    out = tmp_path / "out"
    for stage in ("candidates", "verify", "write"):
        runs.killed_at(stage, 1, source, out, estimate=True, bands=90, rows=6, memory="64MiB")
        assert max(path.stat().st_size for path in (out / WORK).rglob("keys")) > 4 * 540 * 10_000
    code, _, errors = runs.dedup(source, out, *options, "--memory", "64MiB")
    assert code == 0, errors
    assert runs.answer(out) == whole
    manifest = json.loads((out / "run.json").read_text())
    assert manifest["details"]["resumed"]
    assert manifest["details"]["estimate"]["slots"] == 540
