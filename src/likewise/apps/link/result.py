"""The result of `link`: matches, clusters, validation, and how they came about."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.link.decision import Decision
from likewise.apps.link.differences import differences
from likewise.apps.link.entities import keepers
from likewise.apps.link.fields import Floats
from likewise.apps.link.matched_pairs import MatchedPairs
from likewise.apps.link.pair_reason import LinkageTrace, PairReason
from likewise.apps.link.parameters import each_given
from likewise.apps.link.records import NOT_COMPARED, RecordTable
from likewise.apps.link.scoring import ScoredRecords
from likewise.apps.link.validation import BINS, MOST_RANDOM, EstimatedMean, Validation, validate
from likewise.apps.link.weights import plotted_weights
from likewise.apps.link.window import Window, random_in
from likewise.base import checks
from likewise.base.arrays import Ints, to_arrow
from likewise.base.extras import installed
from likewise.base.words import counted
from likewise.errors import InputError, ParameterError
from likewise.io.publish import check_output, publish
from likewise.io.workspace import Workspace
from likewise.jobs.result import Result
from likewise.jobs.rows import PlottedPairs

NEAR = 20
"""Pairs kept on each side of the threshold, for `Links.examples`."""

PLOT = "validation.png"
WEIGHTS_PLOT = "weights.png"


@dataclass(frozen=True)
class Example:
    """A pair near the threshold: its score, whether it is a match, and the two records."""

    score: float
    match: bool
    a: dict[str, Any]
    b: dict[str, Any]


class Links(PlottedPairs, Result):
    """The result of `link`: tables `.matches`, `.clusters`, `.validation` and `.scored`, `.stats`, and `.save(dir)`.

    matches: id_a, id_b, score, and the points of every field. With the prior, stats["details"]["prior"], these add up
    to the score.
    clusters: for one table, the records with duplicates: id, cluster (the id of its first record), size, keeper (the id
    of the record with the most values). None for two tables.
    validation: with `validate`, the fraction of true matches by score; otherwise None.
    weights: what was learned: field, level, agreement (in words), points, and the part of the matches and of the other
    candidates with this agreement. None if nothing was learned.
    """

    files: ClassVar[dict[str, str]] = {
        "matches.parquet": "matches",
        "clusters.parquet": "clusters",
        "validation.parquet": "validation",
        "weights.parquet": "weights",
    }
    plots: ClassVar[tuple[str, ...]] = (PLOT, WEIGHTS_PLOT)
    """Plots that `save` writes, where Matplotlib is installed."""

    def __init__(
        self,
        matches: pa.Table,
        clusters: pa.Table | None,
        validation: Validation | None,
        stats: dict[str, Any],
        records: RecordTable,
        pairs: tuple[Ints, Ints, Floats],
        near: list[tuple[float, bool, int, int]],
        windows: Sequence[Window] = (),
        weights: pa.Table | None = None,
        trace: LinkageTrace | None = None,
    ) -> None:
        self.matches = matches
        self.weights = weights
        self._trace = trace
        self.clusters = clusters
        self.validation = None if validation is None else validation.table
        self.stats = stats
        self._validation = validation
        self._records = records
        self._pairs = pairs
        self._near = near
        self._windows = windows

    @property
    def scored(self) -> pa.Table:
        """All pairs that were compared: id_a, id_b, score."""
        left, right, scores = self._pairs
        columns = {"id_a": self._records.names(left), "id_b": self._records.names(right)}
        return pa.table({**columns, "score": to_arrow(scores)})

    def validate(self, column: str, bins: int = BINS) -> Validation:
        """Return the fraction of true matches by score, from a column that was not compared (MMDS §3.8.3)."""
        self._records.check_column(column)
        if column in self.stats["details"]["fields"]:
            raise ParameterError.of("validate", "column", NOT_COMPARED, column)
        return validated(self._records, self._pairs, column, bins, self.stats["parameters"]["seed"], self._windows)

    def examples(self, n: int = 3) -> list[Example]:
        """Return up to n pairs just above the threshold and n just below it, highest scores first."""
        above = [one for one in self._near if one[1]][:n]
        below = [one for one in self._near if not one[1]][:n]
        rows = [*above[::-1], *below]
        return [Example(s, match, self._records.row(i), self._records.row(j)) for s, match, i, j in rows]

    def explain(self, id_a: Any, id_b: Any) -> PairReason:
        """Return why two records are a match or not: points field by field, and what decided.

        `print` shows it as a table; its attributes have everything, and `to_dict` gives plain data.
        """
        assert self._trace is not None
        return self._trace.explain(id_a, id_b)

    def _scores(self) -> tuple[str, Floats]:
        """Return the scores of all pairs that were compared, for `plot`."""
        return "score", self._pairs[2]

    def _cluster_sizes(self) -> Ints | None:
        """Return the sizes of the clusters, for `plot`; None for two tables."""
        if self.clusters is None:
            return None
        return np.unique(self.clusters["cluster"].combine_chunks().dictionary_encode().indices, return_counts=True)[1]

    def plot_weights(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a Matplotlib figure of the weights, a plot for each field, and write it to `path` if one is given."""
        return plotted_weights(self.weights, None if path is None else Path(path))

    @classmethod
    def checked_folder(cls, folder: str | os.PathLike[str], *read: Any) -> Path:
        """Return a folder for the result; raise if it could not be saved there, or would replace what is read."""
        found = checks.path("link", "out", folder)
        inputs = [one for one in each_given(read) if isinstance(one, str | os.PathLike)]
        check_output(found, "link", [*cls.files, *cls.plots], inputs)
        return found

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write the tables as Parquet, plots and run.json to a folder, all or nothing, and return the folder.

        A table that is None is not written. Plots need Matplotlib, and are left out without it.
        """
        folder = Path(directory)
        self.write(folder)
        return folder

    def write(self, folder: Path, space: Workspace | None = None) -> None:
        """Write the result to a folder; `space` is the open workspace of the run there, if it has one."""
        contents: dict[str, Any] = {file: getattr(self, name) for file, name in self.files.items()}
        contents |= dict.fromkeys(self.plots)
        if self.weights is not None and installed("plot"):
            contents[WEIGHTS_PLOT] = self.plot_weights
        if self._validation is not None and installed("plot"):
            column = self.stats["parameters"]["validate"]
            contents[PLOT] = partial(self._validation.plot, measure=f"apart in {column}")
        publish(folder, contents, self.stats, space=space)

    def _summary(self) -> str:
        counts = self.stats["counts"]
        among = counted(counts["records"], "record")
        if "records_b" in counts:
            among = f"{counts['records_a']:,} and {counts['records_b']:,} records"
        clusters = f", {counted(counts['clusters'], 'cluster')}" if "clusters" in counts else ""
        return f"{counted(counts['matches'], 'match', 'matches')}{clusters} among {among}"


def validated(
    records: RecordTable,
    pairs: tuple[Ints, Ints, Floats],
    column: str,
    bins: int,
    seed: int,
    windows: Sequence[Window] = (),
) -> Validation:
    """Return the fraction of true matches by score among the pairs compared, from a column of the records.

    With windows, random pairs are pairs of records in them, all of which are equally likely.
    """
    left, right, scores = pairs
    sides = (records.values(column, left), records.values(column, right))
    if not windows:
        return validate(scores.tolist(), sides, bins=bins, seed=seed)
    first, second = random_in(windows, MOST_RANDOM, seed)
    apart = differences(records.values(column, first), records.values(column, second))
    known = np.isfinite(apart)
    if known.sum() < 2:
        raise InputError(f"{column}: no two records within the window have values; choose another column or window")
    several = min(len(np.unique(side[known])) for side in (first, second))
    return validate(scores.tolist(), sides, random=EstimatedMean.of(apart[known], several), bins=bins, seed=seed)


def matches_table(records: RecordTable, matched: MatchedPairs, unit: float) -> pa.Table:
    """Return the matches, highest scores first: id_a, id_b, score, and the points of every field."""
    first, second = matched.pairs[:, 0], matched.pairs[:, 1]
    order = np.lexsort((second, first, -matched.scores))
    columns = {"id_a": records.names(first[order]), "id_b": records.names(second[order])}
    columns["score"] = to_arrow(np.round(matched.scores[order] * unit, 4))
    for name, points in matched.points.items():
        column = f"points_{name.replace(' ', '_')}"
        columns[f"points_{name}" if column in columns else column] = to_arrow(np.round(points[order], 4))
    return pa.table(columns)


def clusters_table(records: RecordTable, labels: Ints) -> pa.Table:
    """Return the records that are in a cluster with others: id, cluster, size, keeper."""
    filled = np.sum([one.codes >= 0 for one in records.fields], axis=0)
    keeper = keepers(labels, filled)
    sizes = np.bincount(labels, minlength=len(labels))[labels]
    members = np.flatnonzero(sizes > 1)
    members = members[np.lexsort((members, labels[members]))]
    return pa.table(
        {
            "id": records.names(members),
            "cluster": records.names(labels[members]),
            "size": to_arrow(sizes[members].astype(np.int64)),
            "keeper": records.names(keeper[members]),
        }
    )


def near_threshold(
    left: Ints, right: Ints, scored: ScoredRecords, decision: Decision
) -> list[tuple[float, bool, int, int]]:
    """Return the matches just above the threshold, nearest first, then the other pairs just below it.

    Each has its score, whether it is a match, and the two records.
    """
    chosen = np.zeros(len(left), bool)
    chosen[decision.chosen] = True
    above = decision.chosen[scored.value[decision.chosen] >= decision.threshold]
    above = above[np.argsort(scored.value[above], kind="stable")[:NEAR]]
    below = np.flatnonzero(~chosen & (scored.value < decision.threshold))
    below = below[np.argsort(-scored.value[below], kind="stable")[:NEAR]]
    rows = [*above.tolist(), *below.tolist()]
    return [(float(scored.value[i] * scored.unit), bool(chosen[i]), int(left[i]), int(right[i])) for i in rows]
