"""Copied text: how much of one document is contained in another, and the copied passages themselves (MMDS §3.1.2).

index         what counts as a passage; sources → words and a sorted index of fingerprints, in blocks that fit in memory
search        a batch of suspects against a block of sources → passages
passages      `passages`: many suspects, many sources; its tables
explain       `explain`: two documents
"""

from __future__ import annotations

from likewise.apps.passages.explain import Explanation, explain
from likewise.apps.passages.passages import Passages, passages

__all__ = ["Explanation", "Passages", "explain", "passages"]
