"""Shinglers by name: "words:5", "chars:9,casefold=true", "stopwords:en"; and the right k for a corpus."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.base.arrays import Ints
from likewise.errors import ParameterError
from likewise.shingle.base import Shingler
from likewise.shingle.shinglers import Chars, Tokens, Words
from likewise.shingle.stopwords import StopWords, parse_list

SHINGLERS: dict[str, type[Shingler]] = {"words": Words, "chars": Chars, "tokens": Tokens, "stopwords": StopWords}
HIDDEN = ("k", "languages", "words", "letters")
"""Parameters that are not options of a spec: they come before the first comma."""
FLAGS = ("casefold", "bag", "counts")


def parse_shingler(spec: str | Shingler, lengths: Ints | None = None, owner: str = "parse_shingler") -> Shingler:
    """Return the shingler for "words:5", "chars:9" or "stopwords:en".

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
    if name not in SHINGLERS:
        raise ParameterError.of(owner, "shingle", "words:K, chars:K, tokens or stopwords:LANGUAGE", spec)
    if name != "stopwords" and number and not number.isdecimal():
        raise ParameterError.of(owner, "shingle", f"{name}:K with a whole number K", spec)
    try:
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
    return 1 if name == "tokens" else 5 if name == "words" or lengths is None else choose_k(lengths)


def _options(name: str, options: list[str]) -> dict[str, Any]:
    """Return the options of a spec, such as "bits=32", by name."""
    known = [field.name for field in fields(SHINGLERS[name]) if field.name not in HIDDEN]
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
    kind = SHINGLERS[name]
    known = {field.name for field in fields(kind)} - {"k"}
    k = parameters["k"] if name == "stopwords" else int(number or 1)
    return kind(k=k, **{key: parameters[key] for key in known if key in parameters})


def choose_k(lengths: Any, *, alphabet: int = 20, rarity: float = 0.01) -> int:
    """Return the smallest k for which any given shingle is rare in a typical document (MMDS §3.2.2).

    Text behaves as if it had about 20 letters, so there are effectively 20**k shingles. A document of L characters has
    at most L of them; k is large enough when L / 20**k ≤ rarity. L is the 90th percentile of the lengths, so that long
    documents do not look similar by chance. The result is 5 for e-mails and 6 to 7 for long papers, always between 3
    and 12.

    >>> choose_k([2_000, 3_000, 4_000]), choose_k(["a short note"]), choose_k([300_000])
    (5, 3, 6)
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
        return 5
    typical = max(1.0, float(np.quantile(numbers, 0.9)))
    return min(12, max(3, math.ceil(math.log(typical / rarity, alphabet))))
