"""Texts in other alphabets: compared by letters, not by bytes, and read again if they were decoded wrongly."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.link.comparison import similarity_of
from likewise.apps.link.fields import fold, make_field, repaired
from likewise.apps.link.terms import hashed

ALPHABETS = {
    "latin": "abcdefghijklmnopqrstuvwxyz",
    "cyrillic": "абвгдежзиклмнопрстуфхцчшыьэюя",
    "greek": "αβγδεζηθικλμνξοπρστυφχψω",
    "kana": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわん",
    "gothic": "".join(map(chr, range(0x10330, 0x1034A))),
}
"""Letters of one, two, three and four bytes, none with an accent."""


def likeness(texts: list[str]) -> np.ndarray:
    """The similarity of the first half of the texts with the second."""
    field = make_field("text", pa.chunked_array([texts]), "text")
    half = len(texts) // 2
    codes = field.codes.astype(np.int64)
    return similarity_of(field)(codes[:half], codes[half:])


@pytest.mark.parametrize("letters", ALPHABETS.values(), ids=ALPHABETS)
def test_texts_of_an_alphabet_are_as_alike_as_those_of_any_other(letters: str) -> None:
    """Replacing each letter by another of 23 changes similarities by what the frequencies of terms are wrong.

    These are counted by hashes, where up to one term in eight shares its place with another one: a weight of
    log(1 + 200 / 1) is then log(1 + 200 / 2), 13 % less, as is a similarity that only this term makes.
    """
    dice = random.Random(2)
    texts = [[dice.choices(range(23), k=dice.randint(2, 8)) for _ in range(20)] for _ in range(200)]

    def written(alphabet: str) -> list[str]:
        return [" ".join("".join(alphabet[place] for place in word) for word in text) for text in texts]

    found, usual = likeness(written(letters)), likeness(written(ALPHABETS["latin"]))
    assert (np.abs(found - usual) <= 0.13 * np.maximum(found, usual) + 1e-6).mean() > 7 / 8
    assert abs(found.mean() - usual.mean()) <= 0.13 * usual.mean()


@given(st.lists(st.text(alphabet="".join(ALPHABETS.values()), min_size=1, max_size=6), min_size=1, max_size=4))
def test_terms_are_the_words_and_the_pieces_of_three_letters(words: list[str]) -> None:
    found = hashed(pa.array([" ".join(words), *words]), True)
    whole, *parts = (
        found.terms[start:stop].tolist() for start, stop in zip(found.offsets, found.offsets[1:], strict=False)
    )
    assert sorted(whole) == sorted(term for part in parts for term in part)
    for word, part in zip(words, parts, strict=True):
        padded = f"_{word}_"
        pieces = {padded[at : at + 3] for at in range(len(word))}
        assert len(part) == 1 + len(word)
        assert len(set(part[1:])) == len(pieces)


@given(st.text(alphabet="".join(ALPHABETS.values()) + " éßñ", min_size=2))
def test_mojibake_is_repaired(text: str) -> None:
    wrong = text.encode().decode("latin-1")
    beyond = sum(letter > "\x7f" for letter in text)
    assert repaired(wrong) == (text if beyond > 1 else wrong)


@given(st.text(alphabet="".join(ALPHABETS["latin"]) + "àéüßñ "))
def test_other_text_is_not_touched(text: str) -> None:
    assert repaired(text) == text


def test_mojibake_of_windows_is_repaired() -> None:
    assert repaired("– œuvre".encode().decode("cp1252")) == "– œuvre"
    assert repaired("“Ævar".encode().decode("cp1252")) == "“Ævar"
    assert fold(pa.array(["CafÃ© MÃ¼ller"])).to_pylist() == ["cafe muller"]
