"""Text decoded as Latin-1 or Windows-1252 that was UTF-8 (mojibake), decoded again.

Such text consists of few different letters, so that any two values seem alike.
"""

from __future__ import annotations

import re

SPECIAL = {bytes([byte]).decode("cp1252"): byte for byte in range(0x80, 0xA0) if byte not in b"\x81\x8d\x8f\x90\x9d"}
"""What Windows-1252 has where Latin-1 has control characters, by letter."""

AFTER = "\x80-\xbf" + "".join(map(re.escape, SPECIAL))
"""The second to last bytes of a sequence of UTF-8, as they look."""

SEQUENCE = re.compile(f"[\xc2-\xdf][{AFTER}]|[\xe0-\xef][{AFTER}]{{2}}|[\xf0-\xf4][{AFTER}]{{3}}")
"""A letter of UTF-8 of two, three or four bytes, as it looks."""

FEWEST = 2
"""Sequences that a text needs: one may be by chance, such as a capital with an accent before a quotation mark."""


def repaired(text: str) -> str:
    """Return the text with mojibake decoded as UTF-8; other text as it is.

    >>> repaired("Ð´Ð°"), repaired("Ã©tÃ©"), repaired("CAFÉ”"), repaired("été")
    ('да', 'été', 'CAFÉ”', 'été')
    """
    found = sum(1 for _ in SEQUENCE.finditer(text))
    return SEQUENCE.sub(_decoded, text) if found >= FEWEST else text


def _decoded(match: re.Match[str]) -> str:
    found = bytes(SPECIAL.get(letter, ord(letter)) for letter in match[0] if letter in SPECIAL or ord(letter) < 256)
    try:
        return found.decode()
    except UnicodeDecodeError:
        return match[0]
