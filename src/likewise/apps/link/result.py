"""The result of `link`: matches, clusters, validation, the learned weights, and how they came about."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from likewise.apps.link.agreement import ALL_TEXT, EQUAL, LEVELS, PARTS, STEPS
from likewise.apps.link.entities import MatchedPairs, keepers
from likewise.apps.link.fields import Floats
from likewise.apps.link.learned_rules import MODEL, LearnedRules
from likewise.apps.link.pair_reason import LinkageTrace, PairReason
from likewise.apps.link.records import NOT_COMPARED, RecordTable
from likewise.apps.link.scored_records import POINTS, ScoredRecords
from likewise.apps.link.stored_scores import COPIES, SCORED, stored_tables
from likewise.apps.link.validation import BINS, MOST_RANDOM, EstimatedMean, Validation, validate, written_figure
from likewise.apps.link.window import Window, differences, random_in
from likewise.base.arrays import Ints, to_arrow
from likewise.base.extras import installed, need
from likewise.base.runlog import RunLog
from likewise.base.words import counted
from likewise.errors import InputError, LikewiseError, ParameterError
from likewise.io.publish import check_output, publish
from likewise.io.upload import to_store
from likewise.io.workspace import Workspace
from likewise.jobs.result import Result
from likewise.jobs.rows import PlottedPairs

BARS = 40
"""Ranges of scores that are counted."""

PLOT = "validation.png"


@dataclass(frozen=True)
class Example:
    """A pair near the threshold: its score, whether it is a match, and the two records."""

    score: float
    match: bool
    a: dict[str, Any]
    b: dict[str, Any]


class Links(PlottedPairs, Result):
    """The result of `link`: tables `.matches`, `.clusters`, `.validation` and `.scored`, `.stats`, and `.save(dir)`.

    matches: id_a, id_b, score, match_probability (null if the scores do not say it), and the points of every field.
    With the prior, stats["details"]["prior"], these add up to the score.
    clusters: for one table, the records with duplicates: id, cluster (the id of its first record), size, keeper (the id
    of the record with the most values). None for two tables.
    validation: with `validate`, the fraction of true matches by score; otherwise None.
    added, merged: with `against`, the new records (id, cluster, and whether they joined an earlier entity), and the
    earlier entities that are now part of another (cluster, into); clusters then has all records, matches those pairs
    that have a new record. Otherwise None.
    weights: what was learned: field, level, agreement (in words), points, and the part of the matches and of the other
    candidates with this agreement. None if nothing was learned.
    """

    files: ClassVar[dict[str, str]] = {
        "matches.parquet": "matches",
        "clusters.parquet": "clusters",
        "validation.parquet": "validation",
        "weights.parquet": "weights",
        "added.parquet": "added",
        "merged.parquet": "merged",
    }
    plots: ClassVar[tuple[str, ...]] = (PLOT, "weights.png")
    """Plots that this version, where Matplotlib is installed, or an earlier one wrote, and that are replaced."""

    def __init__(
        self,
        matches: pa.Table,
        clusters: pa.Table | None,
        validation: Validation | None,
        weights: pa.Table | None,
        stats: dict[str, Any],
        trace: LinkageTrace,
        added: pa.Table | None = None,
        merged: pa.Table | None = None,
    ) -> None:
        self.matches, self.clusters, self.weights, self.stats = matches, clusters, weights, stats
        self.added, self.merged = added, merged
        self.validation = None if validation is None else validation.table
        self._validation, self._trace, self._records = validation, trace, trace.records

    @property
    def tables(self) -> list[pa.Table]:
        """The tables of records, as they were read."""
        self._records.read_again()
        return self._records.tables

    @property
    def rules(self) -> LearnedRules | None:
        """What the run of one table decided by; None for two tables, or if its records are not known."""
        if self.clusters is None or not self._records.fields:
            return None
        return LearnedRules.of(self._trace, self.stats["parameters"]["weights"])

    @property
    def scored(self) -> pa.Table:
        """All pairs that were compared: id_a, id_b, score, match_probability."""
        (left, right, scores), order = self._trace.pairs, self._trace.by_row
        left, right, scores, probable = left[order], right[order], scores[order], self._trace.probable[order]
        columns = {"id_a": self._records.names(left), "id_b": self._records.names(right), "score": to_arrow(scores)}
        return pa.table({**columns, "match_probability": as_probabilities(probable)})

    def validate(self, column: str, bins: int = BINS) -> Validation:
        """Return the fraction of true matches by score, from a column that was not compared (MMDS §3.8.3)."""
        self._records.check_column(column)
        if column in self.stats["details"]["fields"]:
            raise ParameterError.of("validate", "column", NOT_COMPARED, column)
        seed, windows = self.stats["parameters"]["seed"], self._trace.windows
        return validated(self._records, self._trace.pairs, column, bins, seed, windows)

    def examples(self, n: int = 3) -> list[Example]:
        """Return up to n pairs just above the threshold and n just below it, highest scores first."""
        left, right, scores = self._trace.pairs
        value, decision = self._trace.scored.value, self._trace.decision
        chosen = np.zeros(len(left), bool)
        chosen[decision.chosen] = True
        above = np.flatnonzero(chosen & (value >= decision.threshold))
        above = above[np.argsort(value[above], kind="stable")[:n]][::-1]
        below = np.flatnonzero(~chosen & (value < decision.threshold))
        below = below[np.argsort(-value[below], kind="stable")[:n]]
        row = self._records.row
        places = np.concatenate([above, below]).tolist()
        return [Example(float(scores[i]), bool(chosen[i]), row(int(left[i])), row(int(right[i]))) for i in places]

    def explain(self, id_a: Any, id_b: Any) -> PairReason:
        """Return why two records are a match or not: points field by field, and what decided.

        `print` shows it as a table; its attributes have everything, and `to_dict` gives plain data.
        """
        return self._trace.explain(id_a, id_b)

    def _scores(self) -> tuple[str, Floats]:
        """Return the scores of all pairs that were compared, for `plot`."""
        return "score", self._trace.pairs[2]

    def _cluster_sizes(self) -> Ints | None:
        """Return the sizes of the clusters, for `plot`; None for two tables."""
        if self.clusters is None:
            return None
        return np.unique(self.clusters["cluster"].combine_chunks().dictionary_encode().indices, return_counts=True)[1]

    def plot_weights(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a Matplotlib figure of the weights, a plot for each field, and write it to `path` if one is given."""
        return plotted_weights(self.weights, None if path is None else Path(path))

    @classmethod
    def check_folder(cls, folder: Path, read: list[Any]) -> None:
        """Raise if the result could not be saved in a folder, or would replace a file that is read."""
        check_output(folder, "link", [*cls.files, SCORED, COPIES, MODEL, *cls.plots], read)

    @to_store("directory")
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
        rules = self.rules
        contents |= {**dict.fromkeys((SCORED, COPIES, *self.plots)), MODEL: None if rules is None else rules.write}
        if self.stats["parameters"]["scored"]:
            contents |= stored_tables(self.scored, self._trace)
        if self._validation is not None and installed("plot"):
            column = self.stats["parameters"]["validate"]
            contents[PLOT] = partial(self._validation.plot, measure=f"apart in {column}")
        publish(folder, contents, self.stats, space=space)

    def _summary(self) -> str:
        counts = self.stats["counts"]
        among = counted(counts["records"], "record")
        if "records_b" in counts:
            among = f"{counts['records_a']:,} and {counts['records_b']:,} records"
        if "records_new" in counts:
            among = f"{counted(counts['records_new'], 'new record')} and {counts['records_earlier']:,} earlier ones"
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
    columns["match_probability"] = as_probabilities(matched.probable[order])
    for name, points in matched.points.items():
        column = f"points_{name.replace(' ', '_')}"
        columns[f"points_{name}" if column in columns else column] = to_arrow(np.round(points[order], 4))
    return pa.table(columns)


