"""The lecture on similar pages: URLs as positional bigrams, and graph contraction."""

from likewise import Urls
from likewise.apps.mirrors import contract


def test_tokens_of_a_host():
    assert Urls().tokens("www6.infoseek.com") == ["www", "infoseek", "com"]


def test_positional_bigrams_of_a_path():
    assert Urls().shingles("/cellblock16/inmates/dilbert/personal/foo.htm") == [
        ("cellblock", "inmates", 0), ("inmates", "dilbert", 1), ("dilbert", "personal", 2), ("personal", "foo", 3),
    ]  # fmt: skip


def test_frequent_components_are_left_out():
    url = "HTTP://WWW.Example.com/cgi-bin/main/index.html?home=news.txt"
    assert Urls().tokens(url) == ["www", "example", "com", "news"]
    assert Urls(stop=["www", "com"]).tokens(url)[:3] == ["example", "cgi", "bin"]


def test_unifying_two_pages_makes_those_that_link_to_them_alike():
    """Links (u1, v1) and (u2, v2): when v1 and v2 become v, u1 and u2 are one, too."""
    u1, u2, v1, v2 = range(4)
    assert contract([u1, u2], [v1, v2], least=1).folded.tolist() == [0, 1, 2, 3]
    assert contract([u1, u2], [v1, v2], same=[-1, -1, 0, 0], least=1).folded.tolist() == [0, 0, 2, 2]
