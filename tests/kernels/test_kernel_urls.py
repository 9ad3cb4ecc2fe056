"""URLs in one form, numbers of strings, and positional bigrams, against plain Python."""

import string

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise import Urls
from likewise.apps.mirrors.addresses import BadUrl, NumberedStrings, Pages, canonical

PIECES = [
    "http://",
    "HTTPS://",
    "ftp://",
    "//",
    "a.org",
    "B.Net",
    "xn--p1ai.example",
    "-x.org",
    "host",
    "1.2.3.4",
    "[::1]",
]
PIECES += [
    ":80",
    ":443",
    ":8080",
    "user@",
    "/",
    "/a/b.html",
    "/x/../y",
    "/.",
    "?q=1&r=%41",
    "%C3%A9",
    "%zz",
    "é",
    "#top",
    " ",
]
PIECES += ["\t", "mailto:", "/A//b", "..", "index.htm", "{", "|", "\\"]
MADE = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
LIKELY = st.builds(
    "{}{}/{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", ""]),
    st.sampled_from(["a.org", "WWW.b.net", "c.example", "host", "a-b.org", "a-.org", "x..y"]),
    st.text(string.ascii_letters + string.digits + "/._-?=&~#", max_size=20),
)


def expected(text):
    try:
        return canonical(text)
    except BadUrl:
        return None


@given(st.lists(MADE | LIKELY, max_size=12))
@example(
    [
        "http://a.org",
        "http://a.org?x",
        "a.org",
        "a",
        "http://a.org/x#y",
        "http://" + "a" * 64 + ".org/",
        "http://a.org/%",
        "a.org#top http://",
    ]
)
@example(["a.org#top http://", "a.org/b#x\x7f", "a.org/b#x\u3000y", "a.org/b#é"])
def test_the_form_of_urls_is_that_of_plain_python(texts):
    pages = Pages()
    numbers, bad = pages.add(pa.array(texts, pa.string()))
    for row, (text, number) in enumerate(zip(texts, numbers.tolist(), strict=True)):
        if not text.strip():
            assert number == -2
        elif number < 0:
            assert expected(text) is None
            assert row in bad
        else:
            url = pages.urls.text(number)
            assert url == expected(text)
            host = url.split("/")[2]
            assert pages.hosts.text(int(pages.host[number])) == host
            assert url[int(pages.path[number] - pages.urls.offsets[number]) :].startswith("/")


@given(MADE | LIKELY)
def test_the_form_is_its_own_form(text):
    url = expected(text)
    assert url is None or canonical(url) == url


@given(st.lists(st.lists(st.binary(max_size=4), max_size=30), max_size=5))
def test_strings_are_numbered_in_the_order_in_which_they_come(batches):
    strings, known = NumberedStrings(), {}
    for batch in batches:
        ends = np.cumsum([0, *map(len, batch)])
        data = np.frombuffer(b"".join(batch), np.uint8)
        numbers = strings.number(data, ends[:-1].astype(np.int64), ends[1:].astype(np.int64))
        assert numbers.tolist() == [known.setdefault(one, len(known)) for one in batch]
    assert len(strings) == len(known)
    held = [
        strings.data[a:b].tobytes()
        for a, b in zip(strings.offsets, strings.offsets[1 : len(strings) + 1], strict=False)
    ]
    assert held == list(known)


def test_many_strings_need_more_room():
    strings = NumberedStrings()
    texts = [f"http://host{i % 97}.org/{i}".encode() for i in range(3000)]
    ends = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts), np.uint8)
    for first in (0, 1000, 500):
        part = slice(first, first + 2000)
        numbers = strings.number(data, ends[:-1][part].copy(), ends[1:][part].copy())
        assert numbers.tolist() == list(range(first, first + 2000))
    assert strings.text(2999) == "http://host89.org/2999"


URL_TEXT = st.text(st.sampled_from("aBc/.:-_@?#%4129é html"), max_size=40) | MADE


@pytest.mark.parametrize("position", ["start", "end", None])
@pytest.mark.parametrize("host", [True, False])
@given(urls=st.lists(URL_TEXT, min_size=1, max_size=6))
def test_hashed_shingles_are_those_in_words(position, host, urls):
    """As many as there are different ones, and shared by two URLs if and only if the shingles are."""
    shingler = Urls(host=host, position=position, stop=("html", "b"))
    sets = [set(values.tolist()) for values in shingler.sets(urls)]
    words = [set(shingler.shingles(url)) for url in urls]
    for i in range(len(urls)):
        for j in range(i, len(urls)):
            assert len(sets[i] & sets[j]) == len(words[i] & words[j])


def test_bits_and_bags():
    url = "/a/b/a/b"
    assert Urls(position=None).sets([url]).sizes.tolist() == [2]
    assert Urls(position=None, bag=True).sets([url]).sizes.tolist() == [3]
    narrow, wide = Urls(bits=32).sets([url]), Urls().sets([url])
    assert narrow.values.dtype == np.uint32
    assert narrow.values.tolist() == [value >> 32 for value in wide.values.tolist()]


def test_a_very_long_url():
    """Only so many tokens count; the kernel and plain Python agree on how many."""
    long = "/" + "/".join("abcdefghij"[i % 10] * (i // 10 + 1) for i in range(400))
    for position in ("start", "end"):
        shingler = Urls(position=position)
        assert len(shingler.shingles(long)) == 255
        assert shingler.sets([long, "/x/y"]).sizes.tolist() == [255, 1]
