"""Why two vectors are a pair or not: their distance, and how probable it is that they are found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.webpage import page, paragraph, section, table
from likewise.base.words import shortened
from likewise.jobs.set_reason import WIDE, write_page
from likewise.measures import batch
from likewise.search.vectors.load import Vectors, space_of

UNITS = {"angle": " degrees", "l2": "", "l1": "", "hamming": " bits"}
SEARCHES = {"exact": "exact: all vectors are compared", "lsh": "hash tables", "cells": "the nearest cells"}


@dataclass(frozen=True, repr=False)
class VectorReason:
    """Why two vectors are a pair, or neighbours, or not. `print` shows it; `to_html` is a page, `to_dict` plain data.

    distance: by the measure of the run. distances: by all measures that these vectors have. within: the largest
    distance of a pair (None for neighbours). probability: that a pair at this distance is found, at least. found:
    whether the run found it.
    """

    id_a: Any
    id_b: Any
    measure: str
    distance: float
    distances: dict[str, float]
    components: int
    within: float | None
    method: str
    probability: float
    found: bool
    notes: tuple[str, ...] = ()

    @property
    def near(self) -> bool:
        """Whether they are near enough for a pair."""
        return self.within is None or self.distance <= self.within

    def summary(self) -> str:
        """Return the verdict in one line."""
        a, b = (shortened(one, WIDE) for one in (self.id_a, self.id_b))
        verdict = ("a pair" if self.found else "no pair") if self.within is not None else "neighbours"
        if self.within is None and not self.found:
            verdict = f"{b} is not among the nearest neighbours of {a}"
        said = f"{a} and {b}: {verdict}; {self.measure} {self.distance:.6g}{UNITS[self.measure]}"
        if self.within is None:
            return said
        return f"{said}, {'within' if self.near else 'more than'} {self.within:g}"

    def facts(self) -> list[tuple[str, str]]:
        """Return everything as lines of a table."""
        said = [("components", f"{self.components:,}")]
        said += [(name, f"{value:.6g}{UNITS.get(name, '')}") for name, value in self.distances.items()]
        if self.within is not None:
            said.append(("largest distance of a pair", f"{self.within:.6g}{UNITS[self.measure]}"))
        said.append(("search", SEARCHES.get(self.method, self.method)))
        chance = "with certainty" if self.probability == 1 else f"with probability {self.probability:.6g} or more"
        said.append(("found", chance if self.near else "no: farther apart than a pair may be"))
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, for JSON."""
        return dict(vars(self))

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        return "\n".join([self.summary(), *self.notes, *(f"  {name:<{width}}  {said}" for name, said in facts)])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary()}>"

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(str(self))

    def to_html(self, path: str | Path | None = None) -> str:
        """Return the explanation as a page of HTML, and write it to a file if a path is given."""
        whole = page(f"{shortened(self.id_a, WIDE)} and {shortened(self.id_b, WIDE)}", self._repr_html_())
        if path is not None:
            write_page(path, whole)
        return whole

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return paragraph(self.summary(), *self.notes) + section("How far apart", table((), self.facts()))


def explain_vectors(
    ids: tuple[Any, Any], a: NDArray[Any], b: NDArray[Any], stats: dict[str, Any], found: bool
) -> VectorReason:
    """Compare two vectors by every measure, and by the settings of a run, as run.json has them."""
    parameters, measure = stats["parameters"], stats["parameters"]["measure"]
    within, method = parameters.get("within"), (stats["method"] or {}).get("taken", "exact")
    both = [Vectors(np.ascontiguousarray(one)[None], None, []) for one in (a, b)]
    space = space_of(measure, both, 1 << 30, None)
    distance = float(space.distances(np.zeros(1, np.int64), np.ones(1, np.int64))[0])
    distances = {measure: distance}
    if measure != "hamming":
        x, y = (np.asarray(one, np.float64)[None] for one in (a, b))
        distances = {"l2": float(batch.lr(x, y, 2)[0]), "l1": float(batch.lr(x, y, 1)[0]), **distances}
        if x.any() and y.any():
            angle = float(batch.angle(x, y)[0])
            distances |= {"angle": angle, "cosine": float(np.cos(np.radians(angle)))}
    near = within is None or distance <= within
    reached = stats["details"].get("cells" if method == "cells" else "tables", {}).get("recall", 1.0)
    chance = (1.0 if method == "exact" else float(reached)) if near else 0.0
    return VectorReason(*ids, measure, distance, distances, space.dimensions, within, method, chance, found)
