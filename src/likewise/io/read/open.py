"""The bytes of input files: decompression, whole files, and errors that name the file."""

from __future__ import annotations

import bz2
import lzma
import os
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import openfiles
from likewise.base.memory import A_ROW
from likewise.errors import FormatError, InputError, LikewiseError, MissingInput
from likewise.io.disk import atomic, temporary_file
from likewise.io.read.base import MIB
from likewise.io.read.find import InputFile, reason

BOM = b"\xef\xbb\xbf"
BLOCK = 8 * MIB
_STEP = 1 << 16
_MOST = 1 << 20
"""Bytes decompressed at a time: 64 kB of gzip can become 64 MB, and of bz2 gigabytes."""

GROWTH = 200
"""A compressed file may become this many times as large in memory; text becomes 3 to 20 times as large."""
SMALL = 64 * MIB
"""Decompressed bytes that are accepted whatever the size of the file."""
BROKEN = (
    OSError, EOFError, pa.ArrowException, zlib.error, lzma.LZMAError, struct.error, ValueError, OverflowError,
    IndexError, KeyError, RuntimeError,
)  # fmt: skip
"""What the readers of a damaged file raise."""


@contextmanager
def input_errors(file: InputFile) -> Iterator[None]:
    """Turn the errors of the system and of the readers into an InputError that names the file."""
    try:
        with openfiles.reading(file.name):
            yield
    except LikewiseError as error:
        if isinstance(error, FormatError):
            _check_remote(file)
        raise
    except FileNotFoundError as error:
        raise MissingInput(f"{file.name}: {reason(error)}") from error
    except PermissionError as error:
        raise InputError(f"{file.name}: {reason(error)}") from error
    except MemoryError as error:
        words = f" ({error})" if str(error) else ""
        raise InputError(
            f"{file.name}: reading it takes more memory than is available{words}; is it damaged?"
        ) from error
    except BROKEN as error:
        _check_remote(file)
        kind = file.format if file.compression is None else f"{file.compression} {file.format}"
        words = " ".join(str(error).split()).rstrip(".")
        raise FormatError(
            f"{file.name}: cannot be read as {kind}: {words}; create or download the file again"
        ) from error


def _check_remote(file: InputFile) -> None:
    """Raise if a file is damaged because it is a remote object of which two versions were read."""
    if file.remote is not None:
        file.remote.check()


def chunks(file: InputFile, size: int = BLOCK) -> Iterator[bytes]:
    """Yield the decompressed bytes of a file, `size` or a little more at a time.

    If a compressed file is truncated, everything that could be decompressed comes first, then the error.
    """
    with input_errors(file), open(file.fetched(), "rb") as raw:
        if file.compression is None:
            while chunk := raw.read(size):
                yield chunk
            return
        parts: list[bytes] = []
        held = 0
        try:
            for part in decompressed(raw, file):
                parts.append(part)
                held += len(part)
                if held >= size:
                    yield b"".join(parts)
                    parts, held = [], 0
        except (FormatError, *BROKEN) as error:
            if parts:
                yield b"".join(parts)
            if isinstance(error, FormatError):
                raise
            raise FormatError(
                f"{file.name}: the {file.compression} data are damaged: {error}; create or download the file again"
            ) from error
        if parts:
            yield b"".join(parts)


def decompressed(raw: IO[bytes], file: InputFile) -> Iterator[bytes]:
    """Yield the decompressed content of an open file, a little at a time."""
    if file.bytes == 0:
        raise FormatError(f"{file.name}: the file is empty, not {file.compression}; create or download it again")
    broken_off = FormatError(
        f"{file.name}: the {file.compression} data end too early; create or download the file again"
    )
    if file.compression == "zstd":
        stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")
        try:
            while part := stream.read(_STEP):
                yield part
        except OSError as error:
            raise broken_off if "runcated" in str(error) else error from error
        return
    makers: dict[str | None, Callable[[], Any]] = {
        "gzip": lambda: zlib.decompressobj(wbits=31),
        "bz2": bz2.BZ2Decompressor,
        "xz": lzma.LZMADecompressor,
    }
    make = makers[file.compression]
    member = None
    while data := raw.read(_STEP):
        while data:
            if member is None:
                data = data.lstrip(b"\0")  # files may be padded with zeros after a member
                if not data:
                    break
                member = make()
            part = member.decompress(data, _MOST)
            while part:
                yield part
                part = b"" if member.eof else member.decompress(getattr(member, "unconsumed_tail", b""), _MOST)
            data = b""
            if member.eof:
                data = member.unused_data
                member = None
    if member is not None:
        raise broken_off


def check_row(where: str, size: int, limit: int) -> None:
    """Raise if a row or document is too long for the memory that the user allows."""
    if size > limit:
        raise FormatError(
            f"{where}: one document of more than {limit:,} bytes; it takes about {A_ROW} times its size in memory: "
            f"allow more than {size * A_ROW / MIB:,.0f} MiB ('memory'), or split it"
        )


def check_growth(file: InputFile, size: int, what: str = "the file") -> None:
    """Raise if so many decompressed bytes of a small file must be held at once that it was made to fill the memory."""
    if file.compression is not None and size > max(SMALL, GROWTH * file.bytes):
        raise FormatError(
            f"{file.name}: {what} becomes more than {GROWTH} times as large as the compressed file ({file.bytes:,}"
            " bytes); if that is what you want, decompress it first"
        )


def read_all(file: InputFile, limit: int = 1 << 62) -> bytes:
    """Return the whole decompressed content of a file, of `limit` bytes at most."""
    check_row(file.name, file.bytes if file.compression is None else 0, limit)
    if file.compression is not None:
        parts, size = [], 0
        for part in chunks(file):
            parts.append(part)
            size += len(part)
            check_growth(file, size)
            check_row(file.name, size, limit)
        return b"".join(parts)
    with input_errors(file), open(file.fetched(), "rb") as raw:
        return raw.read()


def unpacked(file: InputFile, owner: object) -> Path:
    """Return a path with the decompressed content; a temporary file is removed with its owner."""
    if file.compression is None:
        return file.path if file.format == "parquet" else file.fetched()
    handle, path = temporary_file(owner)
    with os.fdopen(handle, "wb") as out:
        size = 0
        for chunk in chunks(file):
            size += len(chunk)
            check_growth(file, size)
            out.write(chunk)
    return path


def copied(file: InputFile, target: Path) -> None:
    """Copy a file byte for byte, all or nothing."""
    with open(file.fetched(), "rb") as content, atomic(target, durable=False, parents=True) as out:
        shutil.copyfileobj(content, out, MIB)


def mapped_array(file: InputFile) -> NDArray[Any]:
    """Map the array in a .npy file to memory; its header is parsed as a literal, and objects are never unpickled."""
    try:
        with openfiles.reading(file.name):
            array = np.lib.format.open_memmap(file.fetched(), mode="r")
    except Exception as error:  # the parser of Python literals raises whatever it likes for a damaged header
        words = " ".join(str(error).split())[:200]
        raise FormatError(
            f"{file.name}: this is not a whole .npy file of numbers: {words}; create or download the file again"
        ) from error
    stored = file.bytes - array.offset
    if stored != array.nbytes:
        raise FormatError(
            f"{file.name}: the header says {array.nbytes:,} bytes of numbers, of shape {array.shape}, and the file has "
            f"{stored:,}; create or download the file again"
        )
    return array
