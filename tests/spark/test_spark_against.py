"""New documents against what earlier runs kept, made by either engine, beside the local engine."""

import pyarrow.parquet as pq
import pytest
from spark_corpora import documents, settled, table

import likewise
from likewise.errors import IncompatibleError
from likewise.spark import corpus, executor, meetings
from likewise.spark.context import is_connect


@pytest.mark.parametrize(
    ("days", "large"),
    [(2, False), (2, True), *(pytest.param(3, large, marks=pytest.mark.soak) for large in (False, True))],
    ids=str,
)
def test_days_one_after_another(spark, tmp_path, monkeypatch, days, large):
    """The first day is found by the local engine, the others on Spark; the second one reads small files first.

    large: candidates and rows with a duplicate stay on the cluster, and documents meet by themselves, those that are
    crowded in several blocks.
    """
    crowded, divide = [], meetings.CrowdedPlaces.of
    if large:
        monkeypatch.setattr(corpus, "LARGE", 0)
        monkeypatch.setattr(executor, "verify", None)
        for name, value in (("RATE", 1), ("MOST", 4), ("LEAST", 1)):
            monkeypatch.setattr(meetings, name, value)
        monkeypatch.setattr(meetings.CrowdedPlaces, "of", lambda *given: crowded.append(divide(*given)) or crowded[-1])
    texts = documents(600)
    hub = max(texts[200:380], key=len).split()
    texts[380:400] = [" ".join([*hub[:place], f"other{place}", *hub[place + 1 :]]) for place in range(0, 100, 5)]
    rows = [table(texts[:200]), table(texts[200:400], seed=6), table(texts[400:], seed=7)][:days]
    for number, day in enumerate(rows):
        (tmp_path / f"day{number}").mkdir()
        for part, (start, stop) in enumerate([(0, 5), (5, 150), (150, 200)]):
            pq.write_table(day.slice(start, stop - start), tmp_path / f"day{number}" / f"{part}.parquet")
    settings = {"threshold": 0.6, "bands": 30, "rows": 3, "keep": "max:score", "ignore_common": 0.2}
    local, mixed = [tmp_path / "local0"], [tmp_path / "local0"]
    likewise.dedup(tmp_path / "day0", out=local[0], **settings)
    for number in range(1, days):
        given = tmp_path / f"day{number}"
        here = likewise.dedup(given, out=tmp_path / f"local{number}", against=local, **settings)
        found = likewise.dedup(given, out=tmp_path / f"spark{number}", against=mixed, engine="spark", **settings)
        local.append(tmp_path / f"local{number}")
        mixed.append(tmp_path / f"spark{number}")
        for one in (here, found):
            one.stats["counts"].pop("set_aside")
        agree_but_for_folders(here, found)
        assert found.stats["counts"]["earlier"] > 100
        expected = [one.stats["details"].get("expected_recall") for one in (here, found)]
        assert expected[1] == pytest.approx(expected[0])
        if large:
            assert crowded[-1].blocks.max() > 1
            steps = found.stats["details"]["spark"]["steps"]
            assert is_connect(spark) or steps["meetings"]["shuffle_write_bytes"] > 0
    with pytest.raises(IncompatibleError, match="was made with threshold"):
        likewise.dedup(given, against=mixed, engine="spark", threshold=0.7)


def agree_but_for_folders(local, found):
    for name in ("pairs", "removed", "clusters", "kept"):
        one, other = settled(getattr(local, name)), settled(getattr(found, name))
        for row in (*one, *other):
            for column in ("a_in", "kept_in"):
                if row.get(column):
                    row[column] = row[column][-1]
        key = lambda row: sorted((k, str(v)) for k, v in row.items())  # noqa: E731
        assert sorted(one, key=key) == sorted(other, key=key), name
    assert local.stats["certificate"] == found.stats["certificate"]
    assert local.stats["method"] == found.stats["method"]
    for name, count in local.stats["counts"].items():
        assert found.stats["counts"][name] == count, name
