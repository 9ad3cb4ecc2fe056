"""The settings of a new index: which of them belong together, and which have no effect."""

from __future__ import annotations

from typing import Any

from likewise.base import checks
from likewise.families.tuning import DEFAULT_MAX_SLOTS
from likewise.index.manifest import Manifest
from likewise.index.scheme import DEFAULT_ITEMS, Scheme
from likewise.index.vector_scheme import VectorScheme, empty_manifest
from likewise.index.view import AnyScheme
from likewise.search.vectors.spaces import SPACES

OF_SETS: dict[str, Any] = {
    "shingle": "words:5", "threshold": 0.8, "sketch": "fast", "bands": None, "rows": None,
    "max_slots": DEFAULT_MAX_SLOTS, "items": DEFAULT_ITEMS, "containment": False, "texts": None,
}  # fmt: skip
"""Settings of documents and sets only, and their defaults."""
OF_VECTORS: dict[str, Any] = {"within": None, "dimension": None, "dtype": None}
"""Settings of vectors only, and their defaults."""


def new_scheme(owner: str, measure: str, recall: float, seed: int, **given: Any) -> tuple[AnyScheme, Manifest]:
    """Check what the user gave; return the settings of an index, and its manifest while it is empty."""
    checks.choice(owner, "measure", measure, ("jaccard", *SPACES))
    sets = measure == "jaccard"
    others, why = (OF_VECTORS, "for documents and sets") if sets else (OF_SETS, "for vectors")
    checks.unused(owner, {name: (given[name], default) for name, default in others.items()}, why)
    mine = {name: given[name] for name in (OF_SETS if sets else OF_VECTORS)}
    if sets:
        return Scheme.of(owner, recall=recall, seed=seed, **mine), Manifest()
    scheme = VectorScheme.of(owner, measure, mine["within"], recall, seed, mine["dimension"])
    return scheme, empty_manifest(owner, measure, mine["dimension"], mine["dtype"])