def result_tables(
    records: RecordTable, matched: MatchedPairs, labels: Ints | None, unit: float, log: RunLog
) -> tuple[pa.Table, pa.Table | None]:
    """Return the matches and, of one table, the clusters, given that of each record, and count them."""
    log.counts["matches"] = len(matched.pairs)
    if labels is None:
        return matches_table(records, matched, unit), None
    sizes = np.bincount(labels)
    log.counts |= {"clusters": int((sizes > 1).sum()), "clustered": int(sizes[sizes > 1].sum())}
    return matches_table(records, matched, unit), clusters_table(records, labels)


def as_probabilities(values: Floats) -> pa.Array:
    """Return probabilities as a column, null where they are not known."""
    return pa.array(np.round(values, 4), mask=np.isnan(values))


def clusters_table(records: RecordTable, labels: Ints) -> pa.Table:
    """Return the records that are in a cluster with others: id, cluster, size, keeper."""
    filled = np.zeros(len(labels), np.int64)
    for one in records.fields:
        filled += one.codes >= 0
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


def count_scores(log: RunLog, scores: Floats, matched: Floats) -> None:
    """Note how many candidates, and how many matches, have which scores."""
    known = scores[np.isfinite(scores)]
    if not len(known):
        return
    low = float(min(known.min(), matched.min(initial=np.inf)))
    high = float(max(known.max(), matched.max(initial=-np.inf)))
    edges = np.linspace(low, high if high > low else low + 1.0, BARS + 1)
    log.details["scores"] = {
        "edges": [round(float(edge), 4) for edge in edges],
        "candidates": np.histogram(known, edges)[0].tolist(),
        "matches": np.histogram(matched, edges)[0].tolist(),
    }


COUNTED = 500_000
"""Candidates that are no matches in which levels are counted, at most; the error of a frequency is below 0.001."""

