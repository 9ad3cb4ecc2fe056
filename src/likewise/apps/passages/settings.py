"""What a passage is, and which fingerprints find it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likewise.errors import ParameterError
from likewise.shingle import Shingler, Words, parse_shingler

if TYPE_CHECKING:
    from likewise.kernels.passages import PassageRules

OWNER = "passages"
SHINGLE = "chars:7,whitespace=remove,casefold=true"
LENGTH, GAP, COMMON = 8, 5, 1000
MOST_WORDS_A_PRINT = 6
LEAST_RUN = 3


@dataclass(frozen=True)
class Settings:
    """The parameters of a search for passages, validated.

    length: a shared run of this many words is found for certain, and a passage has as many equal words at least.
    gap: runs that are at most this many words apart, in both documents, make one passage.
    shingle: what containment and Jaccard similarity of two documents are computed of.
    common: of the sources that carry one and the same fingerprint, so many are looked at.
    every: compare all pairs of a suspect and a source.

    >>> Settings().k, Settings().window, Settings(length=20).k, Settings(length=20).window
    (5, 4, 6, 15)
    """

    length: int = LENGTH
    gap: int = GAP
    shingle: str | Shingler = SHINGLE
    common: int = COMMON
    every: bool = False
    owner: str = OWNER

    def __post_init__(self) -> None:
        for name, least, most in (("length", 1, 1000), ("gap", 0, 1000), ("common", 1, 2**31 - 2)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ParameterError.of(self.owner, name, f"a whole number from {least} to {most}", value)
        self.shingler  # noqa: B018  a wrong one is an error now

    @property
    def k(self) -> int:
        """Words in a fingerprint."""
        return min(MOST_WORDS_A_PRINT, self.length // 2 + 1)

    @property
    def window(self) -> int:
        """Of so many fingerprints in a row, one is kept: any `length` words hold a whole window of them."""
        return self.length - self.k + 1

    @property
    def least(self) -> int:
        """Equal words in a row, at least, that count as copied where the rest of a passage is near."""
        return min(LEAST_RUN, self.length)

    @property
    def words(self) -> Words:
        """How text becomes words, and words fingerprints."""
        return Words(self.k)

    @property
    def shingler(self) -> Shingler:
        """How two documents are compared as a whole."""
        return parse_shingler(self.shingle)

    def rules(self) -> PassageRules:
        """Return what the kernels must know."""
        from likewise.kernels.passages import PassageRules

        return PassageRules(self.k, self.window, self.length, self.gap, self.least, self.common, self.every)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for run.json."""
        asked = {name: getattr(self, name) for name in ("length", "gap", "common", "every")}
        return {**asked, "k": self.k, "window": self.window, "least": self.least, **self.shingler.to_dict()}
