"""Mirrors among hosts: by URLs, by content, and along links."""

import itertools
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sites import WORDS, site

from likewise import Urls
from likewise.apps.mirrors import contract, mirrors
from likewise.errors import ColumnError, FormatError, InputError, OutputError, ParameterError
from likewise.measures import jaccard


def groups(found):
    together = {}
    for row in found.mirrors.to_pylist():
        together.setdefault(row["keeper"], set()).add(row["id"])
    return together


def test_hosts_with_the_same_paths_are_mirrors():
    found = mirrors([*site("a.org"), *site("b.net"), *site("c.com", first=3), "http://a.org/extra/page.html"])
    assert groups(found) == {"a.org": {"a.org", "b.net"}}
    (row,) = found.pairs.to_pylist()
    assert (row["id_a"], row["id_b"], row["shared_paths"], row["pages_a"], row["pages_b"]) == (
        "a.org",
        "b.net",
        12,
        13,
        12,
    )
    assert (row["mirror"], row["compared"], row["confirmed"], row["top_a"], row["top_b"]) == (True, 0, None, "", "")
    assert found.pages is None


def test_similarity_is_that_of_the_sets_of_shingles():
    rng = random.Random(3)
    hosts = {f"{name}.org": rng.sample(site("x", 40), 25) for name in WORDS[:8]}
    urls = [url.replace("//x/", f"//{host}/") for host, pages in hosts.items() for url in pages]
    shingler = Urls(host=False, position="end")
    sets = {host: {one for url in pages for one in shingler.shingles(url)} for host, pages in hosts.items()}
    expected = {}
    for a, b in itertools.combinations(hosts, 2):
        shared = len({url.split("x/")[1] for url in hosts[a]} & {url.split("x/")[1] for url in hosts[b]})
        if jaccard(sets[a], sets[b]) >= 0.5 and shared >= 5:
            expected[a, b] = jaccard(sets[a], sets[b]), shared
    found = mirrors(urls, threshold=0.5, method="exact")
    got = {(row["id_a"], row["id_b"]): (row["similarity"], row["shared_paths"]) for row in found.pairs.to_pylist()}
    assert got == expected
    assert len(expected) > 3


@pytest.mark.parametrize(("top", "other"), [("/pub", ""), ("", "/mirror/of"), ("/pub", "/ftp/pub/x"), ("/a", "/b")])
def test_another_folder_on_top(top, other):
    """Positions from the end find it, those from the start do not; the pages fold."""
    urls = [*site("a.org", top=top), *site("b.net", top=other)]
    found = mirrors(urls, links=pa.table({"source": urls[:1], "target": urls[1:2]}))
    (row,) = found.pairs.to_pylist()
    assert (row["top_a"], row["top_b"], row["shared_paths"]) == (top, other, 12)
    assert {row["id"]: row["top"] for row in found.mirrors.to_pylist()} == {"a.org": top, "b.net": other}
    assert found.pages.to_pylist() == [
        {"id": theirs, "keeper": mine} for mine, theirs in zip(urls[:12], urls[12:], strict=True)
    ]
    assert mirrors(urls, position="start").pairs.num_rows == (top.count("/") == other.count("/"))


def test_hosts_with_a_page_or_two_are_not_mirrors():
    urls = [f"http://host{name}.org{path}" for name in WORDS for path in ("", "/index.html", "/robots.txt", "/42.htm")]
    found = mirrors(urls)
    assert found.stats["counts"]["hosts"] == len(WORDS)
    assert found.stats["counts"]["hosts_compared"] == 0
    assert found.mirrors.num_rows == 0
    assert mirrors(urls, least=1).stats["counts"]["clusters"] == 1, "robots.txt has a name, the others have none"


def test_no_chains():
    """b is like a and like c, which have nothing in common: the keeper is b, and a mirror of each."""
    pages = site("x", 60)
    urls = [url.replace("//x/", f"//{host}/") for host, part in
            (("a.org", pages[:40]), ("b.org", pages), ("c.org", pages[40:])) for url in part]  # fmt: skip
    found = mirrors(urls)
    pairs = {(row["id_a"], row["id_b"]) for row in found.pairs.to_pylist()}
    assert pairs == {("a.org", "b.org"), ("b.org", "c.org")}
    assert groups(found) == {"b.org": {"a.org", "b.org", "c.org"}}


