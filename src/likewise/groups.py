"""Groups of identical items: copies are collapsed to one, so that a million copies cost one (E1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.arrays import Hashes, Ints
from likewise.kernels.pairs import label_equal, radix_sort32


@dataclass(frozen=True)
class Groups:
    """Rows that are copies of each other: group g holds the rows members[offsets[g]:offsets[g + 1]], ascending.

    Groups are numbered by their first row; `of` is the group of every row.
    """

    of: Ints
    members: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def first(self) -> Ints:
        """The first row of every group."""
        return self.members[self.offsets[:-1]]

    @property
    def sizes(self) -> Ints:
        """The number of copies in every group."""
        return np.diff(self.offsets)

    @classmethod
    def by_digest(cls, digests: Hashes) -> Groups:
        """Group the rows whose 128-bit fingerprints agree."""
        return cls.by_label(labels(digests))

    @classmethod
    def by_label(cls, of: Ints) -> Groups:
        """Group rows by the number of their group; groups must be numbered by first row."""
        counts = np.bincount(of) if len(of) else np.zeros(0, np.int64)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(of, np.argsort(of, kind="stable"), offsets)

    def merged(self, digests: Hashes) -> Groups:
        """Join groups whose own fingerprints agree."""
        return Groups.by_label(labels(digests)[self.of])


def labels(digests: Hashes) -> Ints:
    """Number rows by the group of equal fingerprints they are in; groups are numbered by their first row.

    >>> labels(np.array([[7, 1], [9, 1], [7, 1], [7, 2]], np.uint64)).tolist()
    [0, 1, 0, 2]
    """
    first = np.empty(len(digests), np.int64)
    order, _ = radix_sort32(digests[:, 0].astype(np.uint32))
    label_equal(digests, order, first)
    new = first == np.arange(len(first))
    return (np.cumsum(new) - 1)[first]
