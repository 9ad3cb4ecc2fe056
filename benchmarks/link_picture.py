"""Draw docs/reliability.svg: of pairs with a probability of so much, so many match, from results/link.json.

    python benchmarks/link_picture.py

A panel for each collection with at least three tenths of ENOUGH pairs; the tasks of name joining are one. The larger a
dot, the more pairs it stands for.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from link_scores import ENOUGH
from runs import HERE

PICTURE = HERE.parent / "docs" / "reliability.svg"
TITLES = {
    "schools": "schools",
    "patentees": "patentees",
    "cora": "Cora",
    "abt-buy": "Abt–Buy",
    "amazon-google": "Amazon–Google",
    "movies": "films",
    "register": "made persons",
    "people": "made people",
    "names": "17 name tasks",
}
Tenths = list[tuple[float, float, int]]
"""The stated and the true part of the pairs of each tenth, and their number."""


def panels(table: list[dict[str, Any]]) -> dict[str, Tenths]:
    """The tenths with enough pairs of every collection; those of one folder are added up."""
    sums: dict[str, dict[float, np.ndarray]] = {}
    for row in table:
        for one in row.get("reliability", []):
            tenths = sums.setdefault(row["collection"].partition("/")[0], {})
            pairs = np.array([one["stated"] * one["pairs"], one["true"] * one["pairs"], one["pairs"]])
            tenths[one["low"]] = tenths.get(one["low"], np.zeros(3)) + pairs
    found: dict[str, Tenths] = {}
    for name in TITLES:
        enough = (some for _, some in sorted(sums.get(name, {}).items()) if some[2] >= ENOUGH)
        found[name] = [(stated / pairs, true / pairs, int(pairs)) for stated, true, pairs in enough]
    return {name: tenths for name, tenths in found.items() if len(tenths) >= 3}


def draw(found: dict[str, Tenths]) -> None:
    """Draw a panel for each."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "likewise", "svg.fonttype": "none", "font.size": 9}
    from matplotlib.figure import Figure

    rows = -(-len(found) // 3)
    figure = Figure(figsize=(7.2, 2.3 * rows), layout="constrained")
    every = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False)
    for axes in every.flat[len(found) :]:
        axes.set_visible(False)
    for axes, (name, tenths) in zip(every.flat, found.items(), strict=False):
        stated, true, pairs = zip(*tenths, strict=True)
        axes.plot([0, 1], [0, 1], color="#70757a", lw=1, ls="--")
        axes.plot(stated, true, color="#0b6e4f", lw=1, alpha=0.5)
        axes.scatter(stated, true, s=8 * np.log10(pairs) ** 1.5, color="#0b6e4f", zorder=3)
        axes.set_title(TITLES[name], fontsize=10)
        axes.set_xlim(-0.05, 1.05)
        axes.set_ylim(-0.05, 1.05)
        axes.set_aspect("equal")
        axes.grid(alpha=0.25)
    figure.supxlabel("match_probability, mean of a tenth")
    figure.supylabel("part of the pairs that match")
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    draw(panels(json.loads((HERE / "results" / "link.json").read_text())["table"]))
