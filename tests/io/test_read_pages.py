"""HTML to text: what a reader sees, whatever the encoding and however broken."""

import gzip
import json
import time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.errors import LikewiseError, TextError
from likewise.io.read import ReadOptions, open_source
from likewise.io.read.pages import decode_page, page_text

PAGE = "<html><head><title> The  bridge </title></head><body><p>It is cl<b>os</b>ed.</p></body></html>"


@pytest.fixture(scope="module")
def parser():
    return pytest.importorskip("selectolax.lexbor", reason="pip install 'likewise[html]'")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é".encode(), "é"),
        (b"\xe9", "é"),
        (b"\x93quoted\x94", "“quoted”"),
        ("é".encode("utf-8-sig"), "é"),
        ("é".encode("utf-16"), "é"),
        (b"\xfe\xff" + "é".encode("utf-16-be"), "é"),
        (b'<meta charset="koi8-r">\xd0', '<meta charset="koi8-r">п'),
        (b"<META CHARSET=windows-1251>\xef", "<META CHARSET=windows-1251>п"),
        (
            b'<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">\x80',
            '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">€',
        ),
        (b'<?xml version="1.0" encoding="iso-8859-7"?>\xe1', '<?xml version="1.0" encoding="iso-8859-7"?>α'),
        (b"<meta charset=gb2312>\xd6\xd0", "<meta charset=gb2312>中"),
        (b"<meta charset=gbk>\x81\x30\x81\x30", "<meta charset=gbk>\x80"),
        (b"<meta charset=shift_jis>\x93\xfa", "<meta charset=shift_jis>日"),
        (b"<meta charset=utf-16>\xc3\xa9", "<meta charset=utf-16>é"),
        (b"<meta charset=nonsense>\xc3\xa9", "<meta charset=nonsense>é"),
        (b"<meta charset=rot13>\xe9", "<meta charset=rot13>é"),
        (b"<meta charset=ascii>\xc3\xa9", "<meta charset=ascii>Ã©"),
        (b"<meta charset=utf-8>\xe9", "<meta charset=utf-8>\ufffd"),
        (b"<meta charset=x-sjis>\x93\xfa\xfa\x40", "<meta charset=x-sjis>日ⅰ"),
        (b"<meta charset=iso-8859-9>\xfd\x80", "<meta charset=iso-8859-9>ı€"),
        (b"<meta charset=tis-620>\xa1", "<meta charset=tis-620>ก"),
        (b"<meta charset=x-mac-cyrillic>\x80", "<meta charset=x-mac-cyrillic>А"),
        (b"<meta charset=ks_c_5601-1987>\x81\x41", "<meta charset=ks_c_5601-1987>갂"),
        (b"<meta charset=big5>\xa4\xa4", "<meta charset=big5>中"),
        (b"<meta charset=x-user-defined>\x80", "<meta charset=x-user-defined>€"),
        (b"<meta charset=hz-gb-2312>~{VP~}", "<meta charset=hz-gb-2312>中"),
        (b"<meta charset=iso-2022-cn>\xe9", "<meta charset=iso-2022-cn>é"),
        (b"<meta charset=utf-7>\xc3\xa9", "<meta charset=utf-7>é"),
        (b"<meta charset=euc-jp>\xff\xc6\xfc", "<meta charset=euc-jp>\ufffd日"),
    ],
)
def test_encodings(data, text):
    assert decode_page(data) == text


@pytest.mark.parametrize(
    ("page", "words"),
    [
        (PAGE, "The bridge | It is closed."),
        ("<ul><li>Home<li>News</ul><td>a</td><td>b</td>x<br>y", " | Home News a b x y"),
        ("<P>w<B>or</B>d <SPAN class=x>on</SPAN>e</P>", " | word one"),
        ("A &amp; B &lt;c&gt; &eacute;", " | A & B <c> é"),
        ("<script>the</script><style>a{}</style>x<template>no</template><noscript>js</noscript><!-- c -->", " | x"),
        ("<svg><title>icon</title></svg>x", " | x"),
        ("", " | "),
        ("plain words", " | plain words"),
        ("<p>open <b>never closed", " | open never closed"),
        ("</p></div><<p x", " | <"),
        ("1 < 2 and 3 > 2", " | 1 < 2 and 3 > 2"),
        ("<frameset><frame>", " | "),
    ],
)
def test_texts(parser, page, words):
    title, _, body = page_text(page).partition("\n")
    assert f"{title} | {' '.join(body.split())}" == words


