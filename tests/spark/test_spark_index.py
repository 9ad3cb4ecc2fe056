"""New documents against an index, which tasks ask, beside the local engine."""

import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, table
from test_spark_against import agree_but_for_folders

import likewise
from likewise import IncompatibleError, Index, InputError, ParameterError, Words
from likewise.base.arrays import TextChunk
from likewise.base.copies import chunk_digests
from likewise.base.random import mix
from likewise.engines import index_items
from likewise.families.banding import Banding
from likewise.families.minhash import MinHash
from likewise.index.reference_index import ReferenceIndex
from likewise.jobs import reference_items
from likewise.jobs.reference_items import SimilarItems
from likewise.spark import asked, corpus, steps
from likewise.spark.against import settings_of
from likewise.spark.known_sets import KnownSets, MixedShingler

SETTINGS = {"threshold": 0.6, "bands": 30, "rows": 3}


def made(place, rows, **more):
    """An index of some rows, in segments, of which every seventh is removed."""
    index = Index.create(place, **SETTINGS, **more)
    ids = rows["name"].to_pylist() if more.get("texts", True) else list(range(1000, 1000 + rows.num_rows))
    for start in range(0, rows.num_rows, 60):
        index.add(ids[start : start + 60], rows["text"].to_pylist()[start : start + 60])
    index.remove(ids[::7])
    return index


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    """Documents that are known, some of them of a run, and a file of new ones, a third of them copies or nearly so."""
    folder, rows = tmp_path_factory.mktemp("days"), table(documents(500))
    made(folder / "texts", rows.slice(0, 200)).close()
    Index.create(folder / "empty", **SETTINGS).close()
    made(folder / "sets", rows.slice(150, 120), texts=False).close()
    pq.write_table(rows.slice(230, 100), folder / "old.parquet")
    likewise.dedup(folder / "old.parquet", id="name", out=folder / "run", **SETTINGS)
    pq.write_table(rows.slice(250, 150), folder / "new.parquet", row_group_size=40)
    return folder, rows


def same(local, found):
    """Both have the same tables and counts, and compared the same."""
    local.stats["counts"].pop("set_aside", None)
    agree_but_for_folders(local, found)
    assert found.stats["parameters"]["against"] == local.stats["parameters"]["against"]
    assert found.stats["counts"]["earlier"] == local.stats["counts"]["earlier"] > 100
    kinds = {(row["kind"], row["kept_in"] is not None) for row in local.removed.to_pylist()}
    assert kinds == {(kind, known) for kind in ("identical", "near") for known in (True, False)}


