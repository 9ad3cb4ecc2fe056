"""Record linkage: which records, of two tables or of one, stand for the same person, paper or product (§3.8.1–3.8.3).

`link` blocks (identical fields, shared terms, bands of MinHash), compares field by field, learns from the data what
agreement is worth, and decides. Nothing need be specified; everything can be. `validate` tells how good a score is from
a field that was not compared.
"""

from __future__ import annotations

from likewise.apps.link.link import Linked, link
from likewise.apps.link.validation import Validation, validate

__all__ = ["Linked", "Validation", "link", "validate"]
