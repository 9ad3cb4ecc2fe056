"""Charts: one look for the plots of results and curves, and how they are written.

Matplotlib (`pip install 'likewise[plot]'`) is used without pyplot, so no global state is touched.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from likewise.base.extras import need
from likewise.errors import OutputError

COLOURS = ("#0b6e4f", "#b0413e", "#3b6ea8", "#a0763a", "#6b4c9a", "#4a4e54")
GREY = "#9a9da1"
LINE = "#e6e6e6"
DASHES = (0, (4, 3))
POINTS = 801
"""Points per curve: about one per pixel of a figure."""
SMALL = (240, 120)
"""Width and height of a curve in a notebook, in pixels."""


def new_figure(rows: int = 1, height: float = 4.6, **options: Any) -> tuple[Any, Any]:
    """Return a Matplotlib figure and its axes, one or several above each other; options are those of `subplots`."""
    need("a plot", "plot")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, height), dpi=120, layout="constrained")
    return figure, figure.subplots(rows, **options)


def plain_axes(axes: Any) -> None:
    """Draw axes with a light grid behind the data, and without a frame."""
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend_beside(axes: Any, where: float = 1.01) -> None:
    """Put the legend to the right of the axes, which are as wide as 1."""
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(where, 1.0), borderaxespad=0.0, labelspacing=1.0)


def finish_curves(axes: Any, label: str) -> None:
    """Label the y axis of curves from 0 to 1, and put the legend beside them."""
    axes.set_ylim(-0.015, 1.015)
    axes.set_ylabel(label)
    plain_axes(axes)
    legend_beside(axes)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure; the suffix of the path determines the format. The same figure gives the same bytes of SVG."""
    import matplotlib

    path = Path(path)
    if path.suffix[1:].lower() not in figure.canvas.get_supported_filetypes():
        raise OutputError(f"{path}: the plot cannot be written: the name of a plot must end in .png, .svg or .pdf")
    plain: Any = {"svg.hashsalt": "likewise", "svg.fonttype": "none"}
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        with matplotlib.rc_context(plain), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the font lacks letters of a column's name
            figure.savefig(path, metadata=metadata)
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: the plot cannot be written: {error}") from error


def small_curve(values: Sequence[float], title: str, axis: str) -> str:
    """Return a curve of values in [0, 1], at equal steps from 0 to 1, as a small picture for a notebook (SVG).

    >>> small_curve([0, 0.5, 1], "the diagonal", "similarity").count("<polyline")
    1
    """
    width, height = SMALL
    step = width / max(1, len(values) - 1)
    points = " ".join(f"{i * step:.1f},{height * (1 - value):.1f}" for i, value in enumerate(values))
    frame = f'<path d="M0,0 V{height} H{width}" fill="none" stroke="{GREY}"/>'
    line = f'<polyline points="{points}" fill="none" stroke="{COLOURS[0]}" stroke-width="2"/>'
    labels = ((-4, 5, "end", "1"), (-4, height, "end", "0"), (width, height + 14, "end", "1"))
    words = "".join(
        f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(said)}</text>'
        for x, y, anchor, said in (*labels, (width // 2, height + 14, "middle", axis))
    )
    size = f'width="{width + 24}" height="{height + 26}" viewBox="-16 -6 {width + 24} {height + 26}"'
    style = f'font-family="sans-serif" font-size="11" fill="{GREY}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img" aria-label="{escape(title)}">'
    return f"{head}{frame}{line}{words}</svg>"