def test_the_answer_is_that_of_the_local_engine(spark, days, tmp_path, monkeypatch):
    """The most similar items of each document take part, and those of others, too; a lost driver asks no more."""
    folder, _ = days
    monkeypatch.setattr(reference_items, "MOST", 2)
    monkeypatch.setattr(asked, "MOST", 2)
    monkeypatch.setattr(asked, "BLOCK", 30)
    monkeypatch.setattr(asked, "LOOK", 20)
    given = {"id": "name", "against": [folder / "texts", folder / "empty"], **SETTINGS}
    local = likewise.dedup(folder / "new.parquet", **given)

    def fail(*_):
        raise KeyboardInterrupt

    given |= {"engine": "spark", "out": tmp_path / "out"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.spark.run.publish_frames", fail)
        with pytest.raises(KeyboardInterrupt):
            likewise.dedup(folder / "new.parquet", **given)
    found = likewise.dedup(folder / "new.parquet", **given)
    same(local, found)
    assert {"asked-1", "known-1"} < set(found.stats["details"]["resumed"])


def test_an_index_of_sets_and_a_run_and_an_index_that_has_no_answer(spark, days, monkeypatch):
    """Of a large corpus, in several partitions. Ids are text, as those of the run and of the index of sets differ."""
    folder, rows = days
    monkeypatch.setattr(corpus, "LARGE", 0)
    new = rows.slice(250, 150)
    given = {"against": [folder / "empty", folder / "sets", folder / "run"], "keep": "max:score", **SETTINGS}
    found = likewise.dedup(spark.createDataFrame(new).repartition(1).sortWithinPartitions("name"), **given)
    same(likewise.dedup(new.sort_by("name"), **given), found)


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_an_index_without_an_answer(spark, tmp_path, monkeypatch, large):
    monkeypatch.setattr(corpus, "LARGE", 0 if large else corpus.LARGE)
    with Index.create(tmp_path / "index", **SETTINGS) as index:
        index.add([1, 2], ["something else", "altogether"])
        frame = spark.createDataFrame([("a b c d e f g",), ("a b c d e f g",), ("x",)], "text string").coalesce(1)
        found = likewise.dedup(frame, against=index, keep="longest", **SETTINGS)
    assert [tuple(row) for row in found.removed.select("id", "kept_id", "kept_in").collect()] == [(1, 0, None)]
    counts = found.stats["counts"]
    assert (counts["earlier"], counts["different"], counts["pairs"]) == (2, 2, 1)


def test_an_index_that_changes(spark, days, tmp_path, monkeypatch):
    """Between the two steps that read it, or before a lost driver is replaced."""
    folder, rows = days
    blocks = asked._blocks
    with made(tmp_path / "index", rows.slice(0, 120)) as index:

        def changed(*given):
            index.add(["later"], ["later"])
            return blocks(*given)

        monkeypatch.setattr(asked, "_blocks", changed)
        given = {"id": "name", "against": str(tmp_path / "index"), "engine": "spark", "out": tmp_path / "out"}
        with pytest.raises(InputError, match="index: the index has changed since the run began; leave it alone and"):
            likewise.dedup(folder / "new.parquet", **given, **SETTINGS)
        with pytest.raises(IncompatibleError, match="an unfinished run with other inputs or parameters"):
            likewise.dedup(folder / "new.parquet", **given, **SETTINGS)


def test_machines_that_do_not_see_the_index(spark, days, monkeypatch, tmp_path):
    folder, _ = days
    there = ReferenceIndex.asked
    monkeypatch.setattr(ReferenceIndex, "asked", lambda index: replace(there(index), address=str(tmp_path / "mount")))
    told = rf"{re.escape(str(folder / 'texts'))}: the tasks of Spark do not see .*\(\S+: .*mount: "
    with pytest.raises(InputError, match=told):
        likewise.dedup(folder / "new.parquet", against=folder / "texts", engine="spark", **SETTINGS, out=tmp_path / "o")
    assert not (tmp_path / "o").exists()


def test_what_is_refused_is_what_the_local_engine_refuses(spark, days, tmp_path, monkeypatch):
    folder, _ = days
    monkeypatch.setattr("likewise.spark.dedup.begun", None)
    Index.create(tmp_path / "vectors", measure="l2").close()
    Index.create(tmp_path / "baskets", shingle=None).close()
    Index.create(tmp_path / "other", threshold=0.6, bands=20, rows=3).close()
    Index.create(tmp_path / "chars", shingle="chars:7", **SETTINGS).close()
    cases = [
        ("texts", {"threshold": 0.5}), ("texts", {"rows": 4}), ("texts", {"ignore_common": 0.1}), ("vectors", {}),
        ("baskets", {}), ("chars", {}), (["texts", "other"], {}), (["run", "chars"], {}), ("none", {}),
        ("texts", {"method": "exact", "bands": None, "rows": None}),
    ]  # fmt: skip
    for names, more in cases:
        known = [
            next(path for path in (folder / name, tmp_path / name) if path.exists() or name == "none")
            for name in ([names] if isinstance(names, str) else names)
        ]
        told = []
        for engine in ("local", "spark"):
            with pytest.raises(likewise.LikewiseError) as raised:
                likewise.dedup(folder / "new.parquet", against=known, engine=engine, **{**SETTINGS, **more})
            told.append((type(raised.value), str(raised.value)))
        assert told[0] == told[1], names
    with pytest.raises(ParameterError, match="does not go with 'group' on Spark"):
        likewise.dedup(folder / "new.parquet", against=folder / "texts", group="name", engine="spark", **SETTINGS)
    assert settings_of([str(folder / "texts")], None, index_items)["bands"] == 30


@pytest.mark.parametrize("seed", range(5))
def test_items_of_an_index_among_documents(seed):
    """Their sets, band keys and fingerprints are what the index has told; those of documents remain what they are."""
    shingler, draw = Words(2), np.random.default_rng(seed)
    texts = [text or "x" for text in documents(40, seed=seed)]
    mine = np.flatnonzero(draw.random(40) < 0.4)
    sets = shingler.sets(texts)
    numbers = mix(np.arange(4 * len(mine), dtype=np.uint64)).reshape(-1, 2)
    digests, units = numbers[: len(mine)], numbers[len(mine) :]
    known = KnownSets(["state", "of another"])
    mixed = list(texts)
    written = known.texts(SimilarItems(None, sets.take(mine), digests, units)).to_pylist()
    for row, text in zip(mine, written, strict=True):
        mixed[row] = text
    shingle = MixedShingler.of(shingler, known)
    assert [one.tolist() for one in shingle.sets(mixed)] == [one.tolist() for one in sets]
    assert not any(shingle.members(mixed[row]) for row in mine)
    rows, counting = np.arange(40)[::2].copy(), (MinHash(1, "fast"), Banding(3, 2), None)
    plain = steps.sketched(steps.items_of(steps.string_array(texts), shingler, None), rows, *counting)
    found = steps.sketched(steps.items_of(steps.string_array(mixed), shingle, None), rows, *counting)
    assert (found[1] == plain[1]).all()
    expected = plain[0].copy()
    expected[np.isin(rows, mine)] = units[np.isin(mine, rows)]
    assert (found[0] == expected).all()
    chunk = TextChunk.from_arrow(steps.string_array(texts))
    expected = chunk_digests(chunk)
    expected[mine] = digests
    assert (shingle.digests(TextChunk.from_arrow(steps.string_array(mixed))) == expected).all()