HOSTILE = {
    "attributes": "<div " + " ".join(f"a{i}=1" for i in range(200_000)) + ">end",
    "tags with attributes": ("<div " + " ".join(f"a{i}" for i in range(1_000)) + ">") * 500 + "end",
    "depth": "<div>" * 50_000 + "end",
    "depth below the limit": "<div>" * 9_000 + "end",
    "depth that end tags of nothing hide": "<div></zz>" * 50_000 + "end",
    "depth that end tags without effect hide": "<div><marquee></div></marquee><span><div></span>" * 20_000 + "end",
    "end tags that search far": "<custom>" * 1_000 + "</zz>" * 300_000 + "end",
    "formatting repeated in every paragraph": "".join(f"<b a={i}>" for i in range(999)) + "<p>x" * 200_000 + "end",
    "closed again and again": "<p>" + "".join(f"<i a={i}>" for i in range(99)) + "</p><p>x" * 100_000 + "end",
    "tables": "<table><tr><td>" * 50_000 + "end",
    "tables and what is moved out of them": "<table><div>" * 20_000 + "end",
    "less-than signs": "<" * 300_000 + "end",
    "comments": "<!--" * 300_000 + "end",
    "scripts": "<script>" * 300_000 + "end",
    "end tags in a script": "<script>" + "</s" * 300_000 + "end",
    "quotes": '<a b="' * 200_000 + "end",
    "entities": "&amp;" * 300_000 + "&#" * 100_000 + "end",
    "paragraphs": "<p>x" * 400_000 + "end",
    "graphics": "<svg>" * 100_000 + "<path/>" * 100_000 + "end",
    "graphics, left by a trick": "<svg><foreignObject><div></svg></div></foreignObject><title>" + "<div>" * 99_999,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_page_takes_long(parser, kind):
    """The first did not end within 100 seconds, the eighth filled all memory."""
    page_text("<p>x")  # compiled
    begun = time.process_time()
    assert page_text(HOSTILE[kind]).count("end") <= 1
    assert time.process_time() - begun < 2


NAMES = "p div span b i a ul li table tr td th script style title noscript object template h1 form section br img "
NAMES += "textarea select option button dd dl custom-tag iframe caption pre code font head body html center hr"


def plainly(parser, page):
    """Return the text of a page as the parser alone finds it."""
    tree = parser.LexborHTMLParser(page)
    tree.strip_tags(["script", "style", "template", "noscript", "iframe", "svg", "object"])
    title = tree.css_first("title")
    return (title.text() if title is not None else "") + (tree.body.text() if tree.body is not None else "")


@given(
    st.lists(
        st.one_of(
            st.builds(
                "<{}{}>".format,
                st.sampled_from(NAMES.split()),
                st.sampled_from(["", " x=1", ' y="<b>"', " z='>' ", "/"]),
            ),
            st.sampled_from(NAMES.replace("br ", "").split()).map("</{}>".format),
            st.sampled_from(
                ["<!-- c -->", "<!-->", "<?x>", "</ >", "<", "&amp;", "&lt;p&gt;", "<!doctype html>", "<!--x"]
            ),
            st.sampled_from(["one ", "two", "three "]),
        ),
        max_size=14,
    ).map("".join)
)
def test_what_is_removed_before_parsing_changes_no_text(parser, page):
    assert "".join(page_text(page).split()) == "".join(plainly(parser, page).split())


def test_deeply_nested_text_is_there(parser):
    page = "<div>" * 20_000 + "caf&eacute; <script>if (a<b) the</script> deep"
    assert page_text(page).split() == ["café", "deep"]


def test_files(parser, tmp_path):
    (tmp_path / "a.html").write_bytes(b"<meta charset=windows-1251><title>\xef</title>\xe4\xe0")
    (tmp_path / "b.htm.gz").write_bytes(gzip.compress(PAGE.encode()))
    (tmp_path / "c.html").write_bytes("<p>zwölf".encode("utf-16"))
    (tmp_path / "d.html").write_bytes(b"")
    batch = next(open_source(tmp_path, ReadOptions(html=True)).batches())
    assert [" ".join(text.split()) for text in batch["text"].to_pylist()] == [
        "п да", "The bridge It is closed.", "zwölf", "",
    ]  # fmt: skip
    (tmp_path / "e.html").write_bytes(b"\x1f\x8b\0\0")
    with pytest.raises(TextError, match=r"e\.html: there are NUL bytes"):
        list(open_source(tmp_path, ReadOptions(html=True)).batches())


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet", "list", "bytes"])
def test_columns(parser, tmp_path, kind):
    pages = [PAGE, "<p>second"]
    source = tmp_path / f"pages.{kind}"
    if kind == "jsonl":
        source.write_text("".join(json.dumps({"page": page}) + "\n" for page in pages))
    elif kind == "csv":
        source.write_text("page\n" + "\n".join(pages) + "\n")
    elif kind == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"page": pages}), source)
    elif kind == "list":
        source = pages
    else:
        source = pa.table({"page": [PAGE.encode(), b"<meta charset=latin1><p>second"]})
    found = open_source(source, ReadOptions(text="page", html=True))
    texts = [text for batch in found.batches() for text in batch["text"].to_pylist()]
    assert [" ".join(text.split()) for text in texts] == ["The bridge It is closed.", "second"]


def test_what_is_kept_is_the_page_itself(parser, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.html").write_text(PAGE + f"<!-- {name} -->")
    result = likewise.dedup(tmp_path, html=True, out=tmp_path / "out")
    assert result.stats["counts"]["removed"] == 1
    assert (tmp_path / "out/kept/a.html").read_text() == PAGE + "<!-- a -->"


def test_a_missing_parser_is_named(monkeypatch):
    monkeypatch.setattr("likewise.base.extras.find_spec", lambda name: None)
    with pytest.raises(LikewiseError, match=r"pip install 'likewise\[html\]'"):
        open_source(["<p>x"], ReadOptions(html=True))
