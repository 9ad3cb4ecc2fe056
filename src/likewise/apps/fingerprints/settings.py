"""Everything the user can set that changes the answer."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from likewise.apps.fingerprints.prints import OWNER
from likewise.base import checks
from likewise.errors import ParameterError

DOUBT = 20.0
"""Minutiae without a partner that are added to every comparison: a large part of a small overlap proves little."""
SLACK = 10.0
"""A print reaches so many pixels beyond the polygon around its minutiae."""
ROUNDS = 3
"""How often the way one print lies on the other is improved, at most."""


@dataclass(frozen=True)
class Settings:
    """How prints are compared.

    near, turned: minutiae agree within so many pixels (at 500 dpi) and degrees. votes: two prints of m and n minutiae
    are compared if votes·√(m·n) of their triples agree on how they lie. as_they_lie: prints lie alike already, and the
    chapter's functions find candidates: `groups` ANDed groups of an OR of `functions`, on squares of `side` pixels,
    minutiae within `border` of a border counting beyond it, too.
    """

    near: float = 15.0
    turned: float = 20.0
    votes: float = 0.3
    as_they_lie: bool = False
    functions: int = 1024
    groups: int = 2
    side: float = 20.0
    border: float = 5.0
    seed: int = 1

    def __post_init__(self) -> None:
        self._check("near", 0, 100, "a number of pixels, more than 0 and up to 100")
        self._check("turned", 0, 180, "in degrees, more than 0 and up to 180")
        self._check("votes", 0, math.inf, "more than 0")
        self._check("side", 2, 1000, "more than 2 pixels and up to 1000")
        if isinstance(self.border, bool) or not 0 <= self.border < self.side / 2:
            raise ParameterError.of(OWNER, "border", f"from 0 to less than half a side, {self.side / 2:g}", self.border)
        for name in ("functions", "groups"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1 << 20:
                raise ParameterError.of(OWNER, name, "a whole number from 1", value)
        checks.seed(OWNER, self.seed)

    def _check(self, name: str, above: float, most: float, rule: str) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not above < value <= most:
            raise ParameterError.of(OWNER, name, rule, value)

    def to_dict(self) -> dict[str, Any]:
        """Return them for run.json."""
        return asdict(self)
