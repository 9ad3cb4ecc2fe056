"""Plots of composed families: collision probability over that of one function, or over distance.

They need Matplotlib (`pip install 'likewise[plot]'`), used without pyplot, so no global state is touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.errors import LikewiseError, OutputError, ParameterError
from likewise.families.curves import Floats
from likewise.families.functions import Cascade

COLOURS = ("#0b6e4f", "#b0413e", "#3b6ea8", "#a0763a", "#6b4c9a", "#4a4e54")
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
    figure, axes = _figure()
    names = labels or [_label(family) for family in families]
    if distances is None:
        _over_probability(axes, families, names)
    else:
        _over_distance(axes, families, names, np.asarray(distances, np.float64))
    axes.set_ylim(-0.015, 1.015)
    axes.set_ylabel("probability of a collision")
    axes.grid(color="#e6e6e6", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, labelspacing=1.0)
    if path is not None:
        _write(figure, Path(path))
    return figure


def _figure() -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise LikewiseError("plots need Matplotlib: pip install 'likewise[plot]'") from error
    figure = Figure(figsize=(7.6, 4.6), dpi=120, layout="constrained")
    return figure, figure.subplots()


def _over_probability(axes: Any, families: Sequence[Cascade], names: Sequence[str]) -> None:
    p = np.linspace(0, 1, POINTS)
    axes.plot([0, 1], [0, 1], color="#9a9da1", linewidth=1, linestyle=(0, (4, 3)), label="p, one function")
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


def _write(figure: Any, path: Path) -> None:
    import matplotlib

    plain: Any = {"svg.hashsalt": "likewise", "svg.fonttype": "none"}
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        with matplotlib.rc_context(plain):
            figure.savefig(path, metadata=metadata)
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: the plot cannot be written: {error}") from error
