"""Fingerprint matching by minutiae (MMDS §3.8.4 and §3.8.5): one print against many, or all against all.

fingerprints  the function `fingerprints`
result        its result: the tables
settings      how prints are compared
prints        `read_prints`: tables of minutiae to `Prints`
squares       `Grid`: minutiae to grid squares
triples       triples of minutiae that do not depend on position and rotation
comparison    candidates, each verified minutia by minutia
threshold     the score from which on pairs match
grouping      matches to fingers
rates         true and false match rates where the fingers are known
"""

from __future__ import annotations

from likewise.apps.fingerprints.fingerprints import fingerprints
from likewise.apps.fingerprints.prints import Prints, read_prints
from likewise.apps.fingerprints.rates import Curve, Rate, curve
from likewise.apps.fingerprints.result import Fingerprints
from likewise.apps.fingerprints.squares import Grid, agreement

__all__ = ["Curve", "Fingerprints", "Grid", "Prints", "Rate", "agreement", "curve", "fingerprints", "read_prints"]
