"""Corpora on which the work of a search by hashing tends to be quadratic, or its recall to fail, by kind and size."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from corpus import DATA, write

SHARED = [f"t{i}" for i in range(100)]
SYLLABLES = [
    "ma",
    "ri",
    "an",
    "na",
    "jo",
    "se",
    "ka",
    "lo",
    "pe",
    "ter",
    "sa",
    "ra",
    "mi",
    "el",
    "om",
    "as",
    "da",
    "vid",
    "li",
    "ro",
]

Texts = Iterator[str]


@dataclass(frozen=True)
class Hostile:
    """A kind of corpus: its texts, the options of `dedup`, and how shingles are made (by words or characters)."""

    texts: Callable[[int], Texts]
    options: tuple[str, ...] = ()
    shingle: tuple[str, int] = ("words", 5)
    threshold: float = 0.8


def _words(chance: random.Random, count: int, of: int) -> list[str]:
    return [f"u{number}" for number in chance.choices(range(of), k=count)]


def template(documents: int, own: int) -> Texts:
    """A template of 100 words, and `own` words of each document."""
    for i in range(documents):
        yield " ".join([*SHARED, *(f"d{i}w{j}" for j in range(own))])


def uneven(documents: int) -> Texts:
    """A template of 100 words and 6 to 17 of ten thousand: similarities on both sides of the threshold."""
    chance = random.Random(1)
    for _ in range(documents):
        yield " ".join([*SHARED, *_words(chance, chance.randrange(6, 18), 10_000)])


def vocabulary(documents: int, shared: int, own: int, of: int) -> Texts:
    """A template, and words of a small vocabulary."""
    chance = random.Random(1)
    for _ in range(documents):
        yield " ".join([*SHARED[:shared], *_words(chance, own, of)])


def names(documents: int) -> Texts:
    """First and last names of a few syllables."""
    chance = random.Random(1)
    for _ in range(documents):
        first, last = (
            chance.choices(SYLLABLES, k=chance.randrange(2, 4)),
            chance.choices(SYLLABLES, k=chance.randrange(2, 5)),
        )
        yield "".join(first) + " " + "".join(last)


def fuzzy(documents: int, kept: float) -> Texts:
    """Every word of the template is there with this probability."""
    chance = random.Random(1)
    for _ in range(documents):
        yield " ".join(word for word in SHARED if chance.random() < kept)


def cliques(documents: int, members: int) -> Texts:
    """Groups of near copies: up to four of a hundred words are changed."""
    chance = random.Random(1)
    for i in range(documents):
        words = [f"c{i // members}w{j}" for j in range(100)]
        for place in chance.choices(range(100), k=chance.randrange(5)):
            words[place] = f"x{chance.randrange(10**6)}"
        yield " ".join(words)


def power_law(documents: int) -> Texts:
    """The k-th group of near copies has a share of the documents in proportion to 1/k."""
    chance = random.Random(1)
    for _ in range(documents):
        group = int(documents ** chance.random())
        words = [f"c{group}w{j}" for j in range(100)]
        for place in chance.choices(range(100), k=chance.randrange(5)):
            words[place] = f"x{chance.randrange(10**6)}"
        yield " ".join(words)


def repeated(documents: int) -> Texts:
    """One word, again and again."""
    for i in range(documents):
        yield "spam " * (i % 1000)


def empty(documents: int) -> Texts:
    """Nothing, or blanks."""
    for i in range(documents):
        yield " " * (i % 3)


BY_WORD = ("--shingle", "words:1"), ("words", 1)
"""The options and the shingles of kinds that are compared by their words."""
KINDS = {
    "template 50 %": Hostile(partial(template, own=100)),
    "template 85 %": Hostile(partial(template, own=18)),
    "template 90 %, just below the threshold": Hostile(partial(template, own=13)),
    "template 90 %, exactly at the threshold": Hostile(partial(template, own=12)),
    "template 99 %": Hostile(partial(template, own=1)),
    "uneven template, around the threshold": Hostile(uneven),
    "small vocabulary above the threshold": Hostile(partial(vocabulary, shared=100, own=10, of=1000), *BY_WORD),
    "small vocabulary around the threshold": Hostile(partial(vocabulary, shared=60, own=10, of=1000), *BY_WORD),
    "short names": Hostile(names, ("--shingle", "chars:3", "--threshold", "0.5"), ("chars", 3), 0.5),
    "fuzzy template 90 %": Hostile(partial(fuzzy, kept=0.9), *BY_WORD),
    "fuzzy template 85 %, astride": Hostile(partial(fuzzy, kept=0.85), *BY_WORD),
    "near-cliques of 100": Hostile(partial(cliques, members=100)),
    "near-cliques of 2,000": Hostile(partial(cliques, members=2000)),
    "power-law clusters": Hostile(power_law),
    "one word repeated": Hostile(repeated),
    "empty": Hostile(empty),
}
"""Two documents of a template of 100 words with k of their own have a similarity of 96/(96 + 2k), by five words."""


def corpus(kind: str, documents: int, folder: Path = DATA) -> Path:
    """Write a corpus, unless it is there."""
    short = "".join(letter if letter.isalnum() else "-" for letter in kind.split(",")[0])
    number = list(KINDS).index(kind)
    target = folder / f"hostile-{number}-{short}-{documents}.parquet"
    if not target.exists():
        write(((f"{kind}/{i}", text) for i, text in enumerate(KINDS[kind].texts(documents))), target)
    return target
