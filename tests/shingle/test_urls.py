"""URLs as documents of `dedup` and `pairs`: `shingle=Urls()` in Python, `--shingle urls` on the command line."""

import json
from itertools import combinations

import pytest

import likewise
import oracles
from likewise import ParameterError, Urls
from likewise.shingle import parse_shingler, shingler_of

HOSTS = ("www.debian.org", "ftp7.mirror.net", "a.example")
PATHS = ("/pub/debian/pool/main/x.html", "/pub/debian/pool/main/", "/debian/pool/main/x", "/", "/About-Us?id=12&q=cat")
ADDRESSES = [f"http://{host}{path}" for host in HOSTS for path in PATHS] + ["", "12345", "HTTP://WWW.DEBIAN.ORG/#x"]


def naive(shingler, threshold, urls=ADDRESSES):
    """Every pair by its shingles as text."""
    sets = [set(shingler.shingles(url)) for url in urls]
    found = [(i, j, oracles.jaccard(sets[i], sets[j])) for i, j in combinations(range(len(urls)), 2)]
    return [row for row in found if row[2] >= threshold and (sets[row[0]] or sets[row[1]])]


@pytest.mark.parametrize("method", [{"method": "exact"}, {"method": "lsh", "bands": 200, "rows": 2}])
@pytest.mark.parametrize("options", [{}, {"host": False, "position": "end"}, {"position": None, "bits": 32}])
def test_pairs_of_urls(method, options):
    found = likewise.pairs(ADDRESSES, shingle=Urls(**options), threshold=0.4, **method)
    rows = [(row["id_a"], row["id_b"], row["similarity"]) for row in found]
    empty = {i for i, url in enumerate(ADDRESSES) if not Urls(**options).shingles(url)}
    assert [row for row in rows if not empty.issuperset(row[:2])] == naive(Urls(**options), 0.4)
    assert {row for row in rows if empty.issuperset(row[:2])} == {
        (i, j, 1.0) for i, j in combinations(sorted(empty), 2)
    }


def test_common_shingles_can_be_left_out():
    urls = [f"http://www.site.com/{a}/{b}" for a, b in combinations("abcdefgh", 2)]
    with_all = likewise.pairs(urls, shingle="urls", threshold=0.3)
    without = likewise.pairs(urls, shingle="urls", threshold=0.3, ignore_common=0.9)
    assert len(with_all) == len(urls) * (len(urls) - 1) // 2 > len(without)
    ignored = without.stats["details"]["ignored"]["most_common"]
    assert {row["shingle"] for row in ignored} == {"www site 0", "site com 1"}


@pytest.mark.parametrize(
    ("spec", "shingler"),
    [
        ("urls", Urls()),
        ("urls,host=false,position=end", Urls(host=False, position="end")),
        ("urls,position=none,bits=32,bag=true", Urls(position=None, bits=32, bag=True)),
    ],
)
def test_specs(spec, shingler):
    assert parse_shingler(spec) == shingler
    assert shingler_of(json.loads(json.dumps(shingler.to_dict()))) == shingler


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("urls:3", "urls without a number"),
        ("urls,position=middle", "'start', 'end' or None"),
        ("urls,k=2", "the options of urls are"),
        ("url", "stopwords:LANGUAGE or urls"),
    ],
)
def test_what_is_wrong_is_said(spec, says):
    with pytest.raises(ParameterError, match=says):
        likewise.pairs(["a", "b"], shingle=spec)


def test_the_command_line_and_a_later_run(typed, tmp_path):
    """A text file holds one URL per line; kept URLs are compared with later ones in the same way."""
    (tmp_path / "urls.txt").write_text("\n".join(ADDRESSES[:5]) + "\n")
    (tmp_path / "more.csv").write_text("url,n\n" + f"{ADDRESSES[0]},1\nhttp://new.org/other/page,2\n")
    done = typed("pairs", "urls.txt", "--shingle", "urls", "--threshold", "0.5", "--out", "pairs.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    wanted = [(i, j, s) for i, j, s in naive(Urls(), 0.5) if j < 5]
    assert [(row["id_a"], row["id_b"], row["similarity"]) for row in rows] == wanted
    first = likewise.dedup(tmp_path / "urls.txt", shingle="urls", out=tmp_path / "first")
    assert first.stats["parameters"]["stop"] == list(Urls().stop)
    done = typed("dedup", "more.csv", "--text", "url", "--against", "first", "--out", "second", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["counts"]["removed"] == 1
