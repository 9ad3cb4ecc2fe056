"""Pictures of a run: Matplotlib figures as SVG whose colours come from the style of the page, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import numpy as np
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.report.samples import Floats, Ints
from likewise.report.words import visible

SVG = "http://www.w3.org/2000/svg"
LINK = "{http://www.w3.org/1999/xlink}href"
INK, MUTED, GRID, ACCENT, SECOND, WARN, SOFT = (
    "#010101", "#010102", "#010103", "#010104", "#010105", "#010106", "#010107",
)  # fmt: skip
CLASSES = {
    INK: "ink", MUTED: "muted", GRID: "grid", ACCENT: "accent", SECOND: "second", WARN: "warn", SOFT: "soft",
}  # fmt: skip
"""Colours that stand for a colour of the style."""

STYLE: dict[str, Any] = {
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
MOST_SIZES = 10
"""Up to this largest size, every size of clusters has a bar of its own."""

WIDTH, HEIGHT = 4.8, 3.3
"""Inches of a picture: about 460 by 320 pixels, so that the words can still be read on a phone."""


LEGEND = 0.24
"""Inches of a line of the legend, which stands above the plot and hides nothing of it."""


class Chart:
    """A figure with one plot, and the SVG made of it; `legend` is the number of lines of its legend."""

    def __init__(self, name: str, height: float = HEIGHT, left: float = 0.65, legend: int = 0) -> None:
        self._name = name
        self._left = left
        self._top = 0.12 + LEGEND * legend
        style: Any = {**STYLE, "svg.hashsalt": name}
        self._style = rc_context(style)
        self._height = height

    def __enter__(self) -> Any:
        self._style.__enter__()
        self._figure = Figure(figsize=(WIDTH, self._height))
        self._figure.subplots_adjust(
            left=self._left / WIDTH, right=1 - 0.1 / WIDTH, bottom=0.52 / self._height, top=1 - self._top / self._height
        )
        return self._figure.subplots()

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                out = io.BytesIO()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a font without some letter of a name: the browser has another
                    self._figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
                self._svg = out.getvalue()
        finally:
            self._style.__exit__(kind, error, trace)

    def drawn(self, alt: str) -> Markup:
        """Return the picture; `alt` says what is seen in it."""
        return themed(self._svg, self._name, alt)


def themed(svg: bytes, name: str, alt: str) -> Markup:
    """Return an SVG for a page with a strict Content-Security-Policy.

    Styles become attributes, and colours that stand for one of the style become classes. Ids get the name as prefix,
    for a page has several pictures; those that nothing refers to are left out.
    """
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
    return Markup(ElementTree.tostring(root, encoding="unicode"))


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


def _counts(axes: Any, counts: Ints) -> None:
    """Let the y axis count: whole numbers, logarithmic if a few bars would hide all others."""
    if _tall(counts):
        _logarithmic(axes, counts)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_ylim(0, max(1.05 * float(counts.max(initial=1)), 1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))
    axes.grid(axis="x", visible=False)


def _legend(axes: Any, columns: int) -> None:
    """Put the legend above the plot, where it hides nothing."""
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1.0), ncols=columns, borderaxespad=0.2, borderpad=0, handlelength=1.6
    )


def _number(value: float) -> str:
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit and value % (unit / 10) == 0):
            return f"{value / unit:g}{sign}"
    return f"{value:g}"


def _signed(value: float) -> str:
    return f"{value:.4g}".replace("-", "−")


def _mark(axes: Any, at: float, label: str) -> None:
    """Draw a vertical line at a threshold."""
    axes.axvline(at, color=WARN, linewidth=1.4, linestyle=(0, (4, 3)), label=label, zorder=4)


def _tall(counts: Ints) -> bool:
    """Return whether a few bars would hide all others, so that a logarithmic scale is needed."""
    some = counts[counts > 0]
    return len(some) > 1 and float(some.max()) > 30 * float(np.median(some))


def _logarithmic(axes: Any, counts: Ints) -> None:
    """Let a unit of the y axis be a factor of ten; a bar of one can still be seen."""
    axes.set_yscale("log")
    axes.set_ylim(0.7, max(1.5 * float(counts.max(initial=1)), 10))
    axes.yaxis.set_minor_locator(NullLocator())


def similarity_histogram(
    edges: Floats, counts: Ints, threshold: float | None, what: str = "similarity", name: str = "similarities"
) -> Markup:
    """Draw how many pairs there are of each similarity; `name` tells pictures of a page apart."""
    chart = Chart(name, legend=threshold is not None)
    with chart as axes:
        axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=ACCENT, linewidth=0)
        if threshold is not None:
            _mark(axes, threshold, f"threshold {_signed(threshold)}")
            _legend(axes, 1)
        axes.set_xlabel(what)
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.set_ylabel("pairs")
        _counts(axes, counts)
    top = int(np.argmax(counts)) if len(counts) else 0
    alt = (
        f"Histogram of the {what} of {counted(int(counts.sum()), 'pair')}, from {edges[0]:.3g} to {edges[-1]:.3g}; "
        f"most of them, {int(counts[top]):,}, from {edges[top]:.3g} to {edges[top + 1]:.3g}."
    )
    return chart.drawn(alt)


def s_curve(banding: Banding, threshold: float, recall: float | None, certificate: dict[str, Any] | None) -> Markup:
    """Draw the S-curve of a run, its threshold, the recall asked for, and the recall as measured."""
    s = np.linspace(0, 1, 201)
    reached = banding.probability(threshold)
    chart = Chart("s-curve", legend=2)
    with chart as axes:
        axes.plot(s, banding.probability(s), color=ACCENT, linewidth=2.4, label=str(banding), zorder=3)
        axes.plot([threshold], [reached], "o", color=ACCENT, zorder=5)
        _mark(axes, threshold, f"threshold {_signed(threshold)}")
        if recall is not None:
            label = f"requested recall, {recall:g}"
            axes.plot([threshold, 1], [recall, recall], color=INK, linewidth=1.2, linestyle=":", label=label, zorder=4)
        if certificate is not None and certificate["recall"] is not None:
            low, high = certificate["low"], certificate["high"]
            label = f"measured, {low:.3f} to {high:.3f}"
            axes.fill_between([threshold, 1], low, high, color=SOFT, linewidth=0, label=label, zorder=1)
        axes.set_xlim(0, 1.005)
        axes.set_ylim(0, 1.03)
        axes.set_xlabel("similarity of a pair")
        axes.set_ylabel("probability of being found")
        _legend(axes, 2)
    alt = (
        f"S-curve of {banding}: a pair at the threshold {threshold:g} is found with probability {reached:.4f}, half of "
        f"the pairs at {banding.exact_threshold:.3f}."
    )
    return chart.drawn(alt)


def cluster_sizes(sizes: Ints, counts: Ints, members: str = "documents") -> Markup:
    """Draw how many clusters there are of each size; of powers of two if some are large."""
    last = int(sizes.max())
    edges = np.arange(2, last + 1) if last <= MOST_SIZES else 2 ** np.arange(1, last.bit_length())
    tally = np.bincount(np.searchsorted(edges, sizes, side="right") - 1, counts, len(edges)).astype(np.int64)
    labels = [_number(int(low)) if last <= MOST_SIZES else _span(int(low)) for low in edges]
    chart = Chart("cluster-sizes")
    with chart as axes:
        axes.bar(range(len(tally)), tally, color=ACCENT, width=0.82, linewidth=0)
        step = -(-len(labels) // 9)
        axes.set_xticks(range(0, len(labels), step), labels[::step])
        axes.set_xlabel(f"{members} per cluster")
        axes.set_ylabel("clusters")
        _counts(axes, tally)
    alt = (
        f"Sizes of {counted(int(counts.sum()), 'cluster')}: "
        f"{int(counts[sizes == 2].sum()):,} of two, the largest of {last:,}."
    )
    return chart.drawn(alt)


def _span(low: int) -> str:
    high = 2 * low - 1
    return f"{_number(low)}–{_number(high)}" if low < 512 else f"≥{_number(low)}"


def score_histogram(scores: dict[str, Any], threshold: float | None) -> Markup:
    """Draw the scores of candidates and of matches."""
    edges = np.array(scores["edges"])
    candidates, matches = np.array(scores["candidates"]), np.array(scores["matches"])
    chart = Chart("scores", legend=1)
    with chart as axes:
        width = np.diff(edges)
        axes.bar(edges[:-1], candidates, width=width, align="edge", color=SECOND, linewidth=0, label="pairs compared")
        axes.bar(edges[:-1], matches, width=width, align="edge", color=ACCENT, linewidth=0, label="matches")
        if threshold is not None:
            _mark(axes, threshold, f"threshold {_signed(threshold)}")
        axes.set_xlabel("score")
        axes.set_ylabel("pairs")
        _counts(axes, candidates)
        _legend(axes, 3)
    alt = (
        f"Histogram of the scores of {counted(int(candidates.sum()), 'candidate')} and "
        f"{counted(int(matches.sum()), 'match', 'matches')}, from "
        f"{edges[0]:.4g} to {edges[-1]:.4g}."
    )
    return chart.drawn(alt)


def field_points(points: dict[str, dict[str, float]]) -> Markup:
    """Draw the points of every field where it disagrees and where it agrees."""
    names = list(points)[::-1]
    longest = min(22, max(map(len, names)))
    chart = Chart("field-points", max(1.6, 0.34 * len(names) + 0.9) + LEGEND, 0.25 + 0.09 * longest, 1)
    with chart as axes:
        for kind, colour, label in (("disagree", SECOND, "it disagrees"), ("agree", ACCENT, "it agrees")):
            values = [points[name][kind] for name in names]
            axes.barh(range(len(names)), values, color=colour, height=0.62, linewidth=0, label=label)
        axes.axvline(0, color=INK, linewidth=0.9)
        axes.set_yticks(range(len(names)), [visible(name if len(name) < 22 else name[:21] + "…") for name in names])
        axes.set_xlabel("points of a field")
        _legend(axes, 2)
        axes.grid(axis="y", visible=False)
    told = "; ".join(f"{name} {one['disagree']:+.1f} to {one['agree']:+.1f}" for name, one in points.items())
    return chart.drawn(f"Points of every field from disagreement to agreement: {visible(told)}.")


def validation_curve(rows: Iterable[dict[str, Any]], threshold: float | None) -> Markup:
    """Draw the fraction of true matches by score."""
    some = [row for row in rows if row["fraction"] is not None]
    middle = np.array([(row["score_from"] + row["score_to"]) / 2 for row in some])
    chart = Chart("validation", legend=1)
    with chart as axes:
        low, high = (np.clip([row[name] for row in some], 0, 1) for name in ("low", "high"))
        axes.fill_between(middle, low, high, color=SOFT, linewidth=0, label="95 % interval")
        axes.plot(middle, [row["fraction"] for row in some], "o-", color=ACCENT, linewidth=2, label="true matches")
        if threshold is not None:
            _mark(axes, threshold, f"threshold {_signed(threshold)}")
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("score")
        axes.set_ylabel("fraction of true matches")
        axes.yaxis.set_major_locator(MaxNLocator(6))
        _legend(axes, 3)
    ends = f"{some[0]['fraction']:.2f} to {some[-1]['fraction']:.2f}" if some else "nothing"
    return chart.drawn(f"Fraction of true matches by score, from a column that was not compared: {ends}.")
