"""`explain`: two documents, what they share, and how it is drawn."""

import inspect
import io
import json

import pytest
from rich.console import Console

import likewise
from likewise.apps.passages import explain, passages
from likewise.apps.passages.index import SHINGLE

A = "First of all: the quick brown fox jumps over the lazy dog near the river bank. Café 中文 😀 done."
B = "The quick brown fox leaps over the lazy dog near the river bank, they say."


def test_places_and_changed_words():
    told = explain(A, B)
    (one,) = told.passages
    assert A[one.a_start : one.a_end] == "the quick brown fox jumps over the lazy dog near the river bank"
    assert B[one.b_start : one.b_end] == "The quick brown fox leaps over the lazy dog near the river bank"
    assert [A[start:end] for start, end in one.a_changed] == ["jumps"]
    assert [B[start:end] for start, end in one.b_changed] == ["leaps"]
    assert one.equal == 12


def test_explain_says_what_passages_says():
    told, found = explain(A, B, shingle=SHINGLE), passages([A], [B], threads=1)
    row, document = found.passages.to_pylist()[0], found.documents.to_pylist()[0]
    one = told.passages[0]
    assert (one.a_start, one.a_end, one.b_start, one.b_end, one.equal) == (
        row["suspect_start"], row["suspect_end"], row["source_start"], row["source_end"], row["equal"],
    )  # fmt: skip
    measured = [document[name] for name in ("containment", "source_containment", "jaccard")]
    assert [told.containment, told.containment_of_b, told.jaccard] == measured
    assert explain(A, B).passages == told.passages  # passages are runs of words, whatever the shingles


def test_explain_says_what_dedup_says():
    """By default they shingle alike and have the same threshold: n1 and n3 of the tutorial are no pair for either."""
    texts = [
        f"Our library opens at nine in the morning and closes at {hour} in the evening, except on Sundays, when it is "
        "closed all day." for hour in ("six", "seven")
    ]  # fmt: skip
    told = explain(*texts)
    assert likewise.dedup(texts).removed.num_rows == 0
    assert told.reason.to_dict()["threshold"] == 0.8
    assert [row["similarity"] for row in likewise.pairs(texts, threshold=0.5)] == [told.jaccard] == [0.6]
    assert "not similar; jaccard similarity 0.6000, below the threshold 0.8" in str(told.reason)
    defaults = [inspect.signature(function).parameters for function in (explain, likewise.dedup)]
    for name in ("shingle", "threshold", "recall", "seed"):
        assert defaults[0][name].default == defaults[1][name].default, name


def test_plain_text_has_brackets_and_no_escapes():
    text = explain(A, B, names=("a.txt", "b.txt")).plain(80)
    assert "\x1b" not in text
    assert "[1: the quick" in text
    assert "bank :1]" in text
    assert text.startswith("1 shared passage, 12 equal words; ")
    assert "of a.txt is in b.txt" in text
    assert max(map(len, text.splitlines())) <= 80


def on_a_terminal(told):
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system="standard", legacy_windows=False)
    console.print(told)
    return out.getvalue()


def test_colours_in_a_terminal():
    out = io.StringIO()
    Console(file=out, width=100, force_terminal=True, color_system="standard", legacy_windows=False).print(
        explain(A, B)
    )
    assert "\x1b[1;32mthe quick brown fox" in out.getvalue()
    assert "[1:" not in out.getvalue()


def test_documents_cannot_command_the_terminal():
    a = "\x1b[2J\x07\r" + " ".join("abcdefghij") + "\x9b"
    shown = on_a_terminal(explain(a, a))
    for forbidden in ("\x1b[2J", "\x07", "\x9b"):
        assert forbidden not in shown
    assert "\ufffd[[1: 2J\ufffd\ufffda b c" in explain(a, a).plain()


def test_passages_that_touch_and_overlap_are_marked_in_order():
    repeated = "a b c d e f g h i j"
    line = explain(repeated, f"{repeated} - {repeated}").plain(160).splitlines()[-2]
    assert f"[1: [2: {repeated} :2] :1]" in line
    assert f"[1: {repeated} :1] - [2: {repeated} :2]" in line


@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "a b"), ("one two", "three")])
def test_nothing_shared(a, b):
    told = explain(a, b)
    assert told.passages == []
    share = "0.0%" if a else "100.0%"  # nothing is contained in everything, as in likewise.measures
    assert told.plain().startswith(f"no passage in common; {share} of A is in B")


def test_in_a_notebook():
    explanation = explain(A, B)
    assert repr(explanation).startswith("<Explanation: 1 shared passage, 12 equal words; ")
    assert explanation._repr_html_().startswith("<pre>1 shared passage, 12 equal words; ")


def test_as_json():
    told = json.loads(json.dumps(explain(A, B).to_dict()))
    assert told["passages"][0]["a_text"].startswith("the quick")
    assert told["passages"][0]["b_changed"] == [[20, 25]]


def test_wrong_parameters():
    with pytest.raises(likewise.ParameterError, match="'b' parameter of explain must be a string"):
        explain("a", None)
    with pytest.raises(likewise.ParameterError, match="The 'length' parameter of explain"):
        explain("a", "b", length=0)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("", "", (1.0, 1.0, 1.0)),
        ("", "to be or not to be", (1.0, 0.0, 0.0)),
        ("to be or not to be", " ", (0.0, 1.0, 0.0)),
        ("to be or not to be", "nothing of that kind", (0.0, 0.0, 0.0)),
    ],
)
def test_empty_documents_are_measured_as_in_measures(a, b, expected):
    found = explain(a, b)
    assert (found.containment, found.containment_of_b, found.jaccard) == expected
    sets = [set(text.split()) for text in (a, b)]
    assert likewise.measures.containment(*sets) == expected[0]
    assert likewise.measures.jaccard(*sets) == expected[2]
