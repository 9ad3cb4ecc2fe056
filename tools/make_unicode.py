"""Write src/likewise/shingle/unicode.npz: the class and case folding of every code point, from Python's unicodedata.

    python tools/make_unicode.py

The table is shipped, not computed at run time, so that the same text gives the same shingles under every version of
Python.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import numpy as np

OTHER, WORD, SOLO, MARK, SPACE = range(5)

# Scripts written without spaces: each letter, with the marks that follow it, is a separate word.
SOLO_NAMES = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC",
    "HIRAGANA LETTER",
    "KATAKANA LETTER",
    "HALFWIDTH KATAKANA LETTER",
    "THAI CHARACTER",
    "LAO LETTER",
    "LAO VOWEL",
    "KHMER LETTER",
    "KHMER INDEPENDENT VOWEL",
    "MYANMAR LETTER",
    "YI SYLLABLE",
    "TANGUT IDEOGRAPH",
    "NUSHU CHARACTER",
)


def kind(point: int) -> int:
    """Classify one code point."""
    char = chr(point)
    category = unicodedata.category(char)
    if char.isspace():
        return SPACE
    if category in ("Mn", "Mc", "Me") or point in (0x30FC, 0xFF70):  # the kana's long-vowel sign
        return MARK
    if category in ("Lo", "Nl", "Lm") and unicodedata.name(char, "").startswith(SOLO_NAMES):
        return SOLO
    return WORD if char.isalnum() or char == "_" else OTHER


def main() -> None:
    """Write the table."""
    kinds = np.array([kind(point) for point in range(0x110000)], dtype=np.uint8)
    starts = np.flatnonzero(np.r_[True, kinds[1:] != kinds[:-1]]).astype(np.uint32)
    points, folds = [], []
    for point in range(0x110000):
        folded = [ord(char) for char in chr(point).casefold()]
        if folded != [point]:
            points.append(point)
            folds.append([*folded, 0, 0][:3])
    target = Path(__file__).parent.parent / "src" / "likewise" / "shingle" / "unicode.npz"
    np.savez_compressed(
        target,
        starts=starts,
        kinds=kinds[starts],
        points=np.array(points, np.uint32),
        folds=np.array(folds, np.uint32),
        version=np.array(unicodedata.unidata_version),
    )
    print(
        f"{target.name}: Unicode {unicodedata.unidata_version}, {len(starts)} runs, {len(points)} folded points",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
