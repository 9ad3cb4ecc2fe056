"""Words and characters by example, the Unicode table, and how shinglers are written down and chosen."""

import importlib.util
import math
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise.errors import ParameterError
from likewise.shingle import Chars, Words, choose_k, parse_shingler
from likewise.shingle.unicode import unicode_tables

ROOT = Path(__file__).parents[2]
LENGTHS = st.lists(st.integers(0, 10**9), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The plane was ready for touch down.", ["the", "plane", "was", "ready", "for", "touch", "down"]),
        ("snake_case isn't kebab-case", ["snake_case", "isn", "t", "kebab", "case"]),
        ("3.14 42nd x²", ["3", "14", "42nd", "x²"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("İstanbul ǅ ﬃ", ["i̇stanbul", "ǆ", "ffi"]),
        ("naïve nai\u0308ve", ["naïve", "nai\u0308ve"]),
        ("\u0301a", ["\u0301a"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("我爱 Python3语言", ["我", "爱", "python3", "语", "言"]),
        ("スーパー マン", ["スー", "パー", "マ", "ン"]),
        ("か\u3099き", ["か\u3099", "き"]),
        ("ก็ดี", ["ก็", "ดี"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("привет, МИР!", ["привет", "мир"]),
        ("a\0b\u2028c\u00a0d\u200be", ["a", "b", "c", "d", "e"]),
        ("🙂 a🙂b", ["a", "b"]),
        ("— … !?", []),
        ("", []),
    ],
)
def test_words_of_many_scripts(text, words):
    assert Words(1).units(text) == words
    assert Words(1).sets([text])[0].size == len(set(words))


@pytest.mark.parametrize(
    ("whitespace", "units"),
    [("collapse", " a b c "), ("keep", "\n a\u3000b\t\tc "), ("remove", "abc")],
)
def test_white_space(whitespace, units):
    assert "".join(Chars(1, whitespace=whitespace).units("\n a\u3000b\t\tc ")) == units


def test_characters_are_never_cut():
    assert Chars(2).shingles("é中🙂x") == ["é中", "中🙂", "🙂x"]
    assert Chars(2).sets(["é中🙂x"])[0].size == 3


def test_folding_to_several_characters():
    assert Chars(3, casefold=True).shingles("ΐß") == ["\u03b9\u0308\u0301", "\u0308\u0301s", "\u0301ss"]


def test_k_larger_than_the_document():
    assert Words(5).shingles("only three words") == ["only three words"]
    assert len({int(Words(k).sets(["only three words"]).values[0]) for k in (4, 5, 9)}) == 1
    assert Words(5).shingles("...") == []


def test_the_table_is_what_its_maker_writes():
    maker = ROOT / "tools" / "make_unicode.py"
    spec = importlib.util.spec_from_file_location("make_unicode", maker)
    make_unicode = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_unicode)
    with np.load(Path(likewise.__file__).parent / "shingle" / "unicode.npz") as stored:
        if str(stored["version"]) != unicodedata.unidata_version:
            pytest.skip("the table was made with another version of Unicode")
    kinds, folds, expansions = unicode_tables()
    for point in [*range(0x3400), *range(0x3400, 0x110000, 97), *range(0xA000, 0xB000), *range(0xF900, 0x10000)]:
        assert kinds[point] == make_unicode.kind(point), hex(point)
        fold = int(folds[point])
        folded = [fold] if fold >= 0 else [int(part) for part in expansions[-fold] if part]
        assert "".join(map(chr, folded)) == chr(point).casefold(), hex(point)


def test_the_table_covers_all_of_unicode():
    kinds, folds, expansions = unicode_tables()
    assert len(kinds) == len(folds) == 0x110000
    assert kinds.max() == 4
    assert -int(folds.min()) == len(expansions) - 1
    assert (folds != 0).sum() == 0x110000 - 1, "nothing but NUL folds to 0, which pads the expansions"


@pytest.mark.parametrize(
    ("spec", "shingler"),
    [
        ("words:5", Words(5)),
        ("words", Words(5)),
        ("words:3,casefold=false", Words(3, casefold=False)),
        ("words:3,casefold", Words(3, casefold=True)),
        ("chars", Chars(5)),
        ("chars:9,whitespace=remove,casefold=true", Chars(9, whitespace="remove", casefold=True)),
        ("chars:9,normalize=NFKC,bag=true,bits=32", Chars(9, normalize="NFKC", bag=True, bits=32)),
        (Chars(4), Chars(4)),
    ],
)
def test_parse(spec, shingler):
    assert parse_shingler(spec) == shingler


def test_parse_chooses_k_from_lengths():
    assert parse_shingler("chars", np.array([3000])) == Chars(choose_k([3000]))
    assert parse_shingler("words", np.array([3000])) == Words(5)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("", "words:K, chars:K, tokens, stopwords:LANGUAGE or urls"),
        ("lines:3", "words:K, chars:K, tokens, stopwords:LANGUAGE or urls"),
        ("words:x", "whole number"),
        ("words:-1", "whole number"),
        ("words:1.5", "whole number"),
        ("words:0", "1 to 1000"),
        ("words:1001", "1 to 1000"),
        ("words:5,whitespace=keep", "there is no option 'whitespace=keep'; the options of words are casefold"),
        ("chars:5,whitespace=squeeze", "'collapse', 'keep' or 'remove'"),
        ("chars:5,bits=16", "32 or 64"),
        ("chars:5,bits=many", "32 or 64"),
        ("chars:5,normalize=nfc", "'NFC', 'NFD'"),
        ("chars:5,casefold=yes", "true or false"),
        ("chars:5,", "no option ''"),
        ("chars:5,k=3", "no option 'k=3'"),
    ],
)
def test_parse_says_what_is_wrong(spec, says):
    with pytest.raises(ParameterError, match=says) as raised:
        parse_shingler(spec, owner="dedup")
    assert str(raised.value).startswith("The 'shingle' parameter of dedup ")


@pytest.mark.parametrize("kind", [Words, Chars])
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"k": 0}, "'k' parameter"),
        ({"k": True}, "'k' parameter"),
        ({"k": 2.0}, "'k' parameter"),
        ({"k": "5"}, "'k' parameter"),
        ({"k": 5, "bits": 63}, "'bits' parameter"),
        ({"k": 5, "normalize": "C"}, "'normalize' parameter"),
    ],
)
def test_shinglers_check_their_parameters(kind, bad, says):
    with pytest.raises(ParameterError, match=f"{says} of {kind.__name__}"):
        kind(**bad)


