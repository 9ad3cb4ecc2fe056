"""The settings of a comparison of prints."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from likewise.apps.fingerprints.prints import OWNER
from likewise.base import checks

DOUBT = 20.0
"""Minutiae without a partner that are added to every comparison: a large part of a small overlap proves little."""
SLACK = 10.0
"""A print extends this many pixels beyond the convex hull of its minutiae."""
ROUNDS = 3
"""Most times the alignment of two prints is improved by least squares."""
MOST_FUNCTIONS = 1 << 20
"""Most functions of a group, and most groups: each takes a byte per print, so that more is a mistake."""
ALIGNED = ("functions", "groups", "side", "border", "seed")
"""Settings of the search for candidates among aligned prints."""


@dataclass(frozen=True)
class FingerprintSettings:
    """How prints are compared.

    near, turned: minutiae agree within this many pixels (at 500 dpi) and degrees. votes: two prints of m and n minutiae
    are compared if votes·√(m·n) of their triples agree on an alignment. aligned: the prints are aligned already, and
    candidates are found by random triples of grid squares (MMDS §3.8.5): an AND of `groups` ORs of `functions` triples,
    on squares of `side` pixels; minutiae within `border` pixels of a square's edge count in the next square as well.
    """

    near: float = 15.0
    turned: float = 20.0
    votes: float = 0.1
    aligned: bool = False
    functions: int = 1024
    groups: int = 2
    side: float = 20.0
    border: float = 5.0
    seed: int = 1

    def __post_init__(self) -> None:
        pixels, degrees = "a number of pixels, above 0 and up to 100", "in degrees, above 0 and up to 180"
        checks.number(OWNER, "near", self.near, 0, 100, open_left=True, rule=pixels)
        checks.number(OWNER, "turned", self.turned, 0, 180, open_left=True, rule=degrees)
        checks.number(OWNER, "votes", self.votes, 0, open_left=True)
        checks.flag(OWNER, "aligned", self.aligned)
        checks.number(OWNER, "side", self.side, 2, 1000, open_left=True, rule="above 2 pixels and up to 1000")
        half = f"from 0 to less than half a side, {self.side / 2:g}"
        checks.number(OWNER, "border", self.border, 0, self.side / 2, open_right=True, rule=half)
        checks.whole(OWNER, "functions", self.functions, 1, MOST_FUNCTIONS)
        checks.whole(OWNER, "groups", self.groups, 1, MOST_FUNCTIONS)
        checks.seed(OWNER, self.seed)
        names, why = (("votes",), "with aligned prints") if self.aligned else (ALIGNED, "without aligned=True")
        checks.unused(OWNER, {name: (getattr(self, name), getattr(FingerprintSettings, name)) for name in names}, why)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, for run.json."""
        return asdict(self)