def texts_of(urls, change=lambda i, text: text):
    """A text for each page that depends on its path only, or as `change` has it."""
    made = []
    for i, url in enumerate(urls):
        path = url.split("/", 3)[3]
        made.append(change(i, " ".join(random.Random(path).choices(WORDS, k=60))))
    return made


def test_content_confirms_and_refutes():
    mine, theirs, others = site("a.org"), site("b.net"), site("c.com")
    strange = texts_of(others, lambda i, text: text if i < 4 else " ".join(random.Random(i).choices(WORDS, k=60)))
    pages = pa.table({"url": mine + theirs + others, "text": texts_of(mine) + texts_of(theirs) + strange})
    found = mirrors(mine + theirs + others, pages=pages)
    rows = {(row["id_a"], row["id_b"]): row for row in found.pairs.to_pylist()}
    assert (rows["a.org", "b.net"]["compared"], rows["a.org", "b.net"]["confirmed"]) == (12, 1.0)
    assert rows["a.org", "c.com"]["confirmed"] == pytest.approx(4 / 12)
    assert not rows["a.org", "c.com"]["mirror"]
    assert groups(found) == {"a.org": {"a.org", "b.net"}}
    assert len(groups(mirrors(mine + theirs + others, pages=pages, confirmed=0.3))["a.org"]) == 3


def test_without_texts_in_common_urls_decide():
    mine, theirs = site("a.org"), site("b.net")
    pages = pa.table({"url": mine, "text": texts_of(mine)})
    (row,) = mirrors(mine + theirs, pages=pages).pairs.to_pylist()
    assert (row["compared"], row["confirmed"], row["mirror"]) == (0, None, True)
    empty = pa.table({"url": mine + theirs, "text": [""] * 24})
    (row,) = mirrors(mine + theirs, pages=empty).pairs.to_pylist()
    assert (row["compared"], row["mirror"]) == (0, True), "two pages without words say nothing"


def test_similar_texts_fold_pages_anywhere():
    urls = ["http://a.org/x/y.html", "http://b.net/other/place.html", "http://c.com/z.html"]
    text = " ".join(WORDS * 3)
    pages = pa.table({"url": [*urls, urls[0]], "text": [text, text + " omega", "nothing of the kind", "a second text"]})
    found = mirrors(urls, pages=pages, links=pa.table({"source": urls[:2], "target": urls[1:]}))
    assert found.pages.to_pylist() == [{"id": urls[1], "keeper": urls[0]}]


def test_a_site_folds_along_its_links():
    """Only the leaves have the same paths on both hosts; the pages above them fold level by level."""
    leaves = [site("a.org", 16), site("b.net", 16)]
    links = []
    for host, (name, mine) in enumerate(zip(("a.org", "b.net"), leaves, strict=True)):
        middle = [f"http://{name}/{'pq'[host]}/list{WORDS[i]}.html" for i in range(4)]
        links += [(middle[i], mine[4 * i + j]) for i in range(4) for j in range(4)]
        links += [(f"http://{name}/{'rs'[host]}/all.html", page) for page in middle]
    table = pa.table({"source": [a for a, _ in links], "target": [b for _, b in links]})
    found = mirrors(leaves[0] + leaves[1], links=table)
    told = [(one["by"], one["folded"]) for one in found.stats["details"]["rounds"]]
    assert told == [("given", 16), ("equal outlinks", 4), ("equal outlinks", 1)]
    folded = {row["id"]: row["keeper"] for row in found.pages.to_pylist()}
    assert folded["http://b.net/s/all.html"] == "http://a.org/r/all.html"
    assert len(folded) == found.stats["counts"]["folded"] == 21
    assert found.stats["counts"]["unlisted"] == 10


def test_one_page_by_many_names():
    """Scheme, port, capitals and user do not make another page; two schemes do, but they fold."""
    urls = [
        "http://a.org/x?y",
        "HTTP://A.ORG:80/x?y#z",
        "http://me:secret@a.org/x?y",
        "a.org/x?y",
        "https://a.org:443/x?y",
    ]
    found = mirrors(urls, links=pa.table({"source": urls[:1], "target": urls[4:]}))
    assert found.stats["counts"] | {"pages": 2, "hosts": 1, "repeated": 3} == found.stats["counts"]
    assert found.pages.to_pylist() == [{"id": "https://a.org/x?y", "keeper": "http://a.org/x?y"}]


