"""Numbers with their nouns, for reports."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number and its noun.

    >>> counted(1, "pair"), counted(2000, "pair"), counted(0, "match", "matches")
    ('1 pair', '2,000 pairs', '0 matches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
