"""Numbers with their nouns, for reports."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number and its noun.

    >>> counted(1, "pair"), counted(2000, "pair"), counted(0, "match", "matches")
    ('1 pair', '2,000 pairs', '0 matches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def size(amount: float) -> str:
    """Write a number of bytes for people.

    >>> size(503_316_480), size(12), size(5e13)
    ('503 MB', '12 bytes', '50.0 TB')
    """
    units = ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:,.0f} {units[0]}" if amount >= 100 or units[0] == "bytes" else f"{amount:.1f} {units[0]}"


UNSEEN = dict.fromkeys((*range(32), *range(127, 160)), "\N{REPLACEMENT CHARACTER}") | {9: " ", 10: "\n"}
"""Control characters could change the state of a terminal. Each is replaced by one character, which keeps offsets."""
UNSAFE = UNSEEN | dict.fromkeys(
    (*range(0xD800, 0xE000), 0x2028, 0x2029, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)),
    "\N{REPLACEMENT CHARACTER}",
)
"""Halves of surrogate pairs, which cannot be encoded, separators of lines and changes of direction are unsafe too."""


def visible(text: object) -> str:
    """Return a text as it can be shown: without what a terminal acts upon, or what cannot be written to a file.

    >>> visible("a\\x1b[2Jb")
    'a\N{REPLACEMENT CHARACTER}[2Jb'
    """
    return str(text).translate(UNSAFE)


def shortened(text: object, most: int) -> str:
    """Return a text on one line, cut to so many characters.

    >>> shortened("to be  or not", 8)
    'to be o…'
    """
    line = " ".join(visible(text).split())
    return line if len(line) <= most else line[: most - 1] + "…"
