"""Two texts side by side: nothing is lost, changed words are marked, and everything fits."""

import random

from hypothesis import given
from hypothesis import strategies as st

from likewise.report.comparison import ComparedTexts, escaped_size, within
from likewise.report.words import is_blank, visible

WORD = st.text(st.characters(codec="utf-8"), max_size=40) | st.text(st.sampled_from("aAb, 中é\n"), max_size=80)


def joined(pieces):
    return "".join(text for _, text in pieces)


def test_changed_words_are_marked():
    shown = ComparedTexts("the quick brown fox jumps, twice", "the slow brown fox jumps").shown(1000)
    assert [text for kind, text in shown.left if kind == "changed"] == ["quick", ", twice"]
    assert [text for kind, text in shown.right if kind == "changed"] == ["slow"]
    assert joined(shown.left) == "the quick brown fox jumps, twice"
    assert not shown.cut


def test_a_script_without_blanks_is_compared_by_character():
    shown = ComparedTexts("我们在春天看花", "我们在秋天看花").shown(1000)
    assert [text for kind, text in shown.left if kind == "changed"] == ["春"]
    assert [text for kind, text in shown.right if kind == "changed"] == ["秋"]


def test_long_equal_stretches_are_folded():
    words = [f"w{i}" for i in range(3000)]
    other = [*words[:1500], "inserted", *words[1500:]]
    shown = ComparedTexts(" ".join(words), " ".join(other)).shown(5000)
    assert [kind for kind, _ in shown.right] == ["same", "folded", "same", "changed", "same", "same", "folded", "same"]
    assert "inserted" in joined(shown.right)
    assert not shown.cut


@given(WORD, WORD)
def test_no_word_is_lost(left, right):
    shown = ComparedTexts(left, right).shown(10_000)
    squeezed = "".join(left.split())
    assert "".join(joined(shown.left).split()) == squeezed
    if not shown.equal:
        assert "".join(joined(shown.right).split()) == "".join(right.split())
        same = ["".join(text for kind, text in side if kind == "same").split() for side in (shown.left, shown.right)]
        assert "".join(same[0]) == "".join(same[1])


def test_equal_texts_are_shown_once():
    shown = ComparedTexts("same text", "same text").shown(1000)
    assert shown.equal
    assert shown.right == []


def test_all_comparisons_fit():
    chance = random.Random(2)
    made = [
        ComparedTexts(" ".join(chance.choices("<&ab", k=3000)), " ".join(chance.choices(["é", "<", "x"], k=3000)))
        for _ in range(5)
    ]
    whole = sum(one.shown(6000).size for one in made)
    shown = within(made, 25_000, 6000)
    assert sum(one.size for one in shown) <= 25_000 < whole
    assert all(one.cut and len(joined(one.left)) > 100 for one in shown)


def test_a_text_of_ten_megabytes():
    text = "word " * 2_000_000
    shown = ComparedTexts(text[:60_000], text[:50_000] + "other", cut=True).shown(6000)
    assert shown.cut
    assert shown.size < 20_000


def test_what_is_not_seen_is_shown_by_a_sign():
    assert visible("a\0b\x1b\r\n\t\x7f\u202e\ud800\u2066z") == "a␀b␛\n\t␡���z"
    assert is_blank(" \n\u200b\x00")
    assert not is_blank(" . ")


def test_the_size_counts_what_escaping_adds():
    assert escaped_size("<é>") >= len("&lt;é&gt;".encode())