def test_hosts_of_every_kind():
    hosts = ["[2001:DB8::1]", "192.168.0.1", "a.org:8080", "BÜCHER.example", "my_host.org"]
    found = mirrors([url for host in hosts for url in site(host)])
    names = ["[2001:db8::1]", "192.168.0.1", "a.org:8080", "xn--bcher-kva.example", "my_host.org"]
    assert groups(found) == {names[0]: set(names)}


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("nonsense", "it has no host"),
        ("mailto:me@a.org", "it has no host"),
        ("http:///path", "it has no host"),
        ("/only/a/path", "it has no host"),
        ("http://a b.org/", "a blank within"),
        ("http://[::zz]/", "not an IPv6 address"),
        ("http://a.org:99999/", "not a port"),
        ("http://999.1.1.1/", "nor an IPv4 address"),
        ("http://-a.org/", "not a host name"),
        ("javascript:void(0)", "it has no host"),
    ],
)
def test_bad_urls_are_named_or_counted(tmp_path, url, reason):
    file = tmp_path / "urls.txt"
    file.write_text("\n".join(["http://a.org/x", "", url, *site("b.org"), *site("c.org"), url]), encoding="utf-8")
    with pytest.raises(FormatError, match=rf"urls\.txt:3: .*{reason}.*on_error='skip'"):
        mirrors(file)
    found = mirrors(file, on_error="skip")
    assert [entry["row"] for entry in found.stats["set_aside"]] == [3, 28]
    assert reason in found.stats["set_aside"][0]["reason"]
    assert found.stats["counts"] | {"set_aside": 2, "blank": 1, "urls": 27, "pages": 25} == found.stats["counts"]


def test_bad_links_and_pages(tmp_path):
    urls = site("a.org")
    links = pa.table({"source": [urls[0], "mailto:x@y.org", urls[1]], "target": [urls[1], urls[2], ""]})
    pq.write_table(links, tmp_path / "links.parquet")
    with pytest.raises(FormatError, match=r"links\.parquet: row 1: 'mailto:x@y\.org'"):
        mirrors(urls, links=tmp_path / "links.parquet")
    found = mirrors(urls, links=tmp_path / "links.parquet", on_error="skip")
    assert [entry["row"] for entry in found.stats["set_aside"]] == [1, 2]
    assert found.stats["counts"]["different_links"] == 1
    pages = pa.table({"url": ["oops", *urls, urls[0]], "text": [None, *["a b c d e"] * 13]})
    found = mirrors(urls, links=pa.table({"source": urls, "target": urls}), pages=pages, on_error="skip")
    assert found.stats["counts"]["folded"] == 11, "all have the same text"
    with pytest.raises(ColumnError, match="no column 'source'"):
        mirrors(urls, links=pages)
    (tmp_path / "links.txt").write_text("http://a.org/ http://b.org/\n")
    with pytest.raises(InputError, match="a table with columns 'source' and 'target' is needed"):
        mirrors(urls, links=tmp_path / "links.txt")


@pytest.mark.parametrize(
    "words", [{"threshold": 0}, {"least": 0}, {"confirmed": 2}, {"position": "middle"}, {"stop": "html"}]
)
def test_wrong_parameters(words):
    with pytest.raises(ParameterError, match=next(iter(words))):
        mirrors(site("a.org"), **words)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("threshold", 0), ("recall", 1), ("method", "fast"), ("seed", -1), ("least", 0), ("position", "middle"),
        ("similar_text", 2), ("confirmed", 0), ("similar_links", 0), ("least_links", 0), ("template", 2),
        ("threads", 0), ("memory", "much"), ("on_error", "go"), ("encoding_errors", "go"),
    ],
)  # fmt: skip
def test_errors_name_the_function_that_was_called(name, value):
    with pytest.raises(ParameterError, match=f"The '{name}' parameter of mirrors must be"):
        mirrors(site("a.org"), **{name: value})


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ({"shingle": "words:5"}, "without 'pages'"),
        ({"similar_text": 0.5}, "without 'pages'"),
        ({"confirmed": 0.3}, "without 'pages'"),
        ({"text": "body"}, "without 'pages'"),
        ({"similar_links": 1}, "without 'links'"),
        ({"least_links": 1}, "without 'links'"),
        ({"template": 0.9}, "without 'links'"),
        ({"source": "from"}, "without 'links'"),
        ({"target": "to"}, "without 'links'"),
        ({"url": "address"}, "for text files and lists of URLs"),
    ],
)
def test_a_parameter_without_effect_is_an_error(words, why):
    (name,) = words
    with pytest.raises(ParameterError, match=f"The '{name}' parameter of mirrors has no effect {why}"):
        mirrors(site("a.org"), **words)


