"""Fingerprints (A7, Sections 3.8.4 and 3.8.5): prints of one finger, one against many or all against all.

`match` finds them, `read` reads minutiae, `Grid` puts them in squares, `curve` judges scores where the truth is known.
"""

from likewise.apps.fingerprints.answer import Matches
from likewise.apps.fingerprints.matching import match
from likewise.apps.fingerprints.prints import Prints, read
from likewise.apps.fingerprints.rates import Curve, Rate, curve
from likewise.apps.fingerprints.squares import Grid

__all__ = ["Curve", "Grid", "Matches", "Prints", "Rate", "curve", "match", "read"]
