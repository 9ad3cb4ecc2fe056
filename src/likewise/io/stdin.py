"""Standard input, "-": JSON lines or Arrow, kept in a temporary file that is read as any other."""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from likewise.errors import FormatError, MissingInput
from likewise.io.disk import disk_errors, hidden_file, register

NAME = "-"
"""How standard input is named, by users and in messages."""
HEAD = 1 << 20
"""Bytes by which the format is recognised; a compressed block is shorter."""
PACKED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz"}
"""How compressed data begin."""
OTHERS = {
    b"PAR1": "Parquet, whose index is at its end",
    b"WARC/": "WARC",
    b"\x93NUMPY": "an array of NumPy",
    b"PK\x03\x04": "a ZIP archive",
    b"<": "a page or XML",
}
"""How other formats begin that are likely to be sent."""


@dataclass(frozen=True, eq=False)
class PipedFile:
    """The file with what came by standard input, and what it is."""

    path: Path
    format: str
    compression: str | None
    bytes: int

    @property
    def relative(self) -> str:
        """The name under which kept rows are written."""
        endings = {"gzip": ".gz", "zstd": ".zst", "bz2": ".bz2", "xz": ".xz"}
        kind = "txt" if self.format == "text" else self.format
        return f"stdin.{kind}{endings.get(self.compression or '', '')}"


_folder: list[Path] = []
_read: list[PipedFile] = []


def keep_in(folder: Path | None) -> None:
    """Say where standard input is kept; by default in the folder of temporary files."""
    _folder[:] = [] if folder is None else [folder]


def standard_input(plain: bool = False) -> PipedFile:
    """Return the file with standard input, which is read when this is asked for the first time.

    plain: it is text, whatever it looks like.
    """
    if not _read:
        _read.append(_spooled())
    piped = _read[0]
    return replace(piped, format="text") if plain else _checked(piped)


def _spooled() -> PipedFile:
    stream: IO[bytes] | None = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise MissingInput(f"{NAME}: there is no standard input; name a file")
    if stream.isatty():
        raise MissingInput(f"{NAME}: standard input is a terminal; send it something, as in: cat a.jsonl | likewise …")
    path = hidden_file(_folder[0] if _folder else None, ".stdin")
    register(path, _read_by)
    head, size = b"", 0
    with open(path, "wb") as out:
        while block := stream.read(HEAD):
            head = head or block
            size += len(block)
            with disk_errors(path):
                out.write(block)
    packed = next((kind for start, kind in PACKED.items() if head.startswith(start)), None)
    content = _unpacked(head, packed)
    is_arrow = content.startswith((b"\xff\xff\xff\xff", b"ARROW1"))
    return PipedFile(path, "arrow" if is_arrow else "jsonl", packed, size)


class _Reader:
    """Owns the file until the process ends."""


_read_by = _Reader()


def _unpacked(head: bytes, packed: str | None) -> bytes:
    """Return the first bytes of compressed data, if they can be decompressed."""
    makers: dict[str, Any] = {
        "gzip": lambda: zlib.decompressobj(wbits=31),
        "bz2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    try:
        if packed == "zstd":
            return bytes(pa.CompressedInputStream(pa.BufferReader(head), "zstd").read(64))
        return head if packed is None else bytes(makers[packed]().decompress(head, 64))
    except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException):
        return b""  # whoever reads it all says what is wrong


def _checked(piped: PipedFile) -> PipedFile:
    """Raise if what came is neither Arrow nor looks like JSON lines."""
    if piped.format == "arrow" or piped.bytes == 0:
        return piped
    with open(piped.path, "rb") as file:
        content = _unpacked(file.read(HEAD), piped.compression)
    start = content.removeprefix(b"\xef\xbb\xbf").lstrip()[:64]
    if not start or start.startswith(b"{"):
        return piped
    other = next((name for begin, name in OTHERS.items() if start.startswith(begin)), f"{start[:20]!r}")
    raise FormatError(
        f"{NAME}: standard input must be JSON lines or Arrow, and this is {other}; write it to a file and name that"
    )
