"""Copied text: how much of one document is contained in another, and the copied passages themselves (MMDS §3.1.2).

settings      what counts as a passage, and which fingerprints find it
documents     suspects and sources from files and objects
index         sources → words and a sorted index of fingerprints, in blocks that fit in memory
search        a batch of suspects against a block of sources → passages and similarities
passages      `passages`: many suspects, many sources
result        its tables
explain       `explain`: two documents
"""

from __future__ import annotations

from likewise.apps.passages.explain import Explanation, explain
from likewise.apps.passages.passages import passages
from likewise.apps.passages.result import Passages

__all__ = ["Explanation", "Passages", "explain", "passages"]
