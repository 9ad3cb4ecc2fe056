"""A large corpus, of which the driver never holds the rows with duplicates: the same answer, by rounds and joins."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_corpora import documents, table, templates
from test_spark_dedup import agree

import likewise
from likewise.search import candidates, expand
from likewise.spark import corpus, exchange, meetings, rounds, search


@pytest.fixture
def large(monkeypatch):
    """Let every corpus count as large, and let the driver leave all to the rounds."""
    monkeypatch.setattr(corpus, "LARGE", 0)
    monkeypatch.setattr(exchange, "LEAST", 100)
    monkeypatch.setattr(rounds, "REMAINDER", 60)
    monkeypatch.setattr(rounds, "PREFIX", 100)


def test_duplicates_remain_on_the_cluster(spark, large, monkeypatch, tmp_path):
    """The driver is lost when the rounds are done, and the run is resumed.

    Similarities are estimates; those of a large corpus that are not are in the tests of `rethreshold`.
    """
    monkeypatch.setattr(expand, "MAX_LISTED", 400)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 0)
    texts = documents(300)
    rows = table(texts + [texts[2]] * 40 + ["", " ", "  ", "  "])
    settings = {"id": "name", "keep": "longest", "estimate": True, "threshold": 0.6}
    given = tmp_path / "given.parquet"
    pq.write_table(rows, given)
    local = likewise.dedup(given, **settings)

    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("likewise.spark.spread.SpreadTables._certify", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(given, engine="spark", out=tmp_path / "out", **settings)
    found = likewise.dedup(given, engine="spark", out=tmp_path / "out", **settings)
    agree(local, found)
    assert {"members", "ranks", "keepers-1", "components-1", "rows"} < set(found.stats["details"]["resumed"])
    assert found.stats["details"]["abridged"] == local.stats["details"]["abridged"]
    assert found.stats["details"]["largest_cluster"] == local.stats["details"]["largest_cluster"]
    counts = found.stats["details"]["rounds"]
    assert 1 < counts["keepers"] < 20
    assert 1 <= counts["components"] < 20  # pairs that are connected mostly come from one task
    steps = found.stats["details"]["spark"]["steps"]
    assert all(steps[f"{name}-{n + 1}"]["seconds"] > 0 for name in counts for n in range(counts[name]))
    assert steps["keepers-1"]["shuffle_write_bytes"] > 0


@pytest.mark.parametrize("direct", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_documents_meet_by_themselves(spark, large, monkeypatch, tmp_path, direct):
    """Candidates stay on the cluster: the documents of files are told where to go, others meet what tells them."""
    texts = documents(120)
    hub = texts[0].split()
    variants = [" ".join([*hub[:i], f"other{i}", *hub[i + 1 :]]) for i in range(0, min(len(hub), 60), 3)]
    rows = table(texts + variants + [texts[1]] * 3)
    local = likewise.dedup(rows, id="name", threshold=0.6, method="lsh")
    monkeypatch.setattr(meetings, "BLOCK", 4)
    monkeypatch.setattr(search, "verify", None)
    if direct:
        pq.write_table(rows, tmp_path / "given.parquet", row_group_size=20)
        source = {"source": tmp_path / "given.parquet", "engine": "spark", "out": tmp_path / "out"}
    else:
        source = {"source": spark.createDataFrame(rows)}
    found = likewise.dedup(**source, id="name", threshold=0.6, method="lsh")
    agree(local, found)
    steps = found.stats["details"]["spark"]["steps"]
    for name in ("candidates", "verified", "pairs", "removed"):
        assert found.stats["counts"][name] == local.stats["counts"][name] > 0, name
    assert found.stats["details"]["expected_recall"] == pytest.approx(local.stats["details"]["expected_recall"])
    assert steps["meetings"]["shuffle_write_bytes"] > 0


def reference_places(pairs, block):
    """Return the documents of each place, by the rule in words."""
    known = {}
    for a, b in pairs:
        known.setdefault(a, set()).add(b)
        known.setdefault(b, set()).add(a)
    return {(a, b): (min(a, *known[a]), len(known[a]) > block) for a, b in pairs}


@given(
    pairs=st.lists(st.tuples(st.integers(0, 25), st.integers(0, 25)), min_size=1, max_size=80),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_pairs_get_a_place(pairs, repeats, seed):
    """Each pair has one place, that of the lowest document known to the first; only crowded ones have several."""
    pairs = sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]})
    if not pairs:
        return
    ends = np.array([*pairs, *((b, a) for a, b in pairs)] * repeats, np.int64)
    np.random.default_rng(seed).shuffle(ends)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meetings, "BLOCK", 6)
        left, right, place, nodes = meetings.placed(ends[:, 0].copy(), ends[:, 1].copy())
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == pairs
    assert nodes.tolist() == sorted({end for pair in pairs for end in pair})
    expected = reference_places(pairs, 6)
    for a, b, word in zip(left.tolist(), right.tolist(), place.tolist(), strict=True):
        least, crowded = expected[a, b]
        assert (word == least) is not crowded, (a, b)


def test_a_place_is_never_crowded():
    """Three hundred documents that are all candidates of each other: no place has more than a block squared."""
    n, block = 300, 32
    a, b = np.triu_indices(n, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meetings, "BLOCK", block)
        left, right, place, _ = meetings.placed(np.concatenate([a, b]), np.concatenate([b, a]))
    assert len(left) == len(right) == n * (n - 1) // 2
    _, sizes = np.unique(place, return_counts=True)
    assert len(sizes) == 16**2  # 299 candidates in blocks of at most 32: 16 is the next power of two
    assert sizes.max() <= block**2


@pytest.mark.soak
def test_crowds_of_a_large_corpus(spark, large, monkeypatch):
    monkeypatch.setattr(candidates, "PAIRS_AT_LEAST", 500)
    monkeypatch.setattr(candidates, "PAIRS_AN_ITEM", 1)
    monkeypatch.setattr(expand, "MAX_LISTED", 300)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 1)
    rows = table([None, *templates(400), None, *documents(200)])
    settings = {"keep": "min:score", "method": "lsh", "on_error": "skip"}
    local, found = likewise.dedup(rows, **settings), likewise.dedup(spark.createDataFrame(rows), **settings)
    agree(local, found)
    assert local.stats["details"]["crowds"] == found.stats["details"]["crowds"]
    assert local.stats["details"]["crowds"]["complete"] is False
