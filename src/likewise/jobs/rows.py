"""Tables of results, made as a whole or some rows at a time so that they need not be in memory; and plots of them:
how similar the pairs are, and how large the clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.base import checks
from likewise.base.arrays import to_arrow
from likewise.base.extras import need
from likewise.base.words import counted
from likewise.families.banding import Banding
from likewise.io.write import ROWS, write_batches
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


class Tables:
    """A result whose tables, the attributes that `files` names, can be had as DataFrames."""

    files: ClassVar[dict[str, str]] = {}

    def to_pandas(self, name: str | None = None) -> Any:
        """Return the table of this name as a pandas DataFrame; without a name, the only one, or a dictionary of all."""
        return self._frames("to_pandas", name, "pandas", lambda table: table.to_pandas())

    def to_polars(self, name: str | None = None) -> Any:
        """Return the table of this name as a polars DataFrame; without a name, the only one, or a dictionary of all.

        polars reads Arrow's memory in place, without a copy.
        """
        return self._frames("to_polars", name, "polars", lambda table: import_module("polars").from_arrow(table))

    def _frames(self, owner: str, name: str | None, library: str, convert: Callable[[Any], Any]) -> Any:
        """Convert one table, None if this run has none of that name, or all that there are."""
        names = [*self._table_names()]
        if name is None and len(names) == 1:
            name = names[0]
        if name is not None:
            checks.choice(owner, "name", name, names)
        need(owner, library)
        tables = {one: self._arrow_table(one) for one in (names if name is None else [name])}
        frames = {one: None if table is None else convert(table) for one, table in tables.items()}
        return frames[name] if name is not None else {one: made for one, made in frames.items() if made is not None}

    def _table_names(self) -> Iterable[str]:
        """Return the attributes that have tables."""
        return self.files.values()

    def _arrow_table(self, name: str) -> Any:
        """Return one of the tables as an Arrow table."""
        return getattr(self, name)


class Rows:
    """A table that is made some rows at a time, so that it need not be in memory."""

    def __init__(self, length: int, columns: dict[str, Callable[[slice], Any]]) -> None:
        self._length = length
        self._columns = columns

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._length

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self._columns)

    def type_of(self, column: str) -> Any:
        """Return the type of a column."""
        return self._batch(slice(0, 0), [column]).schema.types[0]

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or some columns of them, in batches of the size of a row group."""
        for start in range(0, self._length, ROWS):
            yield self._batch(slice(start, min(start + ROWS, self._length)), columns)

    def take(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return a few rows by their numbers."""
        return [found for row in rows.tolist() for found in self._batch(slice(row, row + 1)).to_pylist()]

    def _batch(self, part: slice, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        names = self.columns if columns is None else list(columns)
        made = (self._columns[name](part) for name in names)
        whole = [one.combine_chunks() if isinstance(one, pa.ChunkedArray) else one for one in made]
        return pa.RecordBatch.from_arrays(whole, names)

    def table(self) -> pa.Table:
        """Return the whole table."""
        return pa.Table.from_batches(self.batches(), self._batch(slice(0, 0)).schema).combine_chunks()

    def write(self, path: Path, threads: int = 1) -> None:
        """Write the table, in the format of the extension of the path."""
        write_batches(self.batches(), self._batch(slice(0, 0)).schema, path, threads)


def pair_table(names_a: Any, names_b: Any, similarity: NDArray[np.float64]) -> Any:
    """Return a table of pairs."""
    return pa.table({"id_a": names_a, "id_b": names_b, "similarity": to_arrow(similarity)})


def distances_table(names_a: Any, names_b: Any, distance: Any) -> Any:
    """Return a table of pairs with their distances."""
    return pa.table({"id_a": names_a, "id_b": names_b, "distance": to_arrow(np.asarray(distance, np.float64))})


def estimate_table(names_a: Any, names_b: Any, similarity: NDArray[np.float64], error: NDArray[np.float64]) -> Any:
    """Return a table of pairs whose similarity is estimated."""
    numbers = {"estimated_similarity": to_arrow(similarity), "standard_error": to_arrow(error)}
    return pa.table({"id_a": names_a, "id_b": names_b, **numbers})


class PlottedPairs:
    """Gives a result the method `plot`."""

    stats: dict[str, Any]
    batches: Callable[[], Iterable[Any]]

    def plot(self, path: str | Path | None = None) -> Any:
        """Plot the similarities, distances or scores of the pairs; return the Matplotlib figure, and save it to a path.

        A dashed line shows the threshold, a curve the probability with which pairs are found, and a second plot how
        many clusters there are of each size, if the result has any. It needs `pip install 'likewise[plot]'`. The suffix
        of the path determines the format: .png, .svg, .pdf.
        """
        name, values = self._scores()
        sizes = self._cluster_sizes()
        figure, axes = new_figure(1 if sizes is None else 2, 4.2 if sizes is None else 6.8, squeeze=False)
        _plot_scores(axes[0, 0], name, values, self.stats)
        if sizes is not None:
            _plot_clusters(axes[1, 0], sizes, _members(self.stats, name))
        if path is not None:
            save_figure(figure, path)
        return figure

    def _scores(self) -> tuple[str, NDArray[np.float64]]:
        """Return the name and the values of the column with similarities or distances."""
        name, parts = "similarity", [np.zeros(0)]
        for batch in self.batches():
            name = next(one for one in SCORES if one in batch.schema.names)
            parts.append(np.asarray(batch.column(name)))
        if len(parts) == 1 and self.stats["parameters"].get("measure") in DISTANCES:
            name = "distance"
        return name, np.concatenate(parts)

    def _cluster_sizes(self) -> NDArray[np.int64] | None:
        """Return the sizes of the clusters, if the result has any."""
        return None


def _plot_scores(axes: Any, name: str, values: NDArray[np.float64], stats: dict[str, Any]) -> None:
    """Draw a histogram of similarities or distances, with the threshold and the curve of the banding."""
    parameters = stats["parameters"]
    limit = parameters.get("within") if name == "distance" else parameters.get("threshold")
    if name == "score":
        limit = stats["details"]["threshold"]
        low, high = float(values.min(initial=limit)), float(values.max(initial=limit))
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
    legend_beside(axes, 1.08)


def _members(stats: dict[str, Any], score: str) -> str:
    """Return what clusters have."""
    return "vectors" if score == "distance" else "records" if stats["command"] == "link" else "documents"


def _plot_clusters(axes: Any, sizes: NDArray[np.int64], members: str = "documents") -> None:
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
