"""Documents to sets: shingles of characters, words, stop words, tokens and URLs, hashed to integers (MMDS §3.2).

Shinglers by name: "words:5", "chars:9,casefold=true", "stopwords:en"; and the right k for a corpus.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.errors import IncompatibleError, ParameterError
from likewise.shingle.shinglers import Chars, Form, Shingler, Tokens, Words
from likewise.shingle.stopwords import StopWords, parse_list
from likewise.shingle.urls import Urls

__all__ = [
    "SHINGLERS",
    "Chars",
    "Form",
    "Shingler",
    "StopWords",
    "Tokens",
    "Urls",
    "Words",
    "choose_k",
    "parse_shingler",
    "shingler_of",
]

SHINGLERS: dict[str, type[Shingler]] = {"words": Words, "chars": Chars, "tokens": Tokens, "stopwords": StopWords}
KINDS: dict[str, type[Shingler]] = {**SHINGLERS, Urls.name: Urls}
"""What a spec may name: shinglers of text, and that of URLs, which has no k."""
HIDDEN = ("k", "languages", "words", "letters", "rule", "stop")
"""Parameters that are not options of a spec: they come before the first comma, or are for Python only."""
FLAGS = ("casefold", "bag", "counts", "host")
DEFAULT_K = 5
"""The k of words, and of characters where the documents are not known."""
LEAST_K, MOST_K = 3, 10
"""The range of `choose_k`: two characters are in every document; more than ten only make a shingle easier to break."""
FREE_LETTERS = 5
"""The letters of a shingle that count as drawn from the alphabet: the words of English have about five. With it, and a
thousand likely shingles for each one of the document, e-mails (to 3,200 characters) get k = 5 and research articles (to
51,200) k = 9, which is what MMDS §3.2.2 recommends for both."""


def parse_shingler(spec: str | Shingler, lengths: Ints | None = None, owner: str = "parse_shingler") -> Shingler:
    """Return the shingler for "words:5", "chars:9", "stopwords:en" or "urls".

    Without a number, k is 5 for words, and for characters what `choose_k` returns for these document lengths. Options
    follow, separated by commas: "chars:9,whitespace=remove,casefold=true,normalize=NFKC,bag=true,bits=32". `owner` is
    the function the user called, for error messages.

    >>> parse_shingler("chars:9,whitespace=remove")
    Chars(k=9, casefold=False, normalize=None, bits=64, bag=False, whitespace='remove')
    """
    if isinstance(spec, Shingler):
        return spec
    head, *options = str(spec).split(",")
    name, _, number = head.partition(":")
    if name not in KINDS:
        raise ParameterError.of(owner, "shingle", "words:K, chars:K, tokens, stopwords:LANGUAGE or urls", spec)
    if name == Urls.name and number:
        raise ParameterError.of(owner, "shingle", "urls without a number", spec)
    if name != "stopwords" and number and not number.isdecimal():
        raise ParameterError.of(owner, "shingle", f"{name}:K with a whole number K", spec)
    try:
        if name == Urls.name:
            given = _options(name, options)
            if given.get("position") == "none":
                given["position"] = None
            return Urls(**given)
        chosen: dict[str, Any] = parse_list(number) if name == "stopwords" else {}
        chosen["k"] = _units(name, number, lengths)
        return SHINGLERS[name](**{**chosen, **_options(name, options)})
    except ParameterError as error:
        raise ParameterError(f"The 'shingle' parameter of {owner} cannot be {str(spec)!r}: {error}") from error


def _units(name: str, number: str, lengths: Ints | None) -> int:
    """Return the k of a spec: the number given, or the default of the shingler."""
    if name == "stopwords":
        return 3
    if number:
        return int(number)
    return 1 if name == "tokens" else DEFAULT_K if name == "words" or lengths is None else choose_k(lengths)


def _options(name: str, options: list[str]) -> dict[str, Any]:
    """Return the options of a spec, such as "bits=32", by name."""
    known = [field.name for field in fields(KINDS[name]) if field.init and field.name not in HIDDEN]
    known += ["k"] if name == "stopwords" else []
    chosen: dict[str, Any] = {}
    for option in options:
        key, _, value = option.partition("=")
        if key not in known:
            raise ParameterError(f"there is no option {option!r}; the options of {name} are {', '.join(known)}")
        if key in FLAGS:
            if value not in ("true", "false", ""):
                raise ParameterError(f"the option {key!r} must be true or false, not {value!r}")
            chosen[key] = value != "false"
        else:
            chosen[key] = int(value) if key in ("bits", "k") and value.isdecimal() else value
    return chosen


def shingler_of(parameters: dict[str, Any]) -> Shingler:
    """Return the shingler whose `to_dict` is part of these parameters, as in run.json.

    >>> shingler_of({**Tokens(separator=",").to_dict(), "threshold": 0.8})
    Tokens(k=1, casefold=False, normalize=None, bits=64, bag=False, separator=',', counts=False)
    """
    name, _, number = parameters["shingle"].partition(":")
    if parameters.get("rule") is not None:
        raise IncompatibleError(
            f"the stop words of that run are those of the function {parameters['rule']}, which is not stored with it;"
            " run it again"
        )
    kind = KINDS[name]
    if kind is Urls:
        return Urls(**{key: parameters[key] for key in ("stop", "host", "position", "bits", "bag")})
    known = {field.name for field in fields(kind)} - {"k"}
    k = parameters["k"] if name == "stopwords" else int(number or 1)
    return kind(k=k, **{key: parameters[key] for key in known if key in parameters})


def choose_k(lengths: Any, *, alphabet: int = 20, rarity: float = 0.001) -> int:
    """Return the smallest k for which any given shingle is rare in a typical document (MMDS §3.2.2).

    A document of L characters has at most L shingles; k is large enough when they are at most the fraction `rarity` of
    the shingles that text is likely to have. Text behaves as if it had about 20 letters, so for short shingles these
    are 20**k; from the sixth letter on the next one is largely determined by those before it (English has about one bit
    per letter: Shannon, 1951), and each doubles their number only. L is the 90th percentile of the lengths, so that
    long documents do not look similar by chance. The result is 5 for e-mails, 9 for research articles and 10 for
    anything longer, as the book recommends; 3 or 4 for names and titles.

    >>> choose_k([2_000, 3_000]), choose_k(["a name"]), choose_k([50_000]), choose_k([300_000])
    (5, 3, 9, 10)
    """
    checks.whole("choose_k", "alphabet", alphabet, 2)
    checks.number("choose_k", "rarity", rarity, 0, 1, open_left=True, open_right=True)
    lengths = checks.listed("choose_k", "lengths", lengths, "a list of lengths or of documents")
    rule = "a list of lengths, numbers of 0 or more, or of documents"
    numbers = [
        len(item) if isinstance(item, str) else checks.number("choose_k", "lengths", item, 0, rule=rule)
        for item in lengths
    ]
    if not numbers:
        return DEFAULT_K
    needed = max(1.0, float(np.quantile(numbers, 0.9))) / rarity
    return next((k for k in range(LEAST_K, MOST_K) if likely_shingles(k, alphabet) >= needed), MOST_K)


def likely_shingles(k: int, alphabet: int = 20) -> int:
    """Return the number of different shingles of k characters that text is likely to have: see `choose_k`.

    >>> likely_shingles(4), likely_shingles(5), likely_shingles(9)
    (160000, 3200000, 51200000)
    """
    return int(alphabet ** min(k, FREE_LETTERS) * 2 ** max(0, k - FREE_LETTERS))
