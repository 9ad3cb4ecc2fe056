"""Charts: one look for the plots of results and curves, another for pictures in a page, and how both are written.

Matplotlib (`pip install 'likewise[plot]'`) is used without pyplot, so no global state is touched. The colours of a
picture in a page come from the style of the page, light or dark.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
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
SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
INK, MUTED, GRID, ACCENT, SECOND, WARN, SOFT = (
    "#010101", "#010102", "#010103", "#010104", "#010105", "#010106", "#010107",
)  # fmt: skip
CLASSES = {
    INK: "ink", MUTED: "muted", GRID: "grid", ACCENT: "accent", SECOND: "second", WARN: "warn", SOFT: "soft",
}  # fmt: skip
"""Colours that stand for a colour of the style."""

PAGE_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
}
WIDTH, HEIGHT = 4.8, 3.3
"""Inches of a picture in a page: about 460 by 320 pixels, so that the words can still be read on a phone."""
LEGEND = 0.24
"""Inches of a line of its legend, which stands above the plot and hides nothing of it."""


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


def page_picture(
    name: str, alt: str, draw: Callable[[Any], None], height: float = HEIGHT, left: float = 0.65, legend: int = 0
) -> str:
    """Return a picture for a page (SVG): `draw` gets its axes, `alt` says what is seen, `legend` has so many lines."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    out = io.BytesIO()
    style: Any = {**PAGE_STYLE, "svg.hashsalt": name}
    with rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a font without some letter of a name: the browser has another
        figure = Figure(figsize=(WIDTH, height))
        top = 1 - (0.12 + LEGEND * legend) / height
        figure.subplots_adjust(left=left / WIDTH, right=1 - 0.1 / WIDTH, bottom=0.52 / height, top=top)
        draw(figure.subplots())
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return themed(out.getvalue(), name, alt)


def themed(svg: bytes, name: str, alt: str) -> str:
    """Return an SVG for a page with a strict Content-Security-Policy.

    Styles become attributes, and colours that stand for one of the style become classes. Ids get the name as prefix,
    for a page has several pictures; those that nothing refers to are left out.
    """
    from xml.etree import ElementTree

    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}style", f"{{{SVG}}}metadata") or not isinstance(child.tag, str):
                parent.remove(child)
    used = set(re.findall(rb"(?:url\(#|href=\"#)([^)\"]+)", svg))
    for node in root.iter():
        _plain(node)
        known = node.attrib.pop("id", None)
        if known is not None and known.encode() in used:
            node.set("id", f"{name}-{known}")
        link = node.attrib.pop(LINK, None)
        if link is not None:
            node.set("href", f"#{name}-{link[1:]}")
        if "clip-path" in node.attrib:
            node.set("clip-path", re.sub(r"url\(#", f"url(#{name}-", node.attrib["clip-path"]))
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("class", "picture")
    root.set("role", "img")
    root.set("aria-label", alt)
    return ElementTree.tostring(root, encoding="unicode")


def _plain(node: Any) -> None:
    """Turn the style of an element into attributes and classes."""
    style = node.attrib.pop("style", "")
    properties = {**{k: node.attrib[k] for k in ("fill", "stroke") if k in node.attrib}}
    for part in style.split(";"):
        key, colon, value = part.partition(":")
        if colon:
            properties[key.strip()] = value.strip()
    font = properties.pop("font", None)
    if font is not None:
        found = re.search(r"([\d.]+)px", font)
        if found:
            node.set("font-size", found[1])
    classes = []
    for key, value in properties.items():
        if value in CLASSES:
            node.attrib.pop(key, None)
            classes.append(f"{key}-{CLASSES[value]}")
        else:
            node.set(key, value)
    if classes:
        node.set("class", " ".join(classes))