def test_how_a_shingler_is_written_down():
    assert str(Words(5)) == "words:5"
    assert Chars(9, whitespace="keep").to_dict() == {
        "shingle": "chars:9",
        "casefold": False,
        "normalize": None,
        "bits": 64,
        "bag": False,
        "whitespace": "keep",
    }


@pytest.mark.parametrize("texts", ["abc", ["a", None], [1], 5, None, ["\ud800"], [b"\xff"]])
def test_texts_must_be_strings(texts):
    with pytest.raises(ParameterError):
        Words(1).sets(texts)


@given(LENGTHS, st.sampled_from([0.1, 0.01, 0.001]), st.sampled_from([2, 20, 95]))
def test_choose_k_is_the_smallest_that_makes_shingles_rare(lengths, rarity, alphabet):
    """Five letters are drawn from the alphabet, and each further one doubles the number of likely shingles."""
    k = choose_k(lengths, rarity=rarity, alphabet=alphabet)
    typical = max(1.0, float(np.quantile(lengths, 0.9)))
    likely = [math.prod([alphabet] * min(n, 5) + [2] * (n - 5)) for n in range(12)]
    assert 3 <= k <= 10
    assert k == 10 or typical / likely[k] <= rarity * (1 + 1e-9)
    assert k == 3 or typical / likely[k - 1] > rarity * (1 - 1e-9)


@given(LENGTHS, st.integers(1, 1000))
def test_choose_k_never_falls_as_documents_grow(lengths, factor):
    assert choose_k(lengths) <= choose_k([factor * length for length in lengths])
    assert choose_k(lengths) == choose_k(lengths[::-1])


def test_choose_k_by_the_book():
    """MMDS §3.2.2: k = 5 is right for e-mails, 9 is safe for research articles; the lectures take 10 for long ones."""
    assert {choose_k([length]) for length in (200, 1_000, 2_000, 3_000)} == {5}
    assert choose_k([30_000]) == choose_k([50_000]) == 9
    assert choose_k([100_000]) == choose_k([10_000_000]) == 10
    assert choose_k([]) == 5
    assert choose_k(["a note", "another"]) == 3


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"lengths": "text"}, "'lengths'"),
        ({"lengths": [5], "alphabet": 1}, "'alphabet'"),
        ({"lengths": [5], "rarity": 0}, "'rarity'"),
        ({"lengths": [5], "rarity": 1.0}, "'rarity'"),
    ],
)
def test_choose_k_checks_its_parameters(bad, says):
    with pytest.raises(ParameterError, match=says):
        choose_k(**bad)
