"""A large corpus, of which the driver never holds the rows with duplicates: the same answer, by rounds and joins."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spark_corpora import documents, in_order, table, templates
from test_spark_dedup import agree

import likewise
from likewise.search import candidates, expand
from likewise.spark import corpus, exchange, executor, meetings, rounds, travel
from likewise.spark.context import is_connect
from likewise.spark.result import ClusterRows


@pytest.fixture
def large(monkeypatch):
    """Let every corpus count as large; the driver finishes what rounds would begin with."""
    monkeypatch.setattr(corpus, "LARGE", 0)
    monkeypatch.setattr(exchange, "LEAST", 1000)


@pytest.fixture
def in_rounds(monkeypatch):
    """Let the driver leave nearly all to the rounds: each is a few jobs, so few tests have them (see also
    test_spark_rounds.py)."""
    monkeypatch.setattr(rounds, "REMAINDER", 60)
    monkeypatch.setattr(rounds, "PREFIX", 100)


@pytest.fixture
def adaptive(spark):
    """Let Spark write small tables as one file, as it usually does: the order of rows in several is not tried here."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    yield
    spark.conf.set(name, before)


def test_duplicates_remain_on_the_cluster(spark, large, in_rounds, monkeypatch, tmp_path):
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
        patch.setattr("likewise.spark.spread.certify", fail)
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
    assert is_connect(spark) or steps["keepers-1"]["shuffle_write_bytes"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("direct", [True, False])
def test_documents_meet_by_themselves(spark, large, monkeypatch, tmp_path, direct):
    """Candidates stay on the cluster: the documents of files are told where to go, others meet what tells them.

    In `make test` those of files meet in test_spark_against.py, and those of frames in the tables of pairs below.
    """
    texts = documents(120)
    hub = max(texts, key=len).split()
    variants = [" ".join([*hub[:place], f"other{place}", *hub[place + 1 :]]) for place in range(0, 100, 5)]
    rows = table(texts + variants + [texts[2]] * 3)
    local = likewise.dedup(rows, id="name", threshold=0.6, method="lsh")
    for name, value in (("RATE", 1), ("MOST", 4), ("LEAST", 1)):
        monkeypatch.setattr(meetings, name, value)
    crowded = []
    divide = meetings.CrowdedPlaces.of
    monkeypatch.setattr(meetings.CrowdedPlaces, "of", lambda *given: crowded.append(divide(*given)) or crowded[-1])
    monkeypatch.setattr(executor, "verify", None)
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
    assert is_connect(spark) or steps["meetings"]["shuffle_write_bytes"] > 0
    assert crowded[0].blocks.max() > 1


@pytest.mark.parametrize(
    ("settings", "across"),
    [
        pytest.param({"id": "name"}, False, marks=pytest.mark.soak),
        pytest.param({"k": 2, "certify": 100}, False, marks=pytest.mark.soak),
        pytest.param({"id": "name", "below": 0.95}, False, marks=pytest.mark.soak),
        ({"id": "name", "k": 2, "below": 0.95, "certify": 100}, False),
        pytest.param({}, True, marks=pytest.mark.soak),
        ({"id": "name", "k": 1, "estimate": True}, True),
    ],
    ids=str,
)
def test_the_table_of_pairs_is_made_on_the_cluster(spark, adaptive, large, monkeypatch, tmp_path, settings, across):
    """The same rows in the same order; equal sets and empty documents on both sides, groups that are abridged."""
    monkeypatch.setattr(expand, "MAX_LISTED", 150)
    monkeypatch.setattr(expand, "LISTED_PER_ITEM", 0)
    monkeypatch.setattr(executor, "verify", None)
    texts = documents(200)
    texts += [texts[2]] * 12 + ["", " "]
    sides = [table(texts)] if not across else [table([*texts[:90], texts[2], ""]), table(texts[90:], seed=6)]
    asked = {"threshold": 0.6, "method": "lsh", **settings}
    local = likewise.pairs(*sides, **asked)
    found = likewise.pairs(*map(spark.createDataFrame, sides), **asked)
    assert found.table.to_pylist() == local.table.to_pylist()
    assert in_order(found.pairs) == local.table.to_pylist()
    assert len(found) == len(local) > 20
    assert found.stats["counts"] == local.stats["counts"]
    assert found.stats["certificate"] == local.stats["certificate"]
    assert found.stats["details"].get("abridged") == local.stats["details"].get("abridged")
    assert found.save(tmp_path / "out") == tmp_path / "out"
    assert pq.read_table(tmp_path / "out" / "pairs.parquet").to_pylist() == local.table.to_pylist()
    assert pq.read_table(found.save(tmp_path / "pairs.parquet")).to_pylist() == local.table.to_pylist()


def test_the_rows_of_several_files_stay_in_order(spark, tmp_path):
    """Spark reads the larger file, the second one, first."""
    ids = spark.range(5_000).repartitionByRange(2, "id").sortWithinPartitions("id")
    rows = ClusterRows(ids.selectExpr("id", "if(id < 2500, 0, hash(id)) as text"), 5_000, tmp_path)
    assert rows.table()["id"].to_pylist() == list(range(5_000))
    assert [row.id for row in rows.frame.collect()] != list(range(5_000))
    assert [row.id for row in rows.ordered.collect()] == list(range(5_000))


def both_ways(pairs):
    """Return the documents of pairs, and the other one of each."""
    ends = np.array([*pairs, *((b, a) for a, b in pairs)], np.int64)
    return ends[:, 0].copy(), ends[:, 1].copy()


@given(
    pairs=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]), min_size=5),
    repeats=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_pairs_get_a_place(pairs, repeats, seed):
    """Each pair has one place, that of the lowest document known to the first."""
    order = np.random.default_rng(seed).permutation(2 * len(pairs) * repeats)
    nodes, others = (np.tile(side, repeats)[order] for side in both_ways(pairs))
    left, right, place, documents = meetings.placed(nodes, others)
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == sorted(pairs)
    assert documents.tolist() == sorted({end for pair in pairs for end in pair})
    known = {node: {a + b - node for a, b in pairs if node in (a, b)} for node in documents.tolist()}
    assert place.tolist() == [min(a, *known[a]) for a in left.tolist()]


