"""Lines and paragraphs that other documents have too: found word for word, counted, and cut out.

repeats      pass 1: the units of all documents by the hash of their words → those that are repeated
cuts         pass 2: where they are in the documents, and what is left without them
dedup_units  `dedup_units`: which units count; both passes
result       its tables, and the folder they are saved to
"""

from __future__ import annotations

from likewise.apps.units.dedup_units import UnitRules, dedup_units
from likewise.apps.units.result import DedupUnits

__all__ = ["DedupUnits", "UnitRules", "dedup_units"]
