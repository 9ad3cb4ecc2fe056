"""Plots of results: how similar the pairs are, and how large the clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.view.charts import COLOURS, DASHES, GREY, legend_beside, new_figure, plain_axes, save_figure

BINS = 50
"""Bars of a histogram."""
MOST_LOW = 0.9
"""A histogram of similarities begins here or below, so that 1 is not its only number."""
FEW, LEAST = 30, 0.7
"""Up to so many the scale is linear; a logarithmic one begins below 1, so that a bar of one is seen."""
SCORES = ("similarity", "estimated_similarity", "distance")
"""The columns that a histogram shows."""
DISTANCES = {"angle": "angle (degrees)", "l2": "l2 distance", "l1": "l1 distance", "hamming": "differing bits"}


class PlottedPairs:
    """Gives a result the method `plot`."""

    stats: dict[str, Any]
    _batches: Callable[[], Iterable[Any]]

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the similarities, distances or scores of the pairs; return the Matplotlib figure, and save it to a path.

        A dashed line shows the threshold, a curve the probability with which pairs are found, and a second plot how
        many clusters there are of each size, if the result has any. It needs `pip install 'likewise[plot]'`. The suffix
        of the path determines the format: .png, .svg, .pdf.
        """
        name, values = self._scores()
        sizes = self._cluster_sizes()
        figure, axes = new_figure(1 if sizes is None else 2, 4.2 if sizes is None else 6.8)
        upper = axes if sizes is None else axes[0]
        plot_scores(upper, name, values, self.stats)
        if sizes is not None:
            plot_clusters(axes[1], sizes, "records" if self.stats["command"] == "link" else "documents")
        if path is not None:
            save_figure(figure, path)
        return figure

    def _scores(self) -> tuple[str, NDArray[np.float64]]:
        """Return the name and the values of the column with similarities or distances."""
        name, parts = "similarity", [np.zeros(0)]
        for batch in self._batches():
            name = next(one for one in SCORES if one in batch.schema.names)
            parts.append(np.asarray(batch.column(name)))
        if len(parts) == 1 and self.stats["parameters"].get("measure") in DISTANCES:
            name = "distance"
        return name, np.concatenate(parts)

    def _cluster_sizes(self) -> NDArray[np.int64] | None:
        """Return the sizes of the clusters, if the result has any."""
        return None


def plot_scores(axes: Any, name: str, values: NDArray[np.float64], stats: dict[str, Any]) -> None:
    """Draw a histogram of similarities or distances, with the threshold and the curve of the banding."""
    parameters = stats["parameters"]
    limit = parameters.get("within") if name == "distance" else parameters.get("threshold")
    if name == "score":
        limit = stats["details"]["threshold"]
        low, high = (
            (min(limit, float(values.min())), max(limit, float(values.max()))) if len(values) else (limit, limit)
        )
        low, high = (low, high) if low < high else (low - 1, high + 1)
    elif name == "distance":
        low, high = 0.0, float(limit or values.max(initial=0) or 1.0)
    else:
        low, high = min(limit if limit is not None else 0.0, float(values.min(initial=1.0))), 1.0
        low = min(low, MOST_LOW)
    label = counted(len(values), "neighbour" if stats["command"] == "nearest" else "pair")
    counts, *_ = axes.hist(values, BINS, range=(low, high), color=COLOURS[0], label=label)
    _many(axes.yaxis, float(counts.max()))
    margin = (high - low) / 25
    axes.set_xlim(low - margin if name == "score" else max(0.0, low - margin), high + margin)
    if limit is not None:
        label = f"{'within' if name == 'distance' else 'threshold'} {limit:g}"
        axes.axvline(limit, color=GREY, linewidth=1.2, linestyle=DASHES, label=label)
    axes.set_xlabel(DISTANCES[parameters["measure"]] if name == "distance" else name.replace("_", " "))
    axes.set_ylabel("pairs")
    plain_axes(axes)
    known = stats["details"].get("banding")
    if known and name in ("similarity", "estimated_similarity"):
        banding = Banding(known["bands"], known["rows"])
        right = axes.twinx()
        s = np.linspace(max(0.0, low - margin), 1, 201)
        right.plot(s, banding.probability(s), color=COLOURS[2], linewidth=2)
        axes.plot([], [], color=COLOURS[2], linewidth=2, label=f"probability\nto be found:\n{banding}")
        right.set_ylim(0, 1.03)
        right.set_yticks([0, 0.5, 1])
        right.spines[["top", "left", "bottom"]].set_visible(False)
        right.tick_params(colors=COLOURS[2])
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.08, 1.0), borderaxespad=0.0, labelspacing=1.0)


def plot_clusters(axes: Any, sizes: NDArray[np.int64], members: str = "documents") -> None:
    """Draw how many clusters there are of each size; both axes are logarithmic."""
    several = sizes[sizes > 1]
    size, count = np.unique(several, return_counts=True)
    axes.plot(size, count, "o", color=COLOURS[0], label=counted(len(several), "cluster"))
    axes.vlines(size, LEAST if count.max(initial=0) > FEW else 0, count, color=COLOURS[0], linewidth=1)
    largest = max(10, int(1.3 * size.max(initial=2)))
    axes.set_xscale("log")
    axes.set_xlim(1.7, largest)
    ticks = [digit * 10**power for power in range(12) for digit in (1, 2, 5) if 2 <= digit * 10**power <= largest]
    axes.set_xticks(ticks[:: 1 + len(ticks) // 12], minor=False)
    axes.minorticks_off()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    _many(axes.yaxis, float(count.max(initial=0)))
    axes.set_xlabel(f"{members} in a cluster")
    axes.set_ylabel("clusters")
    plain_axes(axes)
    legend_beside(axes)


def _many(axis: Any, most: float) -> None:
    """Let the y axis count in whole numbers, logarithmically if there are many."""
    if most > FEW:
        axis.axes.set_yscale("log")
        axis.axes.set_ylim(LEAST, 2 * most)
    else:
        axis.axes.set_ylim(0, max(5.0, 1.1 * most))
        axis.get_major_locator().set_params(integer=True)
    axis.set_major_formatter("{x:,.0f}")
