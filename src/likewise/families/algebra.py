"""The algebra of locality-sensitive families: AND, OR, and cascades of them (MMDS §3.6).

Under a family, two items at distance d collide with probability p(d). `all_of(r)` requires r functions to agree and
turns p into p^r; `any_of(b)` requires one of b to agree and turns p into 1 − (1 − p)^b. Steps can be combined in any
order, and every combination predicts its curve and runs on data:

>>> from likewise import MinHash
>>> cascade = MinHash().all_of(4).any_of(4)
>>> [round(cascade.probability(1 - p), 4) for p in (0.2, 0.5, 0.8)]
[0.0064, 0.2275, 0.8785]
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from likewise.base import checks
from likewise.errors import ParameterError
from likewise.families.curves import Construction, Floats
from likewise.families.functions import Cascade, HashFunctions
from likewise.families.near import NearIndex
from likewise.families.running import MOST_PAIRS, CollidingPairs, FamilyIndex, family_candidates
from likewise.view.charts import COLOURS, DASHES, GREY, POINTS, finish_curves, new_figure, save_figure, small_curve


class Composable(Cascade):
    """What base families and composed ones share: a curve, steps that can be added, and items to run on."""

    @property
    @abstractmethod
    def base(self) -> Family:
        """The family whose functions are used."""

    def all_of(self, r: int) -> Composed:
        """Return the AND-construction: items collide if all of r independent copies make them collide (MMDS §3.6.3)."""
        return Composed(self.base, (*self.steps, ("all", checks.whole("all_of", "r", r))))

    def any_of(self, b: int) -> Composed:
        """Return the OR-construction: items collide if any of b independent copies makes them collide (MMDS §3.6.3)."""
        return Composed(self.base, (*self.steps, ("any", checks.whole("any_of", "b", b))))

    def candidates(self, items: Any, most: int = MOST_PAIRS, sample: int = 20_000) -> CollidingPairs:
        """Return the pairs of items that collide, and their share of all pairs, measured and predicted.

        Raises if there would be more than `most`. The prediction uses the distances of `sample` random pairs; 0 makes
        no prediction. See `likewise.families.running`.
        """
        return family_candidates(self, items, most, sample)

    def index(self, items: Any) -> FamilyIndex:
        """Return an index that finds the items which collide with a query."""
        return FamilyIndex(self, items)

    def plot(self, path: str | Path | None = None, distances: Sequence[float] | Floats | None = None) -> Any:
        """Plot the curve over the base probability, or over these distances; save it if a path is given.

        Returns the Matplotlib figure. Needs `pip install 'likewise[plot]'`.
        """
        return plot_many([self], path, distances)

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the family, and its probability over that of one function, from 0 to 1."""
        steps = "".join(f", {kind} of {k:,}" for kind, k in self.steps)
        points = self.curve(np.linspace(0, 1, 121)).tolist()
        curve = small_curve(points, "probability of a collision", "probability that one function agrees")
        return f"<p><b>{escape(str(self.base))}</b>{steps}; for {escape(self.base.unit)}</p>{curve}"


class Family(HashFunctions, Composable):
    """A family of hash functions for one distance: numbered functions, each of which maps every item to a number.

    A new family implements `collision`, `hashes` and `distances`; see `HashFunctions` for `unit`, `absent` and
    multi-probe search.
    """

    @property
    def base(self) -> Family:
        """The family itself."""
        return self

    @property
    def steps(self) -> tuple[Construction, ...]:
        """No steps: ()."""
        return ()

    def near(
        self,
        items: Any,
        r: float,
        c: float,
        *,
        probes: int = 0,
        k: int | None = None,
        L: int | None = None,
        memory: int | str = "4GiB",
    ) -> NearIndex:
        """Return an index for (c, r)-near neighbours: if an item is within r of a query, one within c·r is found.

        See `likewise.families.near` for what is guaranteed and what the options do.
        """
        return NearIndex(self, items, r, c, probes=probes, k=k, L=L, memory=memory)


class StraightFamily(Family):
    """A family under which the probability of a collision falls in a straight line, to 0 at the distance `farthest`."""

    farthest: float = 1.0

    def collision(self, d: Any) -> Any:
        """Return 1 − d/farthest."""
        return 1 - checks.numbers(f"{type(self).__name__}.probability", "d", d, 0, self.farthest) / self.farthest


