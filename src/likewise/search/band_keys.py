"""Band keys of a collection, in memory or in a file with one column per band."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.base.arrays import Ints
from likewise.io.disk import write_array

Matrix = NDArray[np.uint32]


class Keys(ABC):
    """The key of every item in every band."""

    def __init__(self, items: int, bands: int) -> None:
        self.items = items
        self.bands = bands

    @abstractmethod
    def column(self, band: int) -> Matrix:
        """Return the keys of one band."""

    @abstractmethod
    def chosen(self, rows: Ints) -> Keys:
        """Return the keys of these items only."""

    @property
    def matrix(self) -> Matrix | None:
        """All keys, one row per item, if they are in memory."""
        return None

    def save(self, path: Path) -> None:
        """Write the keys to a file, as StoredKeys reads them."""
        with open(path, "wb") as out:
            for band in range(self.bands):
                write_array(out, self.column(band))


class WrittenKeys(Keys):
    """Keys that are written, some items at a time."""

    @abstractmethod
    def room(self, place: slice) -> Matrix:
        """Return an array for the keys of these items, one row per item."""

    @abstractmethod
    def put(self, place: slice, block: Matrix) -> None:
        """Store what was written to the array of `room`."""

    @abstractmethod
    def put_column(self, place: slice, band: int, column: Matrix) -> None:
        """Write the keys of these items in one band."""


class HeldKeys(WrittenKeys):
    """Keys in memory."""

    def __init__(self, matrix: Matrix) -> None:
        super().__init__(*matrix.shape)
        self._matrix = matrix

    @property
    def matrix(self) -> Matrix:
        """All keys, one row per item."""
        return self._matrix

    def room(self, place: slice) -> Matrix:
        """Return a view."""
        return self._matrix[place]

    def put(self, place: slice, block: Matrix) -> None:
        """Do nothing: `room` returned a view."""

    def put_column(self, place: slice, band: int, column: Matrix) -> None:
        """Copy into one band."""
        self._matrix[place, band] = column

    def column(self, band: int) -> Matrix:
        """Copy one band."""
        return np.ascontiguousarray(self._matrix[:, band])

    def chosen(self, rows: Ints) -> HeldKeys:
        """Copy some rows."""
        return self if len(rows) == self.items else HeldKeys(self._matrix[rows])


class StoredKeys(WrittenKeys):
    """Keys in a file: band after band, four bytes per item."""

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
        for band in range(self.bands):
            self.put_column(place, band, block[:, band])

    def put_column(self, place: slice, band: int, column: Matrix) -> None:
        """Write to one band of the file."""
        assert self._handle is not None
        data, at = memoryview(column.tobytes()), 4 * (band * self._length + place.start)
        while data:
            written = os.pwrite(self._handle, data, at)
            data, at = data[written:], at + written

    @property
    def path(self) -> Path | None:
        """The file, if these are all of its keys."""
        return self._path if self._rows is None else None

    def close(self) -> None:
        """Close the file after writing."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def column(self, band: int) -> Matrix:
        """Read one band."""
        column = np.fromfile(self._path, np.uint32, self._length, offset=4 * band * self._length)
        return column if self._rows is None else column[self._rows]

    def moved(self, path: Path) -> StoredKeys:
        """Return the same keys after their file was moved."""
        return StoredKeys(path, self._length, self.bands, self._rows)

    def chosen(self, rows: Ints) -> StoredKeys:
        """Return the keys of some rows, without reading them yet."""
        if len(rows) == self.items:
            return self
        return StoredKeys(self._path, self._length, self.bands, rows if self._rows is None else self._rows[rows])


class ShiftedKeys(WrittenKeys):
    """The keys of a part of a collection, from item `start` of the whole."""

    def __init__(self, whole: WrittenKeys, start: int, items: int) -> None:
        super().__init__(items, whole.bands)
        self._whole = whole
        self._start = start

    def _place(self, place: slice) -> slice:
        return slice(place.start + self._start, place.stop + self._start)

    def room(self, place: slice) -> Matrix:
        """Return an array of the whole."""
        return self._whole.room(self._place(place))

    def put(self, place: slice, block: Matrix) -> None:
        """Write to the whole."""
        self._whole.put(self._place(place), block)

    def put_column(self, place: slice, band: int, column: Matrix) -> None:
        """Write to one band of the whole."""
        self._whole.put_column(self._place(place), band, column)

    def column(self, band: int) -> Matrix:
        """Return the part's keys of one band."""
        return self._whole.column(band)[self._start : self._start + self.items]

    def chosen(self, rows: Ints) -> Keys:
        """Return the keys of these items only."""
        return self._whole.chosen(rows + self._start)
