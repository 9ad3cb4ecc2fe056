"""Section 3.2 of the chapter: shingles."""

import string

import pytest

from likewise import Chars, StopWords, choose_k

# Exercises 3.2.1 and 3.2.2 are about this sentence, the first of Section 3.2.
FIRST_SENTENCE = (
    "The most effective way to represent documents as sets, for the purpose of identifying lexically similar "
    "documents is to construct from the document the set of short strings that appear within it."
)


def test_example_3_3_the_2_shingles_of_abcdabd():
    assert Chars(2).shingles("abcdabd") == ["ab", "bc", "cd", "da", "bd"]
    assert Chars(2).sets(["abcdabd"]).sizes.tolist() == [5]
    assert Chars(2, bag=True).sets(["abcdabd"]).sizes.tolist() == [6]  # the variation: ab counts twice


def test_white_space_is_collapsed_to_one_blank():
    assert Chars(3).shingles("a \t\n b") == Chars(3).shingles("a b") == ["a b"]


def test_example_3_4_touch_down_and_touchdown():
    landing, score = "The plane was ready for touch down", "The quarterback scored a touchdown"
    with_blanks = [set(Chars(9).shingles(text)) for text in (landing, score)]
    assert {"touch dow", "ouch down"} <= with_blanks[0]
    assert "touchdown" in with_blanks[1] - with_blanks[0]
    without = [set(Chars(9, whitespace="remove").shingles(text)) for text in (landing, score)]
    assert "touchdown" in without[0] & without[1]


def test_choosing_k_for_emails():
    assert 27**5 == 14_348_907  # letters and a blank: far more than an e-mail has characters
    # The rule of thumb of 20 letters: 3000 of 20**4 = 160,000 is not rare, 3000 of 20**5 = 3.2 million is.
    assert choose_k([3000]) == 5


def test_choosing_k_for_research_articles_needs_more_than_for_emails_and_9_is_safe():
    assert choose_k([50_000]) == 9
    assert 20**9 > 100 * 2**32  # "many more than 2**32 likely shingles", while 4-shingles are only:
    assert 20**4 == 160_000


def test_nine_characters_hash_to_four_bytes():
    sets = Chars(9, bits=32).sets(["a document of some length"])
    assert sets.values.dtype.itemsize == 4
    assert len(sets[0]) == 25 - 9 + 1


def test_example_3_5_stop_words_tell_an_article_from_an_advertisement():
    shingler = StopWords(words=["a", "for", "the", "that", "have", "it", "is", "to"], casefold=False)
    article = (
        "A spokesperson for the Sudzo Corporation revealed today that studies have shown it is good "
        "for people to buy Sudzo products."
    )
    assert shingler.shingles(article) == [
        "A spokesperson for",
        "for the Sudzo",
        "the Sudzo Corporation",
        "that studies have",
        "have shown it",
        "it is good",
        "is good for",
        "for people to",
        "to buy Sudzo",
    ]
    assert shingler.shingles("Buy Sudzo.") == []  # "none from the ad"
    assert shingler.members("Buy Sudzo.") == ["Buy Sudzo"]  # but the ad is not a copy of every other ad
    assert shingler.shingles(f"{article} Buy Sudzo.") == shingler.shingles(article)  # nothing added to an article


def test_exercise_3_2_1_first_ten_3_shingles():
    answer = ["The", "he ", "e m", " mo", "mos", "ost", "st ", "t e", " ef", "eff"]
    assert Chars(3).shingles(FIRST_SENTENCE)[:10] == answer


def test_exercise_3_2_2_words_of_three_or_fewer_letters_as_stop_words():
    """The last word, "it", is a stop word too, but no two words follow it."""
    assert StopWords(letters=3, casefold=False).shingles(FIRST_SENTENCE) == [
        "The most effective",
        "way to represent",
        "to represent documents",
        "as sets for",
        "for the purpose",
        "the purpose of",
        "of identifying lexically",
        "is to construct",
        "to construct from",
        "the document the",
        "the set of",
        "set of short",
        "of short strings",
    ]


@pytest.mark.parametrize(("k", "most"), [(1, 52), (2, 51), (5, 48), (9, 44), (51, 2), (52, 1)])
def test_exercise_3_2_3_a_document_of_n_characters_has_at_most_n_minus_k_plus_1_shingles(k, most):
    assert len(Chars(k).shingles(string.ascii_letters)) == most  # 52 different letters reach it
    assert len(Chars(k).shingles("ab" * 26)) == min(2, most)  # a repetitive document does not
