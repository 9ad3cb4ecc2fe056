"""Pictures of a run, in the colours of its page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.report.samples import Floats, Ints
from likewise.report.words import visible
from likewise.view.charts import ACCENT, DASHES, INK, LEGEND, SECOND, SOFT, WARN, page_picture

MOST_SIZES = 10
"""Up to this largest size, every size of clusters has a bar of its own."""


def similarity_histogram(
    edges: Floats, counts: Ints, threshold: float | None, what: str = "similarity", name: str = "similarities"
) -> Markup:
    """Draw how many pairs there are of each similarity; `name` tells pictures of a page apart."""

    def draw(axes: Any) -> None:
        _bars(axes, edges, counts, ACCENT)
        _label(axes, what, "pairs", threshold, int(threshold is not None))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        _count(axes, counts)

    top = int(np.argmax(counts)) if len(counts) else 0
    alt = (
        f"Histogram of the {what} of {counted(int(counts.sum()), 'pair')}, from {edges[0]:.3g} to {edges[-1]:.3g}; "
        f"most of them, {int(counts[top]):,}, from {edges[top]:.3g} to {edges[top + 1]:.3g}."
    )
    return Markup(page_picture(name, alt, draw, legend=threshold is not None))


def s_curve(banding: Banding, threshold: float, recall: float | None, certificate: dict[str, Any] | None) -> Markup:
    """Draw the S-curve of a run, its threshold, the recall asked for, and the recall as measured."""
    s = np.linspace(0, 1, 201)
    reached = banding.probability(threshold)

    def draw(axes: Any) -> None:
        axes.plot(s, banding.probability(s), color=ACCENT, linewidth=2.4, label=str(banding), zorder=3)
        axes.plot([threshold], [reached], "o", color=ACCENT, zorder=5)
        _mark(axes, threshold)
        if recall is not None:
            label = f"requested recall, {recall:g}"
            axes.plot([threshold, 1], [recall, recall], color=INK, linewidth=1.2, linestyle=":", label=label, zorder=4)
        if certificate is not None and certificate["recall"] is not None:
            low, high = certificate["low"], certificate["high"]
            label = f"measured, {low:.3f} to {high:.3f}"
            axes.fill_between([threshold, 1], low, high, color=SOFT, linewidth=0, label=label, zorder=1)
        axes.set_xlim(0, 1.005)
        axes.set_ylim(0, 1.03)
        _label(axes, "similarity of a pair", "probability of being found", None, 2)

    alt = (
        f"S-curve of {banding}: a pair at the threshold {threshold:g} is found with probability {reached:.4f}, half of "
        f"the pairs at {banding.exact_threshold:.3f}."
    )
    return Markup(page_picture("s-curve", alt, draw, legend=2))


def cluster_sizes(sizes: Ints, counts: Ints, members: str = "documents") -> Markup:
    """Draw how many clusters there are of each size; of powers of two if some are large."""
    last = int(sizes.max())
    edges = np.arange(2, last + 1) if last <= MOST_SIZES else 2 ** np.arange(1, last.bit_length())
    tally = np.bincount(np.searchsorted(edges, sizes, side="right") - 1, counts, len(edges)).astype(np.int64)
    labels = [_number(low) for low in edges.tolist()]
    if last > MOST_SIZES:
        labels = [f"{_number(n)}–{_number(2 * n - 1)}" if n < 512 else f"≥{_number(n)}" for n in edges.tolist()]

    def draw(axes: Any) -> None:
        axes.bar(range(len(tally)), tally, color=ACCENT, width=0.82, linewidth=0)
        step = -(-len(labels) // 9)
        axes.set_xticks(range(0, len(labels), step), labels[::step])
        _label(axes, f"{members} per cluster", "clusters")
        _count(axes, tally)

    two = int(counts[sizes == 2].sum())
    alt = f"Sizes of {counted(int(counts.sum()), 'cluster')}: {two:,} of two, the largest of {last:,}."
    return Markup(page_picture("cluster-sizes", alt, draw))


def score_histogram(scores: dict[str, Any], threshold: float | None) -> Markup:
    """Draw the scores of candidates and of matches."""
    edges, candidates, matches = (np.array(scores[name]) for name in ("edges", "candidates", "matches"))

    def draw(axes: Any) -> None:
        _bars(axes, edges, candidates, SECOND, "pairs compared")
        _bars(axes, edges, matches, ACCENT, "matches")
        _label(axes, "score", "pairs", threshold, 3)
        _count(axes, candidates)

    pairs, found = counted(int(candidates.sum()), "candidate"), counted(int(matches.sum()), "match", "matches")
    alt = f"Histogram of the scores of {pairs} and {found}, from {edges[0]:.4g} to {edges[-1]:.4g}."
    return Markup(page_picture("scores", alt, draw, legend=1))


def field_points(points: dict[str, dict[str, float]]) -> Markup:
    """Draw the points of every field where it disagrees and where it agrees."""
    names = list(points)[::-1]

    def draw(axes: Any) -> None:
        for kind, colour, label in (("disagree", SECOND, "it disagrees"), ("agree", ACCENT, "it agrees")):
            values = [points[name][kind] for name in names]
            axes.barh(range(len(names)), values, color=colour, height=0.62, linewidth=0, label=label)
        axes.axvline(0, color=INK, linewidth=0.9)
        axes.set_yticks(range(len(names)), [visible(name if len(name) < 22 else name[:21] + "…") for name in names])
        _label(axes, "points of a field", "", None, 2)
        axes.grid(axis="y", visible=False)

    told = "; ".join(f"{name} {ends['disagree']:+.1f} to {ends['agree']:+.1f}" for name, ends in points.items())
    alt = f"Points of every field from disagreement to agreement: {visible(told)}."
    height, left = max(1.6, 0.34 * len(names) + 0.9) + LEGEND, 0.25 + 0.09 * min(22, max(map(len, names)))
    return Markup(page_picture("field-points", alt, draw, height, left, 1))


def validation_curve(rows: Iterable[dict[str, Any]], threshold: float | None) -> Markup:
    """Draw the fraction of true matches by score."""
    some = [row for row in rows if row["fraction"] is not None]
    middle = np.array([(row["score_from"] + row["score_to"]) / 2 for row in some])

    def draw(axes: Any) -> None:
        low, high = (np.clip([row[name] for row in some], 0, 1) for name in ("low", "high"))
        axes.fill_between(middle, low, high, color=SOFT, linewidth=0, label="95 % interval")
        axes.plot(middle, [row["fraction"] for row in some], "o-", color=ACCENT, linewidth=2, label="true matches")
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_locator(MaxNLocator(6))
        _label(axes, "score", "fraction of true matches", threshold, 3)

    ends = f"{some[0]['fraction']:.2f} to {some[-1]['fraction']:.2f}" if some else "nothing"
    alt = f"Fraction of true matches by score, from a column that was not compared: {ends}."
    return Markup(page_picture("validation", alt, draw, legend=1))


def _bars(axes: Any, edges: Floats, counts: Ints, colour: str, label: str | None = None) -> None:
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=colour, linewidth=0, label=label)


def _label(axes: Any, across: str, up: str, threshold: float | None = None, legend: int = 0) -> None:
    """Name both axes, mark a threshold, and put a legend of so many columns above the plot, where it hides nothing."""
    if threshold is not None:
        _mark(axes, threshold)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    if legend:
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1.0), ncols=legend, borderaxespad=0.2, borderpad=0, handlelength=1.6
        )


def _mark(axes: Any, threshold: float) -> None:
    label = f"threshold {threshold:.4g}".replace("-", "−")
    axes.axvline(threshold, color=WARN, linewidth=1.4, linestyle=DASHES, label=label, zorder=4)


def _count(axes: Any, counts: Ints) -> None:
    """Let the y axis count: whole numbers, logarithmic if a few bars would hide all others; a bar of one is seen."""
    some, most = counts[counts > 0], float(counts.max(initial=1))
    if len(some) > 1 and most > 30 * float(np.median(some)):
        axes.set_yscale("log")
        axes.set_ylim(0.7, max(1.5 * most, 10))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.yaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_ylim(0, max(1.05 * most, 1))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))
    axes.grid(axis="x", visible=False)


def _number(value: float) -> str:
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 10 * unit or (abs(value) >= unit and value % (unit / 10) == 0):
            return f"{value / unit:g}{sign}"
    return f"{value:g}"