def test_contract_names_itself_and_refuses_what_has_no_effect():
    with pytest.raises(ParameterError, match="The 'common' parameter of contract must be"):
        contract([0], [1], common=0)
    with pytest.raises(ParameterError, match="The 'template' parameter of contract has no effect without 'host'"):
        contract([0], [1], template=0.9)


def test_the_vocabulary_of_columns():
    urls = [*site("a.org"), *site("b.net", 14)]
    found = mirrors(urls, links=pa.table({"source": urls[:1], "target": urls[1:2]}))
    assert found.mirrors.column_names == ["id", "cluster", "size", "keeper", "pages", "top"]
    assert found.mirrors.select(["id", "cluster", "size", "keeper"]).to_pylist() == [
        {"id": host, "cluster": "b.net", "size": 2, "keeper": "b.net"} for host in ("b.net", "a.org")
    ]
    assert found.pairs.column_names[:3] == ["id_a", "id_b", "similarity"]
    assert found.pages.column_names == ["id", "keeper"]
    assert found.stats["method"]["asked"] == "auto"
    assert repr(found) == "<Mirrors: 2 of 2 hosts in 1 cluster of mirrors, 12 pages folded>"


def test_nothing_at_all(tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    for nothing in ([], tmp_path / "empty.txt", pa.table({"url": pa.array([], pa.string())})):
        found = mirrors(
            nothing, links=pa.table({"source": pa.array([], pa.string()), "target": pa.array([], pa.string())})
        )
        assert (found.pairs.num_rows, found.mirrors.num_rows, found.pages.num_rows) == (0, 0, 0)
        assert "no URLs" in found.stats["notes"][0]


def test_threads_and_batches_do_not_matter(tmp_path):
    rng = random.Random(5)
    pages = site("x", 200)
    urls = [url.replace("//x/", f"//{host}.org/") for host in WORDS for url in rng.sample(pages, 120)]
    links = pa.table({"source": rng.choices(urls, k=4000), "target": rng.choices(urls, k=4000)})
    answers = [mirrors(urls, links=links, threads=threads, similar_links=0.3, least_links=1) for threads in (1, 2)]
    for name in ("mirrors", "pairs", "pages"):
        assert getattr(answers[0], name).equals(getattr(answers[1], name))
    assert answers[0].stats["details"]["rounds"] == answers[1].stats["details"]["rounds"]


def test_a_folder_of_another_command_is_left_alone(tmp_path):
    found = mirrors(site("a.org"))
    assert found.save(tmp_path / "out") == tmp_path / "out"
    assert json.loads((tmp_path / "out/run.json").read_text())["command"] == "mirrors"
    assert not (tmp_path / "out/pages.parquet").exists()
    (tmp_path / "out/run.json").write_text('{"likewise": "0", "command": "dedup"}')
    with pytest.raises(OutputError, match="result of likewise dedup"):
        found.save(tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"source": [0.5, 1]}, "'source'.*whole numbers, one per link"),
        ({"source": [-1, 1]}, "'source'.*Got -1"),
        ({"target": [1, -7]}, "'target'.*Got -7"),
        ({"target": [1, 2**40]}, "'target'.*Got 1099511627776"),
        ({"nodes": 2}, "'target'.*from 0 to 1. Got 2"),
        ({"nodes": 2.5}, "'nodes'.*Got 2.5"),
        ({"same": [0.5, 1, 2]}, "'same'.*whole numbers"),
        ({"host": [0, 1, -1]}, "'host'.*Got -1"),
        ({"source": 5}, "'source'"),
    ],
)
def test_contract_takes_whole_numbers(options, told):
    """They are neither cut off nor blamed on another argument."""
    with pytest.raises(ParameterError, match=told):
        contract(**{"source": [0, 1], "target": [1, 2], **options})
    assert contract([], []).folded.tolist() == []
    assert contract([0, 1], [1, 2], host=[10**15, 0, 1]).folded.tolist() == [0, 1, 2]


@pytest.mark.parametrize("stop", [5, [5], "abc", None])
def test_stop_components_are_a_list(stop):
    with pytest.raises(ParameterError, match=r"'stop' parameter of (mirrors|Urls) must be a list of components"):
        mirrors(["http://a.org/x", "http://b.org/x"], stop=stop)
