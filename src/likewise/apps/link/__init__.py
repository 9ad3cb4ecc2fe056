"""Entity resolution (record linkage): which records of two tables, or of one, are the same person, paper or product.

`link` blocks (identical fields, shared terms, bands of MinHash), compares field by field, learns from the data how much
agreement is worth, and decides. Nothing need be specified; everything can be. `validate` estimates how good a score is
from a field that was not compared (MMDS §3.8.1–3.8.3).
"""

from __future__ import annotations

from likewise.apps.link.labels import Question
from likewise.apps.link.link import link
from likewise.apps.link.pair_reason import PairReason
from likewise.apps.link.relink import relink
from likewise.apps.link.result import Links
from likewise.apps.link.synonyms import Synonyms
from likewise.apps.link.validation import Validation, validate

__all__ = ["Links", "PairReason", "Question", "Synonyms", "Validation", "link", "relink", "validate"]
