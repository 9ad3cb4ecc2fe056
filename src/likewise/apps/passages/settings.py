"""What counts as a passage, and which fingerprints find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.base import checks
from likewise.shingle import Shingler, Words, parse_shingler

if TYPE_CHECKING:
    from likewise.kernels.passages import PassageRules

OWNER = "passages"
SHINGLE = "chars:7,whitespace=remove,casefold=true"
"""Shingles for containment: blanks, line breaks and capitals change when text is pasted, so they are ignored. The
short answers of benchmarks/passages.py are classified with accuracy 0.977."""
LENGTH = 8
"""Shortest shared run, in words, that is always found. Shorter runs are often stock phrases."""
GAP = 5
"""Most words between two runs of one passage: a few replaced words do not split it, an unrelated sentence does."""
COMMON = 1000
"""Most sources examined per fingerprint. It bounds the work for text that all sources share, such as a licence."""
MANY = 10
"""Text in more sources than this is listed once: what is in so many places is a template or a common source."""
MOST_WORDS_A_PRINT = 6
"""Most words in a fingerprint. Longer ones are rarer, but a passage with changed words then shares fewer of them."""
LEAST_RUN = 3
"""Shortest run of equal words that extends a passage. Shorter runs occur by chance in any two texts."""


@dataclass(frozen=True)
class PassageSettings:
    """The parameters of a search for passages, validated.

    length: every shared run of this many words is found, and every passage has at least this many equal words.
    gap: runs at most this many words apart, in both documents, form one passage.
    shingle: the shingles from which containment and Jaccard similarity of two documents are computed.
    common: the largest number of sources examined per fingerprint.
    every: compare every suspect with every source.
    many: text in more sources than this is listed with its best source only.

    >>> PassageSettings().k, PassageSettings().window, PassageSettings(length=20).k, PassageSettings(length=20).window
    (5, 4, 6, 15)
    """

    length: int = LENGTH
    gap: int = GAP
    shingle: str | Shingler = SHINGLE
    common: int = COMMON
    every: bool = False
    many: int = MANY
    owner: str = OWNER

    def __post_init__(self) -> None:
        checks.whole(self.owner, "length", self.length, 1, 1000)
        checks.whole(self.owner, "gap", self.gap, 0, 1000)
        checks.whole(self.owner, "common", self.common, 1, 2**31 - 2)
        checks.whole(self.owner, "many", self.many, 1, 2**31 - 2)
        checks.flag(self.owner, "every", self.every)
        parse_shingler(self.shingle, owner=self.owner)

    @property
    def k(self) -> int:
        """Words in a fingerprint."""
        return min(MOST_WORDS_A_PRINT, self.length // 2 + 1)

    @property
    def window(self) -> int:
        """One of this many consecutive fingerprints is kept; any `length` words contain a whole window."""
        return self.length - self.k + 1

    @property
    def least(self) -> int:
        """The shortest run of equal words that counts as copied when the rest of a passage is near."""
        return min(LEAST_RUN, self.length)

    @property
    def words(self) -> Words:
        """The shingler that turns text into words, and words into fingerprints."""
        return Words(self.k)

    @property
    def shingler(self) -> Shingler:
        """The shingler by which two documents are compared as a whole."""
        return parse_shingler(self.shingle, owner="passages")

    def rules(self) -> PassageRules:
        """Return the settings in the form the kernels use."""
        from likewise.kernels.passages import PassageRules

        return PassageRules(self.k, self.window, self.length, self.gap, self.least, self.common, self.every)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        asked = {name: getattr(self, name) for name in ("length", "gap", "common", "every", "many")}
        return {**asked, "k": self.k, "window": self.window, "least": self.least, **self.shingler.to_dict()}
