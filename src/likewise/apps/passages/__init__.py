"""Plagiarism: how much of a document is in another, and the copied passages themselves (A2; Section 3.1.2).

settings    what a passage is, and which fingerprints find it
indexing    sources → words and a sorted index of fingerprints, in blocks that fit in memory
searching   a batch of suspects and a block of sources → passages and similarities
finding     `find`: many suspects, many sources
answer      its tables and its folder
explaining  `explain`: two documents
rendering   two documents side by side
"""

from __future__ import annotations

from likewise.apps.passages.answer import Passages
from likewise.apps.passages.explaining import Explanation, Passage, explain
from likewise.apps.passages.finding import find

__all__ = ["Explanation", "Passage", "Passages", "explain", "find"]
