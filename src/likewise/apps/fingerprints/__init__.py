"""Fingerprint matching by minutiae (MMDS §3.8.4 and §3.8.5): one print against many, or all against all.

prints        `read_prints`: tables of minutiae to `Prints`; `Grid`: minutiae to grid squares
comparison    how prints are compared: candidates by triples of minutiae, each verified minutia by minutia
rates         the score from which on pairs match; true and false match rates where the fingers are known
fingerprints  `fingerprints`: all of these steps, its tables, and the prints of each finger
"""

from __future__ import annotations

from likewise.apps.fingerprints.fingerprints import Fingerprints, fingerprints
from likewise.apps.fingerprints.prints import Grid, Prints, agreement, read_prints
from likewise.apps.fingerprints.rates import Curve, Rate, curve

__all__ = ["Curve", "Fingerprints", "Grid", "Prints", "Rate", "agreement", "curve", "fingerprints", "read_prints"]
