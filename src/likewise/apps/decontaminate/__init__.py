"""Decontamination: which items of test sets training documents have, word for word, and documents without them.

item_sets      test sets → their items, and the index of their windows of words
search         a batch of documents against the index → runs of words
decontaminate  the job: which runs count, and why; what becomes of the documents
result         its tables, and the folder they are saved to
"""

from __future__ import annotations

from likewise.apps.decontaminate.decontaminate import ContaminationRules, DecontaminateRequest, decontaminate
from likewise.apps.decontaminate.result import Decontamination

__all__ = ["ContaminationRules", "DecontaminateRequest", "Decontamination", "decontaminate"]
