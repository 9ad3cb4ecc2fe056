"""Text that is safe to print on a terminal."""

from __future__ import annotations

import re

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, separators of lines, changes of direction and halves of surrogate pairs."""

SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escaped(text: str) -> str:
    r"""Return text with every character that could change the state of a terminal as its escape sequence.

    >>> escaped("a\x1b[31mb\tc\u202ed")
    'a\\x1b[31mb\\tc\\u202ed'
    """
    return UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return SHORT.get(found[0]) or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
