"""Groups of identical items: copies are collapsed to one, so that a million copies cost one (E1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.arrays import Hashes, Ints


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
        n = len(digests)
        if n == 0:
            return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(1, np.int64))
        by_value = np.lexsort((digests[:, 1], digests[:, 0]))
        arranged = digests[by_value]
        new = np.concatenate([[True], (arranged[1:] != arranged[:-1]).any(axis=1)])
        first = by_value[new]  # lexsort is stable: the first of equals has the lowest row
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        of = np.empty(n, np.int64)
        of[by_value] = rank[np.cumsum(new) - 1]
        return cls.by_label(of, len(first))

    @classmethod
    def by_label(cls, of: Ints, count: int) -> Groups:
        """Group rows by the number of their group, which must be numbered by first row."""
        offsets = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=count))]).astype(np.int64)
        return cls(of, np.argsort(of, kind="stable"), offsets)

    def merged(self, digests: Hashes) -> Groups:
        """Join groups whose own fingerprints agree."""
        outer = Groups.by_digest(digests)
        return Groups.by_label(outer.of[self.of], len(outer))