COLUMNS = 3
"""Plots beside each other."""

FOR, AGAINST, UNSEEN = "#2a6f97", "#b5523b", "#d9dce0"


def weights_table(scored: ScoredRecords, matches: Ints, seed: int = 1) -> pa.Table | None:
    """Return the points of each level of each field, and its frequency among matches and other candidates.

    Columns: field, level, agreement (in words), points, matches, others. The frequencies are parts of the pairs with
    two values, or with a value that is found in another field; null if there are none. None if nothing was learned.
    """
    model = scored.model
    if model is None:
        return None
    chosen = np.zeros(len(scored.value), bool)
    chosen[matches] = True
    others = np.flatnonzero(~chosen)
    if len(others) > COUNTED:
        others = np.sort(np.random.default_rng(seed).choice(others, COUNTED, replace=False))
    rows: list[dict[str, Any]] = []
    for one in scored.compared:
        share = model.share(one.name)
        parts = []
        for some in (matches, others):
            there = one.level[some]
            counts = np.bincount(there[there >= 0], minlength=LEVELS)
            parts.append(counts / counts.sum() if counts.sum() else None)
        for level in range(LEVELS):
            if one.name == ALL_TEXT and level >= EQUAL:
                continue
            rows.append(
                {
                    "field": "all_text" if one.name == ALL_TEXT else one.name,
                    "level": level,
                    "agreement": level_name(level),
                    "points": round(float(model.weights[one.name][level] * share * POINTS), 4),
                    "matches": None if parts[0] is None else float(parts[0][level]),
                    "others": None if parts[1] is None else float(parts[1][level]),
                }
            )
    kinds = {"field": pa.string(), "level": pa.int64(), "agreement": pa.string()}
    schema = pa.schema([*kinds.items(), *((name, pa.float64()) for name in ("points", "matches", "others"))])
    return pa.Table.from_pylist(rows, schema=schema)


def level_name(level: int) -> str:
    """Return a level of agreement in words.

    >>> level_name(0), level_name(13), level_name(20), level_name(23), level_name(-1)
    ('0.00 to 0.05', '0.65 to 0.70', 'identical', 'elsewhere 0.4 to 0.6', 'missing')
    """
    if level < 0:
        return "missing"
    if level == EQUAL:
        return "identical"
    if level > EQUAL:
        part = level - EQUAL - 1
        return f"elsewhere {part / PARTS:.1f} to {(part + 1) / PARTS:.1f}"
    return f"{level / STEPS:.2f} to {(level + 1) / STEPS:.2f}"


def plotted_weights(table: pa.Table | None, path: str | Path | None = None) -> Any:
    """Return a Matplotlib figure of the weights, a plot for each field, and write it to `path`."""
    if table is None:
        raise LikewiseError("there are no learned weights to plot: the pairs were scored without a model")
    need("a plot", "plot")
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    names = list(dict.fromkeys(table["field"].to_pylist()))
    columns = min(COLUMNS, len(names))
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns + 0.8, 2.3 * lines + 0.9), dpi=120, layout="constrained")
    axes = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    rows = table.to_pylist()
    at = np.concatenate([np.arange(STEPS) + 0.5, [STEPS + 1.5], np.arange(PARTS) + STEPS + 6])
    ticks = [0, STEPS / 2, STEPS + 1.5, STEPS + 6 + (PARTS - 1) / 2]
    for name, plot in zip(names, axes, strict=False):
        mine = [row for row in rows if row["field"] == name]
        points = np.array([row["points"] for row in mine])
        seen = np.array([(row["matches"] or 0) + (row["others"] or 0) > 0 for row in mine])
        colours = np.where(~seen, UNSEEN, np.where(points >= 0, FOR, AGAINST))
        plot.bar(at[[row["level"] for row in mine]], points, width=0.9, color=colours.tolist())
        plot.axhline(0, color="#4a4e54", linewidth=0.8)
        plot.set_title(name, fontsize=10, loc="left", parse_math=False)
        plot.grid(axis="y", color="#e6e6e6", linewidth=0.8)
        plot.set_axisbelow(True)
        plot.spines[["top", "right"]].set_visible(False)
        plot.set_xticks(ticks, ["0", "0.5", "equal", "elsewhere"])
        plot.tick_params(labelsize=8, labelbottom=True)
    for plot in axes[len(names) :]:
        plot.set_visible(False)
    figure.supylabel("points", fontsize=9)
    figure.supxlabel("similarity of the two values, or the part found in another field", fontsize=9)
    kinds = {"for a match": FOR, "against": AGAINST, "no candidate has it": UNSEEN}
    handles = [Patch(color=colour, label=kind) for kind, colour in kinds.items()]
    figure.legend(handles=handles, loc="outside upper right", ncols=3, fontsize=8, frameon=False)
    return written_figure(figure, path)
