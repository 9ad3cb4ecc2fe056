"""What every shingler promises, run for every shingler in the registry and every combination of options."""

import itertools
import unicodedata
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import likewise
import oracles
from likewise.base.arrays import Texts
from likewise.shingle import SHINGLERS
from likewise.shingle.shinglers import FORMS, WHITESPACE
from likewise.shingle.unicode import unicode_tables

KINDS = unicode_tables()[0]
OWN_OPTIONS = {
    "words": {},
    "chars": {"whitespace": WHITESPACE},
    "tokens": {"separator": (None, ";", "\t", "b"), "casefold": (False,)},
    "stopwords": {"languages": ("de+fr", "auto"), "letters": (0, 1), "words": (None, ["b", "ΑΣ", "Straße"])},
}
with np.load(Path(likewise.__file__).parent / "shingle" / "unicode.npz") as stored:
    SAME = str(stored["version"]) == unicodedata.unidata_version
ASSIGNED = unicodedata if SAME else unicodedata.ucd_3_2_0  # the characters that table, Python and Arrow know alike

every_shingler = pytest.mark.parametrize("kind", SHINGLERS.values(), ids=SHINGLERS.keys())
every_folding = pytest.mark.parametrize("kind", [kind for kind in SHINGLERS.values() if kind.name != "tokens"])


def options(kind, **fixed):
    """Every combination of options."""
    known = {"casefold": (False, True), "normalize": (None, *FORMS), "bits": (64, 32), "bag": (False, True)}
    known |= OWN_OPTIONS[kind.name] | {name: (value,) for name, value in fixed.items()}
    return [dict(zip(known, values, strict=True)) for values in itertools.product(*known.values())]


def shinglers(kind, **fixed):
    return st.builds(lambda k, chosen: kind(k=k, **chosen), st.integers(1, 12), st.sampled_from(options(kind, **fixed)))


ODD = "aAzZ09_-;\x1f. \t\n\r\0\x1c\x85\xa0\u2028\u3000\u200b\ufeffßẞİıŉΐΣςǰﬃﬀﬅÅåÅ①½K"
ODD += "\u0301\u0308\u0327\u20dd中文字々〆ぁあアァｱｰー゙ไทยกำ่ລາວខ្មែរမြန်မာꀀ𗀀한글각한\u0939\u093f\u0928\u094d\u0926\u0940"
ODD += "אבגعربيҞѣᏣꭰꮁ𐐀𐐨𝒜𝟘🙂👩\u200d👧\U00020000\U0002f800\U000e0100\U0010ffff\uffff\ue000"
CHARACTER = (st.sampled_from(ODD) | st.characters(exclude_categories=["Cs"])).filter(
    lambda char: ASSIGNED.category(char) != "Cn" or char in "\uffff\U0010ffff"
)
DOCUMENT = st.text(CHARACTER, max_size=40) | st.text(st.sampled_from("abAB  _\n."), max_size=150)
DOCUMENTS = st.lists(DOCUMENT, max_size=8)


def found(shingler, texts):
    return [values.tolist() for values in shingler.sets(texts)]


def expected(shingler, texts):
    return [oracles.document_set(shingler, text, KINDS) for text in texts]


def test_every_shingler_has_an_oracle():
    assert set(SHINGLERS) == set(oracles.UNITS) == set(OWN_OPTIONS)
    assert {name: kind.name for name, kind in SHINGLERS.items()} == {name: name for name in SHINGLERS}


@every_shingler
@given(data=st.data(), texts=DOCUMENTS)
def test_sets_are_those_of_the_oracle(kind, data, texts):
    shingler = data.draw(shinglers(kind))
    assert found(shingler, texts) == expected(shingler, texts)


@every_shingler
def test_every_combination_of_options(kind):
    texts = ["", " ", "a", "Straße İstanbul ﬃ ①½ e\u0301 中文\u0301 กำ x", "a b a b a b A B", ODD, ODD[::-1] * 3]
    for chosen in options(kind):
        for k in (1, 3):
            shingler = kind(k=k, **chosen)
            assert found(shingler, texts) == expected(shingler, texts), shingler


