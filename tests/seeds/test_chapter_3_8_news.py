"""MMDS §3.2.4 and §3.8.6: shingles that begin with a stop word, and pages of news."""

import random

import pytest

from likewise import Chars, StopWords
from likewise.measures import jaccard

ARTICLE = (
    "A spokesperson for the Sudzo Corporation revealed today that studies have shown it is good for people to buy "
    "Sudzo products."
)
FIRST_SENTENCE = (
    "The most effective way to represent documents as sets, for the purpose of identifying lexically similar "
    "documents is to construct from the document the set of short strings that appear within it."
)


def test_example_3_5_nine_shingles_from_the_sentence_and_none_from_the_advertisement():
    shingles = StopWords("en").shingles(ARTICLE)
    assert shingles[:3] == ["a spokesperson for", "for the sudzo", "the sudzo corporation"]
    assert len(shingles) == 9
    assert StopWords("en").shingles(f"Buy Sudzo. {ARTICLE}") == shingles
    assert StopWords("en").sets([ARTICLE, f"Buy Sudzo. {ARTICLE}"]).sizes.tolist() == [9, 9]


def test_example_3_23_five_shingles_the_last_with_whatever_word_follows():
    sentence = "I recommend that you buy Sudzo for your laundry."
    four = ["i recommend that", "that you buy", "you buy sudzo", "for your laundry"]
    assert StopWords("en").shingles(sentence) == four
    assert StopWords("en").shingles(f"{sentence} Xyzzy") == [*four, "your laundry xyzzy"]


def test_exercise_3_2_2_words_of_three_or_fewer_letters():
    assert StopWords(letters=3).shingles(FIRST_SENTENCE) == [
        "the most effective", "way to represent", "to represent documents", "as sets for", "for the purpose",
        "the purpose of", "of identifying lexically", "is to construct", "to construct from", "the document the",
        "the set of", "set of short", "of short strings",
    ]  # fmt: skip


BLOCKS, LETTERS = 20, 6


def words(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("bcdfghjklmnpqrstvwxz", k=LETTERS)) for _ in range(count)]


def prose(seed: int) -> str:
    """Three words in nine are stop words."""
    names = iter(words(seed, 6 * BLOCKS))
    return " ".join(f"the {next(names)} {next(names)}" for _ in range(3 * BLOCKS))


def furniture(seed: int) -> str:
    """One word in nine is a stop word."""
    names = iter(words(seed, 8 * BLOCKS))
    return " ".join(" ".join(["the", *(next(names) for _ in range(8))]) for _ in range(BLOCKS))


PAGES = {
    "one": prose(1) + " " + furniture(2),
    "same news": prose(1) + " " + furniture(3),
    "same furniture": prose(4) + " " + furniture(2),
}


@pytest.mark.parametrize(
    ("other", "shared", "similarity"), [("same news", 3 / 4, 3 / 5), ("same furniture", 1 / 4, 1 / 7)]
)
def test_half_news_half_furniture_shares_75_or_25_percent_of_its_stop_word_shingles(other, shared, similarity):
    """Three quarters of the shingles shared is a Jaccard similarity of 3/5, a quarter is 1/7.

    The book gives 75 % and 25 % and calls the first a Jaccard similarity; both are right as shares of the shingles
    of a page, of which prose has three times as many.
    """
    a, b = (set(StopWords("en").shingles(PAGES[name])) for name in ("one", other))
    assert len(a) == len(b) == 4 * BLOCKS
    assert len(a & b) / len(a) == shared
    assert jaccard(a, b) == similarity


def test_a_jaccard_similarity_of_75_percent_needs_six_times_as_many_shingles_in_the_news():
    news, rest = {f"n{i}" for i in range(6)}, [{"a"}, {"b"}]
    assert jaccard(news | rest[0], news | rest[1]) == 3 / 4
    other = {f"m{i}" for i in range(6)}
    assert jaccard(news | rest[0], other | rest[0]) == 1 / 13


@pytest.mark.parametrize("which", ["news", "furniture"])
def test_ten_characters_share_half_whichever_half_is_the_same_a_similarity_of_one_third(which):
    """Between halves of h characters lie 10 shingles that belong to both: h may be off by as many."""
    length = len(prose(1))
    halves = (prose(1), furniture(2)[:length]) if which == "news" else (prose(4), furniture(2)[:length])
    a = set(Chars(10).shingles(prose(1) + " " + furniture(2)[:length]))
    b = set(Chars(10).shingles(halves[0] + " " + (furniture(3)[:length] if which == "news" else halves[1])))
    assert len(a) == len(b) == 2 * length + 1 - 9, "no shingle occurs twice"
    assert (length - 10) / (3 * length + 30) <= jaccard(a, b) <= (length + 10) / (3 * length - 30)
