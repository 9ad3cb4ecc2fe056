"""`likewise mirrors` as a user types it."""

import csv
import gzip
import json

import pyarrow.parquet as pq
import pytest
from sites import site


@pytest.fixture
def run(typed, tmp_path):
    urls = [*site("a.org"), *site("b.net"), *site("c.com", first=2), "http://tiny.org/", "http://tiny.net/"]
    (tmp_path / "urls.txt").write_text("\n".join(urls) + "\n")
    (tmp_path / "urls.txt.gz").write_bytes(gzip.compress("\n".join(urls).encode()))
    with open(tmp_path / "links.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "target"])
        for host in ("a.org", "b.net"):
            writer.writerows((f"http://{host}/{host[0]}/all.html", url) for url in site(host))
    with open(tmp_path / "pages.tsv", "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["address", "body"])
        writer.writerows((url, "one two three four five six " + url.split("/", 3)[3]) for url in urls)
    return typed


def test_mirrors(run, tmp_path):
    done = run("mirrors", "urls.txt", "--out", "found")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:5] == [
        "38 URLs; 38 pages of 5 hosts",
        "not compared: 2 hosts with fewer than 5 named pages",
        "1 pair of hosts with similar URLs",
        "2 hosts in 1 cluster of mirrors",
        "  a.org = b.net",
    ]
    assert sorted(path.name for path in (tmp_path / "found").iterdir()) == [
        "mirrors.parquet",
        "pairs.parquet",
        "report.html",
        "run.json",
    ]


def test_links_and_pages(run, tmp_path):
    words = ["--pages", "pages.tsv", "--text", "body", "--links", "links.csv", "--out", "found"]
    done = run("mirrors", "pages.tsv", "--url", "address", *words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "1 pair of hosts with similar URLs; 1 left after comparing 12 pairs of pages" in lines
    assert "24 links among 40 pages, 2 of them not listed" in lines
    assert "  round 1: 1 folded (equal outlinks)" in lines
    rows = pq.read_table(tmp_path / "found/pages.parquet").to_pylist()
    assert {"id": "http://b.net/b/all.html", "keeper": "http://a.org/a/all.html"} in rows
    assert run("mirrors", "urls.txt", "--out", "found").returncode == 0
    assert not (tmp_path / "found/pages.parquet").exists(), "an answer of an earlier run does not stay"


def test_json_and_compressed(run):
    done = run("mirrors", "urls.txt.gz", "--out", "found", "--json", "--position", "none", "--stop", "html,htm")
    stats = json.loads(done.stdout)
    assert (stats["command"], stats["counts"]["mirrors"]) == ("mirrors", 2)
    assert stats["parameters"]["position"] is None
    assert stats["parameters"]["stop"] == ["html", "htm"]
    assert json.loads(done.stderr.splitlines()[0])["stage"] == "read"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["missing.txt"], 1, "missing.txt: there is no such file"),
        (["links.csv"], 1, "no column 'url'; the columns are: source, target"),
        (["urls.txt", "--links", "urls.txt"], 1, "a table with columns 'source' and 'target' is needed"),
        (["urls.txt", "--links", "links.csv", "--target", "to"], 1, "no column 'to'"),
        (["urls.txt", "--threshold", "0"], 2, "threshold"),
        (["urls.txt", "--stop", "a1"], 2, "components of letters only"),
        (["bad.txt"], 1, "bad.txt:2: 'oh no' is not the URL of a page"),
    ],
)
def test_errors_are_one_line(run, tmp_path, words, code, message):
    (tmp_path / "bad.txt").write_text("http://a.org/\noh no\n")
    done = run("mirrors", *words, "--out", "found")
    assert done.returncode == code
    assert message in done.stderr
    assert len([line for line in done.stderr.splitlines() if "compiling" not in line]) == 1
    assert not (tmp_path / "found").exists()


def test_set_aside(run, tmp_path):
    (tmp_path / "bad.txt").write_text("http://a.org/\noh no\n\n")
    done = run("mirrors", "bad.txt", "--out", "found", "--on-error", "skip")
    assert "1 row set aside as broken" in done.stdout
    assert "bad.txt, row 2: 'oh no': there is a blank within the URL" in done.stderr


def test_an_input_is_not_replaced(run, tmp_path):
    assert run("mirrors", "urls.txt", "--links", "links.csv", "--out", "found").returncode == 0
    done = run("mirrors", "found/pages.parquet", "--out", "found")
    assert done.returncode == 1
    assert "would replace its own input" in done.stderr


def test_a_long_cascade_is_abridged():
    from likewise.cli.mirrors import rounds

    lines = rounds(
        [{"by": "given", "folded": 7, "looked": 9}] + [{"by": "equal outlinks", "folded": 2, "looked": 2}] * 20
    )
    assert lines[0] == "  round 0: 7 folded (same path on mirrors, or similar texts)"
    assert lines[6] == "  rounds 6 to 18: 26 folded"
    assert lines[-1] == "  round 20: 2 folded (equal outlinks)"
    assert len(lines) == 9
