"""The oracle itself, by examples that can be checked by eye."""

import naive_units as naive
import pytest


@pytest.mark.parametrize(
    ("unit", "text", "gone", "left"),
    [
        ("lines", "a\nb\nc\n", {1}, "a\nc\n"),
        ("lines", "a\nb\nc", {2}, "a\nb"),
        ("lines", "a\r\nb\r\nc", {1, 2}, "a"),
        ("lines", "a\n\nb\nc\n", {2}, "a\n\nc\n"),
        ("paragraphs", "a\nb\n\nc\n\n\nd", {1}, "a\nb\n\nd"),
        ("paragraphs", "a\n\nb\n \n\nc\n", {2}, "a\n\nb\n"),
        ("paragraphs", "\n a\n\nb\n\nc\n\n", {1, 2}, "\n a\n\n"),
        ("paragraphs", "a\n\nb", {0}, "b"),
    ],
)
def test_what_is_left_reads_well(unit, text, gone, left):
    assert naive.without(text, getattr(naive, unit)(text), gone) == left
