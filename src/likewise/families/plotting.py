"""Plots of the S-curve of a banding, and of composed families: collision probability over that of one function, or over
distance.

They need Matplotlib (`pip install 'likewise[plot]'`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from likewise.base import checks
from likewise.base.figure import COLOURS, DASHES, GREY, legend_beside, new_figure, plain_axes, save_figure
from likewise.errors import ParameterError
from likewise.families.curves import Floats
from likewise.families.functions import Cascade

POINTS = 801
"""Points per curve: about one per pixel of the figure."""


def plot_many(
    families: Sequence[Cascade],
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
    _finish(axes, "probability of a collision")
    if path is not None:
        save_figure(figure, path)
    return figure


class SCurve(Protocol):
    """What is plotted of a `Banding`."""

    @property
    def threshold(self) -> float:
        """The rule of thumb for the similarity at which the curve rises."""

    @property
    def exact_threshold(self) -> float:
        """The similarity at which the probability is 1/2."""

    def probability(self, s: Any) -> Any:
        """Return the probability that a pair of similarity s becomes a candidate."""

    def false_positive_area(self, threshold: float) -> float:
        """Return the area under the curve to the left of the threshold."""

    def false_negative_area(self, threshold: float) -> float:
        """Return the area above the curve to the right of the threshold."""


def plot_banding(banding: SCurve, path: str | Path | None = None, threshold: float | None = None) -> Any:
    """Plot the S-curve of a banding and return the Matplotlib figure; save it if a path is given.

    With a threshold, the areas of false positives (under the curve, left of it) and of false negatives (over the curve,
    right of it) are shaded, and the probability at the threshold is stated.
    """
    figure, axes = new_figure()
    s = np.linspace(0, 1, POINTS)
    chance = banding.probability(s)
    label = f"{banding}\n(1/b)^(1/r) = {banding.threshold:.3f}\nhalf at {banding.exact_threshold:.3f}"
    axes.plot(s, chance, color=COLOURS[0], linewidth=2.2, label=label, zorder=3)
    if threshold is not None:
        threshold = checks.threshold("Banding.plot", threshold)
        reached = banding.probability(threshold)
        axes.axvline(threshold, color=GREY, linewidth=1, linestyle=DASHES)
        label = f"threshold {threshold:g}:\nfound with probability {reached:.4f}"
        axes.plot([threshold], [reached], "o", color=COLOURS[0], label=label, zorder=4)
        shown = {"alpha": 0.35, "linewidth": 0}
        label = f"false positives, area {banding.false_positive_area(threshold):.4f}"
        axes.fill_between(s, 0, chance, where=s <= threshold, color=COLOURS[1], label=label, **shown)
        label = f"false negatives, area {banding.false_negative_area(threshold):.4f}"
        axes.fill_between(s, chance, 1, where=s >= threshold, color=COLOURS[2], label=label, **shown)
    axes.set_xlim(-0.01, 1.01)
    axes.set_xlabel("similarity")
    _finish(axes, "probability of becoming a candidate")
    if path is not None:
        save_figure(figure, path)
    return figure


def _finish(axes: Any, label: str) -> None:
    """Label the y axis, and put the legend beside the curves."""
    axes.set_ylim(-0.015, 1.015)
    axes.set_ylabel(label)
    plain_axes(axes)
    legend_beside(axes)


def _over_probability(axes: Any, families: Sequence[Cascade], names: Sequence[str]) -> None:
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


def _over_distance(axes: Any, families: Sequence[Cascade], names: Sequence[str], distances: Floats) -> None:
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


def _label(family: Cascade) -> str:
    """Return the name of a family on one line and its steps on the next."""
    steps = ", ".join(f"{kind} of {k:,}" for kind, k in family.steps)
    return f"{family.base}\n{steps}" if steps else str(family.base)
