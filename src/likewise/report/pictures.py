"""Pictures of a run, in the colours of its page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from markupsafe import Markup

from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.report.samples import Floats, Ints
from likewise.report.words import visible
from likewise.view.picture import LEGEND, Plot, count_scale, name_scale, number_scale, short_number

MOST_SIZES = 10
"""Up to this largest size, every size of clusters has a bar of its own."""
LONGEST_NAME = 22
"""Characters of the name of a field."""


def similarity_histogram(edges: Floats, counts: Ints, threshold: float | None, what: str = "similarity") -> Markup:
    """Draw how many pairs there are of each similarity."""
    plot = Plot(number_scale(edges[0], edges[-1], grid=False), count_scale(counts), what, "pairs")
    plot.bars(edges, counts, "accent")
    plot.threshold(threshold)
    top = int(np.argmax(counts)) if len(counts) else 0
    alt = (
        f"Histogram of the {what} of {counted(int(counts.sum()), 'pair')}, from {edges[0]:.3g} to {edges[-1]:.3g}; "
        f"most of them, {int(counts[top]):,}, from {edges[top]:.3g} to {edges[top + 1]:.3g}."
    )
    return Markup(plot.svg(alt))


def s_curve(banding: Banding, threshold: float, recall: float | None, certificate: dict[str, Any] | None) -> Markup:
    """Draw the S-curve of a run, its threshold, the recall asked for, and the recall as measured."""
    s = np.linspace(0, 1, 201)
    reached = banding.probability(threshold)
    plot = Plot(
        number_scale(0, 1, 0.005), number_scale(0, 1, 0.03), "similarity of a pair", "probability of being found"
    )
    if certificate is not None and certificate["recall"] is not None:
        low, high = certificate["low"], certificate["high"]
        plot.band([threshold, 1], [low, low], [high, high], "soft", f"measured, {low:.3f} to {high:.3f}")
    plot.line(s, banding.probability(s), "accent", str(banding))
    plot.threshold(threshold)
    if recall is not None:
        plot.line([threshold, 1], [recall, recall], "ink", f"requested recall, {recall:g}", 1.2, "1.2 2")
    plot.dots([threshold], [reached], "accent")
    alt = (
        f"S-curve of {banding}: a pair at the threshold {threshold:g} is found with probability {reached:.4f}, half of "
        f"the pairs at {banding.exact_threshold:.3f}."
    )
    return Markup(plot.svg(alt))


def cluster_sizes(sizes: Ints, counts: Ints, members: str = "documents") -> Markup:
    """Draw how many clusters there are of each size; of powers of two if some are large."""
    last = int(sizes.max())
    edges = np.arange(2, last + 1) if last <= MOST_SIZES else 2 ** np.arange(1, last.bit_length())
    tally = np.bincount(np.searchsorted(edges, sizes, side="right") - 1, counts, len(edges)).astype(np.int64)
    labels = [short_number(low) for low in edges.tolist()]
    if last > MOST_SIZES:
        labels = [f"{low}–{2 * low - 1}" if low < 512 else f"≥{short_number(low)}" for low in edges.tolist()]
    plot = Plot(name_scale(labels), count_scale(tally), f"{members} per cluster", "clusters")
    plot.bars(np.arange(len(tally) + 1) - 0.5, tally, "accent", gap=0.18)
    two = int(counts[sizes == 2].sum())
    alt = f"Sizes of {counted(int(counts.sum()), 'cluster')}: {two:,} of two, the largest of {last:,}."
    return Markup(plot.svg(alt))


def score_histogram(scores: dict[str, Any], threshold: float | None) -> Markup:
    """Draw the scores of candidates and of matches."""
    edges, candidates, matches = (np.array(scores[name]) for name in ("edges", "candidates", "matches"))
    plot = Plot(number_scale(edges[0], edges[-1], grid=False), count_scale(candidates), "score", "pairs")
    plot.bars(edges, candidates, "second", "pairs compared")
    plot.bars(edges, matches, "accent", "matches")
    plot.threshold(threshold)
    pairs, found = counted(int(candidates.sum()), "candidate"), counted(int(matches.sum()), "match", "matches")
    alt = f"Histogram of the scores of {pairs} and {found}, from {edges[0]:.4g} to {edges[-1]:.4g}."
    return Markup(plot.svg(alt))


def field_points(points: dict[str, dict[str, float]]) -> Markup:
    """Draw the points of every field where it disagrees and where it agrees."""
    names = list(points)[::-1]
    values = {kind: [points[name][kind] for name in names] for kind in ("disagree", "agree")}
    ends = [0.0, *values["disagree"], *values["agree"]]
    shown = [visible(name if len(name) < LONGEST_NAME else name[: LONGEST_NAME - 1] + "…") for name in names]
    left = 18 + 6.5 * min(LONGEST_NAME, max(map(len, shown)))
    height = max(115.0, 24.5 * len(names) + 65) + LEGEND
    plot = Plot(
        number_scale(min(ends), max(ends)), name_scale(shown, len(shown)), "points of a field", "", left, height
    )
    plot.rows(values["disagree"], "second", "it disagrees")
    plot.rows(values["agree"], "accent", "it agrees")
    plot.line([0, 0], [-1, len(names)], "ink", width=0.9)
    told = "; ".join(f"{name} {ends['disagree']:+.1f} to {ends['agree']:+.1f}" for name, ends in points.items())
    return Markup(plot.svg(f"Points of every field from disagreement to agreement: {visible(told)}."))


def validation_curve(rows: Iterable[dict[str, Any]], threshold: float | None) -> Markup:
    """Draw the fraction of true matches by score."""
    some = [row for row in rows if row["fraction"] is not None]
    middle = [(row["score_from"] + row["score_to"]) / 2 for row in some]
    across = [*middle, *([] if threshold is None else [threshold])] or [0.0]
    plot = Plot(number_scale(min(across), max(across)), number_scale(0, 1, 0.03), "score", "fraction of true matches")
    low, high = (np.clip([row[name] for row in some], 0, 1).tolist() for name in ("low", "high"))
    plot.band(middle, low, high, "soft", "95 % interval")
    plot.line(middle, [row["fraction"] for row in some], "accent", "true matches", 2)
    plot.dots(middle, [row["fraction"] for row in some], "accent")
    plot.threshold(threshold)
    ends = f"{some[0]['fraction']:.2f} to {some[-1]['fraction']:.2f}" if some else "nothing"
    return Markup(plot.svg(f"Fraction of true matches by score, from a column that was not compared: {ends}."))
