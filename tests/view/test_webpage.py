"""Pages of HTML: whatever the text, it stays text."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from likewise.base.words import visible
from likewise.view.webpage import page, paragraph, section, side_by_side, table

WILD = st.text(st.characters(codec=None, exclude_categories=()), max_size=40) | st.sampled_from(
    ["<script>", "</pre>", "</style>", "&amp;", '"><img src=x>', "\ud800", "\x00", "\u202e"]
)


class Reader(HTMLParser):
    def __init__(self, whole: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data: list[str] = []
        self.feed(whole)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.data.append(data)


@given(WILD, WILD, WILD)
def test_text_stays_text(a: str, b: str, c: str) -> None:
    marks = [(0, len(b) // 2)], [(len(c) // 2, len(c))]
    parts = [paragraph(a, b), section(b, table((a, b), [(b, c)], a)), side_by_side((a, b), (b, c), marks)]
    plain = [
        paragraph("", ""),
        section("", table(("", ""), [("", "")], "")),
        side_by_side(("", ""), ("", ""), ([], [])),
    ]
    whole = page(a, *parts)
    whole.encode()
    told, empty = Reader(whole), Reader(page("", *plain))
    without = [tag for tag in told.tags if tag not in ("mark", "caption")]
    assert without == [tag for tag in empty.tags if tag != "caption"]
    assert visible(b) in "".join(told.data)


def test_marks_that_overlap_are_merged() -> None:
    shown = side_by_side(("a", "b"), ("abcdef", ""), ([(3, 5), (0, 4)], []), "same")
    assert '<mark class="same">abcd</mark><mark class="same">e</mark>f' in shown


def test_numbers_are_aligned() -> None:
    assert 'class="number"' in table((), [("a", "1,000"), ("b", "−0.5 %")])
    assert 'class="number"' not in table((), [("a", "1,000"), ("b", "none")])