@dataclass(frozen=True, repr=False)
class Composed(Composable):
    """A family with AND- and OR-constructions applied to it; see `Composable`.

    >>> from likewise import MinHash
    >>> MinHash(seed=7).all_of(4).any_of(16)
    MinHash(seed=7, method='fast').all_of(4).any_of(16)
    """

    family: Family
    path: tuple[Construction, ...]

    @property
    def base(self) -> Family:
        """The family whose functions are used."""
        return self.family

    @property
    def steps(self) -> tuple[Construction, ...]:
        """The constructions, from the base family outwards."""
        return self.path

    def __repr__(self) -> str:
        return repr(self.family) + "".join(f".{kind}_of({k})" for kind, k in self.path)


def plot_many(
    families: Sequence[Composable],
    path: str | Path | None = None,
    distances: Sequence[float] | Floats | None = None,
    labels: Sequence[str] | None = None,
) -> Any:
    """Plot the curves of several families and return the Matplotlib figure; save it if a path is given.

    Without `distances`, the x axis is the collision probability p of one function: a ring marks the fixed point, where
    a curve crosses the diagonal, and a dot its steepest point. With `distances`, the x axis is distance, and all
    families must use the same unit. The suffix of the path determines the format: .png, .svg, .pdf.
    """
    if not families:
        raise ParameterError.of("plot_many", "families", "one or more families", families)
    if labels is not None and len(labels) != len(families):
        raise ParameterError.of("plot_many", "labels", f"one for each of {len(families)} families", labels)
    figure, axes = new_figure()
    names = labels or [_label(family) for family in families]
    if distances is None:
        _over_probability(axes, families, names)
    else:
        _over_distance(axes, families, names, np.asarray(distances, np.float64))
    finish_curves(axes, "probability of a collision")
    if path is not None:
        save_figure(figure, path)
    return figure


def _over_probability(axes: Any, families: Sequence[Composable], names: Sequence[str]) -> None:
    p = np.linspace(0, 1, POINTS)
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=DASHES, label="p, one function")
    for place, (family, name) in enumerate(zip(families, names, strict=True)):
        colour = COLOURS[place % len(COLOURS)]
        fixed, steepest = family.fixed_point(), family.steepest()
        notes = [name, f"● steepest at {steepest.p:.3g}: slope {steepest.slope:.3g}"]
        if fixed is not None:
            notes.insert(1, f"○ fixed point {fixed:.3g}")
            axes.plot([fixed], [fixed], "o", color="white", markeredgecolor=colour, markeredgewidth=1.8, zorder=4)
        axes.plot(p, family.curve(p), color=colour, linewidth=2.2, label="\n".join(notes))
        axes.plot([steepest.p], [family.curve(steepest.p)], "o", color=colour, zorder=4)
    axes.set_xlim(-0.01, 1.01)
    axes.set_aspect("equal")
    axes.set_anchor("W")
    axes.set_xlabel("probability p that one function agrees")


def _over_distance(axes: Any, families: Sequence[Composable], names: Sequence[str], distances: Floats) -> None:
    if distances.ndim != 1 or len(distances) < 2:
        raise ParameterError.of("plot", "distances", "two or more distances", distances.tolist())
    units = {family.base.unit for family in families}
    if len(units) > 1:
        raise ParameterError.of("plot_many", "families", "for one distance", ", ".join(sorted(units)))
    ordered = np.sort(distances)
    if len(ordered) < POINTS // 4:
        ordered = np.interp(np.linspace(0, len(ordered) - 1, POINTS), np.arange(len(ordered)), ordered)
    for place, (family, name) in enumerate(zip(families, names, strict=True)):
        axes.plot(ordered, family.probability(ordered), color=COLOURS[place % len(COLOURS)], linewidth=2.2, label=name)
    axes.set_xlabel(f"distance ({units.pop()})")


def _label(family: Composable) -> str:
    """Return the name of a family on one line and its steps on the next."""
    steps = ", ".join(f"{kind} of {k:,}" for kind, k in family.steps)
    return f"{family.base}\n{steps}" if steps else str(family.base)
