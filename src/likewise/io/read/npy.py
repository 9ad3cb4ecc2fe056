"""Arrays in .npy files, mapped to memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base import openfiles
from likewise.errors import FormatError
from likewise.io.read.find import InputFile


def mapped_array(file: InputFile) -> NDArray[Any]:
    """Map the array in a .npy file to memory; its header is parsed as a literal, and objects are never unpickled."""
    try:
        with openfiles.reading(file.name):
            array = np.lib.format.open_memmap(file.path, mode="r")
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
