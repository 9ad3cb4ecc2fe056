"""One document asked of an index, from its bytes to its answers in one call: each call takes as long as its work."""

from __future__ import annotations

import numpy as np

from likewise.kernels import kernel
from likewise.kernels.documents import set_documents
from likewise.kernels.lookup import IndexQueries, answer, sort_sets
from likewise.kernels.sketch import key_sets


@kernel
def answer_document(data, recipe, method, seeds, band_rows, bands, tables, aim, hits):
    """Answer a document, as lookup.answer does with its set and its band keys."""
    offsets, ends = np.array([0, data.size]), np.empty(2, np.int64)
    values = np.empty(data.size * recipe.units.per_two_bytes // 2 + 1, np.uint64)
    written = set_documents(data, offsets, np.zeros(1, np.int64), recipe, values, ends)
    values = values[:written]
    sort_sets(values, ends)
    keys = np.empty((1, bands), np.uint32)
    key_sets(values, ends, method, seeds, band_rows, keys)
    return answer(IndexQueries(values, ends, keys), np.int64(0), np.int64(1), tables, aim, hits)