@pytest.mark.each_value
@every_shingler
@pytest.mark.parametrize("k", [1, 2, 5, 1000])
def test_ascii_of_every_length_and_alignment(kind, k):
    """Documents of 0 to 200 bytes, at every place of an eight-byte word, in slices of a larger buffer."""
    pattern = "The quick_brown fox, 42 jumps\nover  a lazy-dog; "
    texts = [(pattern * 6)[length % 7 : length % 7 + length] for length in range(201)]
    texts += ["x" * length for length in range(201)] + [("ab " * 70)[:length] for length in range(201)]
    truth = expected(kind(k=k), texts)
    for shift in range(8):
        array = pa.array(["#" * shift, *texts, "end"], pa.string()).slice(1, len(texts))
        assert found(kind(k=k), array) == truth


@pytest.mark.each_value
@every_shingler
@pytest.mark.parametrize("length", [*range(1, 20), *range(52, 76), 120, 127, 128, 129, 255, 256, 257, 299, 300, 301])
def test_long_words_wherever_they_stand(kind, length):
    word = ("abcdefghijklmnopqrstuvwxyz" * 12)[:length]
    texts = [word, f" {word}", f"{word} ", f"a {word} b", f"{word} {word}", f"{word}é", f"é{word}", f"{word} é"]
    texts += [f"é {word}"] + [f"{'.' * pad}{word.upper()},b" for pad in (1, 7, 8, 61, 64)]
    texts += [f"{'.' * pad}{word[:-1]}É中{word}" for pad in (0, 3, 8, 60, 63)]
    for k in (1, 2):
        assert found(kind(k=k), texts) == expected(kind(k=k), texts)


@every_shingler
@given(data=st.data(), texts=DOCUMENTS)
def test_every_arrow_layout_gives_the_same_sets(kind, data, texts):
    shingler = data.draw(shinglers(kind))
    truth = found(shingler, texts)
    plain = pa.array(texts, pa.string())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(texts)), max_size=3)))
    pieces = [plain[a:b] for a, b in itertools.pairwise([0, *cuts, len(texts)])]
    layouts = [
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
        pa.chunked_array(pieces, pa.string()),
        pa.chunked_array([piece.cast(pa.large_string()) for piece in pieces], pa.large_string()),
        pa.array(["ab", "c", *texts, "d"], pa.string()).slice(2, len(texts)),
        pa.array([*texts, "é"], pa.large_string()).slice(0, len(texts)),
        Texts.of(texts),
    ]
    for layout in layouts:
        assert found(shingler, layout) == truth


@every_shingler
@given(data=st.data(), start=st.integers(1, 15), texts=DOCUMENTS)
def test_buffers_at_odd_addresses(kind, data, start, texts):
    shingler = data.draw(shinglers(kind))
    encoded = [text.encode() for text in texts]
    offsets = np.cumsum([0, *map(len, encoded)]).astype(np.int64)
    buffer = pa.py_buffer(b"\xff" * start + b"".join(encoded)).slice(start)
    array = pa.Array.from_buffers(pa.large_string(), len(texts), [None, pa.py_buffer(offsets), buffer])
    assert found(shingler, array) == expected(shingler, texts)


@every_shingler
@given(data=st.data(), text=DOCUMENT)
def test_shingles_as_text_are_what_is_hashed(kind, data, text):
    shingler = data.draw(shinglers(kind, bits=64, bag=False))
    if kind.name == "tokens":  # several of them, glued together, cannot be told apart
        shingler = replace(shingler, k=1)
    short = len(shingler.units(text)) < shingler.k
    if kind.name == "stopwords":
        short = not oracles.stop_starts(shingler, text, KINDS)
    by_hand = []
    for shingle in shingler.members(text):
        units = {
            "stopwords": shingle.split(" "),
            "words": shingle.split(" "),
            "chars": list(shingle),
            "tokens": [shingle],
        }[kind.name]
        hashes = [oracles.hash_unit(shingler, unit) for unit in units]
        by_hand += oracles.shingle_hashes(hashes, len(units) + 1 if short else len(units))
    assert found(shingler, [text]) == [by_hand]


