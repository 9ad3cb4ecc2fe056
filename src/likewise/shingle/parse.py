"""Shinglers by name: "words:5", "chars:9,casefold=true", "stopwords:en"; and the k that suits a corpus."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from likewise.base.arrays import Ints
from likewise.errors import ParameterError
from likewise.shingle.base import Shingler
from likewise.shingle.shinglers import Chars, Tokens, Words
from likewise.shingle.stopwords import StopWords, parse_list

SHINGLERS: dict[str, type[Shingler]] = {"words": Words, "chars": Chars, "tokens": Tokens, "stopwords": StopWords}


def parse_shingler(spec: str | Shingler, lengths: Ints | None = None) -> Shingler:
    """Turn "words:5", "chars:9" or "stopwords:en" into a shingler.

    Without a number, k is 5 words or what choose_k says.
    Options follow, comma-separated: "chars:9,whitespace=remove,casefold=true,normalize=NFKC,bag=true,bits=32".

    >>> parse_shingler("chars:9,whitespace=remove")
    Chars(k=9, casefold=False, normalize=None, bits=64, bag=False, whitespace='remove')
    """
    if isinstance(spec, Shingler):
        return spec
    head, *options = str(spec).split(",")
    name, _, number = head.partition(":")
    if name not in SHINGLERS:
        raise ParameterError.of("shingle", "shingle", "words:K, chars:K or tokens, or stopwords:LANGUAGE", spec)
    chosen: dict[str, Any] = {}
    if name == "stopwords":
        chosen, k = parse_list(number), 3
    elif number:
        if not number.isdecimal():
            raise ParameterError.of("shingle", "shingle", "words:K or chars:K with a whole number K", spec)
        k = int(number)
    else:
        k = 1 if name == "tokens" else 5 if name == "words" or lengths is None else choose_k(lengths)
    kind = SHINGLERS[name]
    known = [field.name for field in fields(kind) if field.name not in ("k", "languages", "words", "letters")]
    known += ["k"] if name == "stopwords" else []
    for option in options:
        key, _, value = option.partition("=")
        if key not in known:
            raise ParameterError.of("shingle", key, f"one of {', '.join(known)}", option)
        if key in ("casefold", "bag", "counts"):
            if value not in ("true", "false", ""):
                raise ParameterError.of("shingle", key, "true or false", value)
            chosen[key] = value != "false"
        else:
            chosen[key] = int(value) if key in ("bits", "k") and value.isdecimal() else value
    return kind(**{"k": k, **chosen})


def shingler_of(parameters: dict[str, Any]) -> Shingler:
    """Return the shingler whose `to_dict` is among these parameters, as run.json has them.

    >>> shingler_of({**Tokens(separator=",").to_dict(), "threshold": 0.8})
    Tokens(k=1, casefold=False, normalize=None, bits=64, bag=False, separator=',', counts=False)
    """
    name, _, number = parameters["shingle"].partition(":")
    kind = SHINGLERS[name]
    known = {field.name for field in fields(kind)} - {"k"}
    k = parameters["k"] if name == "stopwords" else int(number or 1)
    return kind(k=k, **{key: parameters[key] for key in known if key in parameters})


def choose_k(lengths: Any, *, alphabet: int = 20, rarity: float = 0.01) -> int:
    """Return the smallest k with which a given shingle is rare in a typical document (S6; §3.2.2).

    Text behaves as if it had about 20 letters, so there are 20**k shingles to speak of. A document of L characters
    has at
    most L of them; k is right when L / 20**k ≤ rarity. L is the 90th percentile of the lengths, so that long
    documents do not look alike by chance. Gives 5 for e-mails and 6 to 7 for long papers; k is kept between 3 and 12.

    >>> choose_k([2_000, 3_000, 4_000]), choose_k(["a short note"]), choose_k([300_000])
    (5, 3, 6)
    """
    if alphabet < 2:
        raise ParameterError.of("choose_k", "alphabet", "at least 2", alphabet)
    if not 0 < rarity < 1:
        raise ParameterError.of("choose_k", "rarity", "in (0, 1)", rarity)
    if isinstance(lengths, str):
        raise ParameterError.of("choose_k", "lengths", "a list of lengths or of documents", lengths)
    numbers = np.array([len(item) if isinstance(item, str) else item for item in lengths], float)
    if len(numbers) == 0:
        return 5
    typical = max(1.0, float(np.quantile(numbers, 0.9)))
    return min(12, max(3, math.ceil(math.log(typical / rarity, alphabet))))
