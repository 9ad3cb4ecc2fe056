"""Whether the bytes of a file are text."""

from __future__ import annotations

MOST_NULS = 1 / 1000
"""Fraction of NUL bytes above which a file is binary: programs have a tenth, compressed data 1 in 256, and damaged text
a few."""

MAGIC = (
    b"\x7fELF", b"MZ", b"\xcf\xfa\xed\xfe", b"\xce\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\0asm",
    b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\0", b"MM\0*", b"OggS", b"ID3",
    b"PK\x03\x04", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf",
    b"%PDF-", b"\xd0\xcf\x11\xe0", b"SQLite format 3\0", b"PAR1", b"ARROW1", b"\x93NUMPY",
)  # fmt: skip
"""How programs, images, sounds, archives, PDF and data files begin."""


def is_binary(data: bytes) -> bool:
    """Return whether bytes are those of a binary file: NUL bytes, and many of them or the beginning of a known format.

    >>> is_binary(b"a\\0b"), is_binary(b"word " * 20_000 + b"\\0"), is_binary(b"GIF8 is how images begin")
    (True, False, False)
    """
    if b"\0" not in data:
        return False
    return data.startswith(MAGIC) or data.count(b"\0") > MOST_NULS * len(data)