@every_shingler
@given(data=st.data(), text=DOCUMENT)
@example(data=None, text="")
@example(data=None, text="x")
def test_a_short_document_is_one_shingle_and_an_empty_one_is_none(kind, data, text):
    shingler = kind(k=1000) if data is None else data.draw(shinglers(kind))
    units = len(shingler.units(text))
    size = len(found(shingler, [text])[0])
    if units < shingler.k:
        assert size == min(units, 1)
    else:
        assert 1 <= size <= units - shingler.k + 1


@pytest.mark.parametrize("kind", [kind for kind in SHINGLERS.values() if kind.name != "stopwords"])
@given(data=st.data(), text=DOCUMENT)
def test_a_shorter_document_is_not_mistaken_for_a_shingle_of_another(kind, data, text):
    """With k=3 "a b" is its own shingle: not a part of "a b c", and not what k=2 makes of it."""
    k = data.draw(st.integers(2, 12))
    short = kind(k=k)
    if 0 < len(short.units(text)) < k:
        assert found(short, [text]) != found(kind(k=len(short.units(text))), [text])


@pytest.mark.each_value
@every_shingler
@pytest.mark.parametrize("form", FORMS)
@given(texts=DOCUMENTS, k=st.integers(1, 4))
def test_normal_forms_are_those_of_unicodedata(kind, form, texts, k):
    normal = [unicodedata.normalize(form, text) for text in texts]
    assert found(kind(k=k, normalize=form), texts) == found(kind(k=k), normal)


@every_folding
@given(texts=DOCUMENTS, k=st.integers(1, 4))
def test_folding_is_that_of_python(kind, texts, k):
    folded = [text.casefold() for text in texts]
    units = [kind(k=k, casefold=True).units(text) for text in texts]
    assert units == [["".join(unit.casefold()) for unit in row] for row in units], "folding twice is folding once"
    if kind.name == "chars":
        assert found(kind(k=k, casefold=True), texts) == found(kind(k=k, casefold=False), folded)
    else:
        words = [[word.casefold() for word in kind(k=k, casefold=False).units(text)] for text in texts]
        assert units == words


@every_shingler
@given(data=st.data(), texts=DOCUMENTS)
def test_32_bits_are_the_high_half_of_64(kind, data, texts):
    k = data.draw(st.integers(1, 5))
    narrow = kind(k=k, bits=32).sets(texts)
    assert narrow.values.dtype == np.uint32
    assert [s.tolist() for s in narrow] == [
        list(dict.fromkeys(x >> 32 for x in row)) for row in found(kind(k=k), texts)
    ]


@pytest.mark.each_value
@every_shingler
@pytest.mark.parametrize("bits", [64, 32])
@given(pair=st.lists(st.text(st.sampled_from("aab  c"), max_size=40), min_size=2, max_size=2), k=st.integers(1, 3))
def test_bags_are_compared_by_their_counts(kind, bits, pair, k):
    a, b = found(kind(k=k, bag=True, bits=bits), pair)
    assert len(set(a)) == len(a)
    assert len(set(b)) == len(b)
    shingler = kind(k=k)
    lists = [oracles.document_shingles(shingler, text, KINDS) for text in pair]
    assert oracles.jaccard(a, b) == oracles.bag_jaccard(*lists)


@every_shingler
def test_no_documents(kind):
    for nothing in ([], pa.array([], pa.string()), pa.chunked_array([], pa.string())):
        sets = kind(k=3).sets(nothing)
        assert len(sets) == 0
        assert sets.values.size == 0


@every_shingler
def test_documents_that_need_more_room_than_guessed(kind):
    """Foldings that make three characters of one, and words of one letter: the first guess of the room is too small."""
    texts = ["a" * 50, "ΐ" * 400, "a b " * 300, "ŉ" * 100, "中a" * 200, "", "ﬃ" * 90] * 3
    texts += ["".join(chr(0x4E00 + i) for i in range(500)), " ".join(map(str, range(500)))]
    for casefold in OWN_OPTIONS[kind.name].get("casefold", (False, True)):
        shingler = kind(k=2, casefold=casefold, bag=True)
        assert found(shingler, texts) == expected(shingler, texts)
        chunk = Texts.of(texts).chunks[0]
        for rows in ([1], [0, 1, 2], [5], [], [2, 4, 6, 20]):
            some = shingler.chunk_sets(chunk, np.array(rows, np.int64))
            assert [s.tolist() for s in some] == expected(shingler, [texts[row] for row in rows])
