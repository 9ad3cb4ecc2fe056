"""Numbers and texts as people read them."""

from __future__ import annotations

import unicodedata
from typing import Any

HIDDEN = {
    **{code: 0x2400 + code for code in range(32) if code not in (9, 10)},
    0x7F: 0x2421,
    **dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
    **dict.fromkeys([0x061C, 0x200E, 0x200F, 0xFEFF, 0x2028, 0x2029], 0xFFFD),
    **dict.fromkeys(range(0xD800, 0xE000), 0xFFFD),
    13: None,
}
"""Characters that would change how a page looks without being seen: each is shown by a sign, carriage returns not."""

EMPTY = "(empty)"
"""Stands for a text without words."""
LONGEST_NAME = 160
"""Characters of an id or a name that are shown."""


def visible(text: str) -> str:
    r"""Return a text with characters that are not seen replaced by signs.

    >>> visible("a\x00b\u202ec")
    'a␀b�c'
    """
    return text.translate(HIDDEN)


def short(text: Any, longest: int = LONGEST_NAME) -> str:
    """Return a text, or its beginning and its end with an ellipsis between them.

    >>> short("abcdefghij", 5)
    'ab…ij'
    """
    whole = str(text)
    if len(whole) <= longest:
        return whole
    half = (longest - 1) // 2
    return f"{whole[:half]}…{whole[-half:]}"


def line(text: str, longest: int = 120) -> str:
    """Return the first words of a text, in one line."""
    words = " ".join(text[: 4 * longest].split())
    if len(words) <= longest and len(text) <= 4 * longest:
        return words
    return words[:longest].rstrip() + "…"


def share(part: float, whole: float) -> str:
    """Return a part in percent, without claiming all or nothing where it is not so.

    >>> share(1, 3), share(1, 100_000), share(99_999, 100_000), share(0, 5), share(97, 100)
    ('33 %', 'under 0.1 %', 'over 99.9 %', '0 %', '97 %')
    """
    if whole <= 0 or part <= 0:
        return "0 %"
    percent = 100 * part / whole
    if percent < 0.1:
        return "under 0.1 %"
    if part < whole and percent > 99.9:
        return "over 99.9 %"
    return f"{percent:.1f} %" if percent < 9.95 or 99 < percent < 100 else f"{percent:.0f} %"


def signed(number: float, digits: int = 1) -> str:
    """Return a number with its sign.

    >>> signed(-2.04), signed(0.0), signed(13)
    ('−2.0', '0.0', '+13.0')
    """
    told = f"{number:+.{digits}f}".replace("-", "−")
    return told if float(f"{number:.{digits}f}") else told[1:]


def duration(seconds: float) -> str:
    """Return a time.

    >>> duration(0.04), duration(44.6), duration(150), duration(7260)
    ('under a second', '45 seconds', '2.5 minutes', '2.0 hours')
    """
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.1f} seconds" if seconds < 9.95 else f"{seconds:.0f} seconds"
    if seconds < 5400:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours"


def large(number: float) -> str:
    """Return a large number in words.

    >>> large(950), large(285_306_328), large(4.99e13)
    ('950', '285 million', '50 trillion')
    """
    for unit, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= unit:
            rest = number / unit
            return f"{rest:,.0f} {name}" if rest >= 9.95 else f"{rest:.1f} {name}"
    return f"{number:,.0f}"


def is_blank(text: str) -> bool:
    """Return whether a text has nothing to read."""
    return all(unicodedata.category(char)[0] in "ZC" for char in text[:10_000])
