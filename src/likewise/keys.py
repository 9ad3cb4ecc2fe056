"""Band keys of a collection, in memory or in a file with one column a band."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import Ints

Matrix = NDArray[np.uint32]


class Keys(ABC):
    """The key of every item in every band."""

    def __init__(self, items: int, bands: int) -> None:
        self.items = items
        self.bands = bands

    @abstractmethod
    def room(self, place: slice) -> Matrix:
        """Return an array to write the keys of these items to, one row an item."""

    @abstractmethod
    def put(self, place: slice, block: Matrix) -> None:
        """Take over what was written to the room of these items."""

    @abstractmethod
    def column(self, band: int) -> Matrix:
        """Return the keys of one band."""

    @abstractmethod
    def chosen(self, rows: Ints) -> Keys:
        """Return the keys of these items only."""

    @property
    def matrix(self) -> Matrix | None:
        """All keys, one row an item, if they are in memory."""
        return None

    def save(self, path: Path) -> None:
        """Write the keys to a file, as StoredKeys reads them."""
        with open(path, "wb") as out:
            for band in range(self.bands):
                self.column(band).tofile(out)


class HeldKeys(Keys):
    """Keys in memory."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__(*matrix.shape)
        self._matrix = matrix

    @property
    def matrix(self) -> Matrix:
        """All keys, one row an item."""
        return self._matrix

    def room(self, place: slice) -> Matrix:
        """Return a view."""
        return self._matrix[place]

    def put(self, place: slice, block: Matrix) -> None:
        """Do nothing: the room was a view."""

    def column(self, band: int) -> Matrix:
        """Copy one band."""
        return np.ascontiguousarray(self._matrix[:, band])

    def chosen(self, rows: Ints) -> HeldKeys:
        """Copy some rows."""
        return self if len(rows) == self.items else HeldKeys(self._matrix[rows])


class StoredKeys(Keys):
    """Keys in a file: band after band, four bytes an item."""

    def __init__(self, path: Path, items: int, bands: int, rows: Ints | None = None) -> None:
        super().__init__(items if rows is None else len(rows), bands)
        self._path = path
        self._length = items
        self._rows = rows
        self._handle: int | None = None

    @classmethod
    def create(cls, path: Path, items: int, bands: int) -> StoredKeys:
        """Make the file."""
        keys = cls(path, items, bands)
        keys._handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.ftruncate(keys._handle, 4 * items * bands)
        return keys

    def room(self, place: slice) -> Matrix:
        """Return a new array."""
        return np.empty((place.stop - place.start, self.bands), np.uint32)

    def put(self, place: slice, block: Matrix) -> None:
        """Write the array to the file, band by band."""
        assert self._handle is not None
        for band in range(self.bands):
            os.pwrite(self._handle, block[:, band].tobytes(), 4 * (band * self._length + place.start))

    def close(self) -> None:
        """Close the file: all is written."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def column(self, band: int) -> Matrix:
        """Read one band."""
        column = np.fromfile(self._path, np.uint32, self._length, offset=4 * band * self._length)
        return column if self._rows is None else column[self._rows]

    def moved(self, path: Path) -> StoredKeys:
        """Return the same keys, whose file has been moved."""
        return StoredKeys(path, self._length, self.bands, self._rows)

    def chosen(self, rows: Ints) -> StoredKeys:
        """Remember which rows are meant."""
        if len(rows) == self.items:
            return self
        return StoredKeys(self._path, self._length, self.bands, rows if self._rows is None else self._rows[rows])
