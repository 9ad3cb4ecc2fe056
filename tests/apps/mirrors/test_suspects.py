"""Suspects of earlier crawls: looked at however little two hosts look alike, and refuted like any other pair."""

import pyarrow as pa
import pytest
from sites import site

from likewise import ColumnError, InputError, ParameterError, mirrors

FEW = [*site("a.org", 2), *site("b.net", 2), *site("c.com", 2, first=5)]


def clusters(found):
    return {
        tuple(sorted((row["id"], row["keeper"]))) for row in found.mirrors.to_pylist() if row["id"] != row["keeper"]
    }


def test_too_few_pages_to_be_found_but_suspected():
    assert clusters(mirrors(FEW)) == set()
    found = mirrors(FEW, suspects=[("b.net", "a.org"), ("a.org", "c.com"), ("a.org", "gone.org"), ("a.org", "a.org")])
    assert clusters(found) == {("a.org", "b.net")}, "c.com shares no path"
    counts = found.stats["counts"]
    assert (counts["suspects"], counts["suspects_listed"]) == (3, 2)
    row = found.pairs.to_pylist()[0]
    assert (row["id_a"], row["id_b"], row["shared_paths"], row["suspect"]) == ("a.org", "b.net", 2, True)
    assert row["similarity"] == 1.0


def test_similarity_below_the_threshold():
    """Hosts that share 6 of 26 pages each: similarity 6/46, but more than a tenth of their paths."""
    urls = [*site("a.org", 26), *site("b.net", 6), *site("b.net", 20, first=9)]
    assert clusters(mirrors(urls, threshold=0.5)) == set()
    found = mirrors(urls, threshold=0.5, suspects=[("a.org", "b.net")])
    assert clusters(found) == {("a.org", "b.net")}
    naive = mirrors(urls, threshold=0.01).pairs.to_pylist()
    row = found.pairs.to_pylist()[0]
    assert row["similarity"] == pytest.approx(naive[0]["similarity"])
    assert row["shared_paths"] >= 6


def test_texts_refute_suspects():
    pages = pa.table({"url": FEW, "text": [f"{i} " + " ".join(f"w{i}{j}" for j in range(20)) for i in range(len(FEW))]})
    assert clusters(mirrors(FEW, suspects=[("a.org", "b.net")], pages=pages)) == set()
    same = pages.set_column(1, "text", pa.array(["one two three four five six"] * len(FEW)))
    assert clusters(mirrors(FEW, suspects=[("a.org", "b.net")], pages=same)) == {("a.org", "b.net")}


def test_others_are_found_as_without_suspects():
    urls = [*site("a.org"), *site("b.net"), *site("c.com", 8, first=5), *site("d.com", 8, first=5)]
    plain = mirrors(urls)
    found = mirrors(urls, suspects=[("a.org", "c.com"), ("b.net", "a.org")])
    assert found.mirrors == plain.mirrors
    assert found.pairs.drop(["suspect"]) == plain.pairs
    assert found.pairs["suspect"].to_pylist() == [True, False]


def test_an_earlier_run_is_a_start(tmp_path, typed):
    mirrors([*site("a.org"), *site("b.net")]).save(tmp_path / "monday")
    for known in (tmp_path / "monday", str(tmp_path / "monday"), tmp_path / "monday/pairs.parquet"):
        assert clusters(mirrors(FEW, suspects=known)) == {("a.org", "b.net")}
    table = pa.table({"id_a": ["HTTP://A.org/x"], "id_b": ["b.net:80"]})
    assert clusters(mirrors(FEW, suspects=table)) == {("a.org", "b.net")}
    (tmp_path / "urls.txt").write_text("\n".join(FEW))
    done = typed("mirrors", "urls.txt", "--suspects", "monday", "--out", "tuesday")
    assert done.returncode == 0, done.stderr
    assert "a.org = b.net" in done.stdout + done.stderr
    assert "compared only with those they are suspected to mirror" in done.stdout + done.stderr


def test_wrong_suspects(tmp_path):
    with pytest.raises(ParameterError, match="'suspects' parameter of mirrors"):
        mirrors(FEW, suspects=[("a.org", "b.net", "c.com")])
    with pytest.raises(ParameterError, match="'suspects' parameter of mirrors"):
        mirrors(FEW, suspects=5)
    with pytest.raises(ColumnError, match="suspects need the columns id_a and id_b"):
        mirrors(FEW, suspects=pa.table({"x": ["a.org"], "y": ["b.net"]}))
    with pytest.raises(InputError, match="'a b' is not a host"):
        mirrors(FEW, suspects=[("a b", "b.net")])