@pytest.mark.parametrize("kind", ["clique", "star", "cliques in a star"])
def test_no_task_gets_a_crowd(kind):
    """Crowded places are divided, with the estimates of a sample: no two blocks are too large for a task."""
    if kind == "clique":
        pairs = np.stack(np.triu_indices(700, 1), axis=1)
    elif kind == "star":
        pairs = np.stack([np.zeros(20_000, np.int64), np.arange(1, 20_001)], axis=1)
    else:  # the lowest document is in twenty groups, and no other is in two
        one = np.stack(np.triu_indices(100, 1), axis=1)
        pairs = np.concatenate([np.where(one == 0, 0, one + 100 * group) for group in range(20)])
    left, right, place, _ = meetings.placed(*both_ways(pairs))
    most = 64
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(meetings, "RATE", 2)
        rows, places = np.concatenate([left, right]), np.concatenate([place, place])
        crowded = meetings.CrowdedPlaces.of(meetings.sampled(rows, places, 2)[1], most)
    assert len(crowded.places) == 1
    words = crowded.divided(left, right, place)
    visits = np.unique(np.stack([np.concatenate([words, words]), rows.view(np.uint64)]), axis=1)
    _, documents = np.unique(visits[0], return_counts=True)
    # two blocks of about `most`; the sample is off by 5 binomial errors at most, and so is the size of a block
    estimated = 2 * most * (1 + 5 / len(np.unique(rows)) ** 0.5)
    assert documents.max() < estimated + 5 * estimated**0.5
    assert visits.shape[1] <= 2 * crowded.journeys


def test_documents_of_many_journeys_are_sent_in_slices(monkeypatch):
    """Those that go to one task travel together, some at a time."""
    monkeypatch.setattr(travel, "COPIED", 400)
    monkeypatch.setattr(travel, "AT_ONCE", 100)
    targets = np.arange(13, dtype=np.int32) // 4
    route = travel.Journeys(np.repeat([3, 5, 6], [9, 3, 1]), np.arange(13), targets)
    sent = list(route.sent(np.array([5, 4, 3, 6]), pa.array(["b" * 30, "nowhere", "a" * 40, ""])))
    assert len(sent) < 13
    assert all(len(batch) == 1 and len(batch.column(3)[0].as_py()) <= 140 for batch in sent)
    found = []
    for batch in sent:
        ((rows, documents),) = travel.Arrived.of([batch]).documents
        target = batch.column(0)[0].as_py()
        texts = documents.view(pa.large_string()).to_pylist()
        found += [(target, row, text) for row, text in zip(rows.tolist(), texts, strict=True)]
    texts = {3: "a" * 40, 5: "b" * 30, 6: ""}
    expected = [
        (target, row, texts[row]) for target, row in zip(targets.tolist(), [3] * 9 + [5] * 3 + [6], strict=True)
    ]
    assert sorted(found) == expected


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
