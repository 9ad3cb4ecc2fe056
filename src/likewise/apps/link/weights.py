"""The learned weights as a table and a plot: how many points each level of agreement of each field is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from likewise.apps.link.agreement import ALL_TEXT, EQUAL, LEVELS, PARTS, STEPS
from likewise.apps.link.scoring import POINTS, ScoredRecords
from likewise.apps.link.validation import written_figure
from likewise.base.arrays import Ints
from likewise.base.extras import need
from likewise.errors import LikewiseError

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
