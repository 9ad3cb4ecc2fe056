"""Draw the figures of docs/chapter/, each from likewise's own functions.

    python tools/figures.py              all of them (needs Matplotlib, and a few seconds)

Figures 3.8, 3.10, 3.11 and 3.15 are redrawn from Chapter 3 of Mining of Massive Datasets; the others are our own.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb, inf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.figure import Figure

from likewise import Banding, Chars, GridTriples, Hyperplanes, MinHash, RandomLines, Sets
from likewise.exact import Bounds
from likewise.measures import batch, jaccard, lr
from likewise.theory import linear_chance

FOLDER = Path(__file__).parent.parent / "docs" / "chapter"
GREEN, RED, BLUE, BROWN, GREY = "#0b6e4f", "#b0413e", "#3b6ea8", "#a0763a", "#70757a"
rcParams["svg.hashsalt"] = "likewise"
rcParams["svg.fonttype"] = "none"
rcParams["font.family"] = "sans-serif"
rcParams["axes.spines.top"] = rcParams["axes.spines.right"] = False


def axes(x: str, y: str, width: float = 6.4, height: float = 3.6) -> tuple[Figure, Any]:
    """Return an empty figure with the names of its axes."""
    figure = Figure(figsize=(width, height), layout="constrained")
    one = figure.add_subplot()
    one.set_xlabel(x)
    one.set_ylabel(y)
    one.grid(alpha=0.25)
    return figure, one


def sets() -> Figure:
    """Two random subsets of m of 100 elements: the expected similarity, and the range of most."""
    figure, one = axes("elements of each set, of 100", "Jaccard similarity")
    sizes = np.arange(1, 101)
    expected = [
        sum(
            comb(m, i) * comb(100 - m, m - i) / comb(100, m) * i / (2 * m - i)
            for i in range(max(0, 2 * m - 100), m + 1)
        )
        for m in sizes.tolist()
    ]
    rng = np.random.default_rng(1)
    drawn = np.array(
        [
            np.quantile(
                [jaccard(rng.permutation(100)[:m].tolist(), rng.permutation(100)[:m].tolist()) for _ in range(200)],
                [0.05, 0.95],
            )
            for m in sizes[::3].tolist()
        ]
    )
    one.fill_between(sizes[::3], drawn[:, 0], drawn[:, 1], color=GREEN, alpha=0.2, label="nine of ten random pairs")
    one.plot(sizes, expected, color=GREEN, lw=2, label="expected")
    one.legend(frameon=False)
    return figure


def shingles() -> Figure:
    """How similar unrelated pages, and pages with one word in fifty changed, are by shingles of k characters."""
    from pydoc_data.topics import topics

    figure, one = axes("k, characters of a shingle", "mean Jaccard similarity")
    pages = [text for text in topics.values() if len(text) > 4000][:40]
    changed = [" ".join("x" if i % 50 == 49 else word for i, word in enumerate(page.split())) for page in pages]
    left, right = np.triu_indices(len(pages), 1)
    ks = range(1, 13)
    unrelated, near = [], []
    for k in ks:
        whole = Chars(k).sets(pages)
        unrelated.append(batch.jaccard(whole.take(left), whole.take(right)).mean())
        near.append(batch.jaccard(whole, Chars(k).sets(changed)).mean())
    one.plot(ks, near, color=GREEN, lw=2, marker="o", label="a page, and itself with one word in 50 changed")
    one.plot(ks, unrelated, color=RED, lw=2, marker="o", label="two different pages")
    one.set_ylim(0, 1.02)
    one.legend(frameon=False, loc="center right")
    return figure


def minhashing() -> Figure:
    """The error of estimates by the length of the signature, beside the standard error of theory."""
    figure, one = axes("slots of the signature", "root mean square error of the estimate")
    rng = np.random.default_rng(1)
    lengths = [16, 32, 64, 128, 256, 512, 1024]
    pairs = []
    for _ in range(200):
        values = rng.choice(1 << 40, 1000, replace=False)
        pairs += [values[:900].tolist(), values[100:].tolist()]
    made = Sets.from_lists(pairs)
    for method, colour in (("classic", BLUE), ("fast", GREEN)):
        errors = []
        for n in lengths:
            signatures = MinHash(seed=1, method=method).signatures(made, n)
            found = (signatures[::2] == signatures[1::2]).mean(axis=1)
            errors.append(float(np.sqrt(np.mean((found - 0.8) ** 2))))
        one.plot(lengths, errors, color=colour, marker="o", lw=2, label=f"measured, {method}")
    one.plot(lengths, [sqrt(0.8 * 0.2 / n) for n in lengths], color=GREY, ls="--", label="√(s(1 − s)/n), s = 0.8")
    one.set_xscale("log", base=2)
    one.set_yscale("log")
    one.set_xticks(lengths, [str(n) for n in lengths])
    one.legend(frameon=False)
    return figure


def figure_3_8() -> Figure:
    """The S-curve of 20 bands of 5 rows, with the values that the figure tabulates."""
    figure, one = axes("Jaccard similarity s of a pair", "probability of becoming a candidate")
    banding, s = Banding(20, 5), np.linspace(0, 1, 401)
    one.plot(s, banding.probability(s), color=GREEN, lw=2)
    for tenth in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
        p = banding.probability(tenth)
        one.plot(tenth, p, "o", color=GREEN)
        one.annotate(f"{p:.4f}", (tenth, p), (7, -11), textcoords="offset points", fontsize=9)
    one.axvline(banding.threshold, color=GREY, ls="--", lw=1)
    one.annotate(
        f"(1/b)^(1/r) = {banding.threshold:.3f}",
        (banding.threshold, 0.02),
        (5, 0),
        textcoords="offset points",
        color=GREY,
    )
    return figure


def _cascade(family: Any, ps: list[float]) -> Figure:
    figure, one = axes("p, probability that one function agrees", "probability of a candidate")
    p = np.linspace(0, 1, 401)
    one.plot(p, p, color=GREY, ls="--", lw=1)
    one.plot(p, family.curve(p), color=GREEN, lw=2)
    for x in ps:
        one.plot(x, family.curve(x), "o", color=GREEN)
        one.annotate(f"{family.curve(x):.4f}", (x, family.curve(x)), (7, -11), textcoords="offset points", fontsize=9)
    fixed = family.fixed_point()
    one.plot(fixed, fixed, "s", color=RED)
    one.annotate(f"fixed point {fixed:.3f}", (fixed, fixed), (-8, 8), textcoords="offset points", color=RED, ha="right")
    return figure


def figure_3_10() -> Figure:
    """A 4-way AND followed by a 4-way OR."""
    return _cascade(MinHash().all_of(4).any_of(4), [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])


def figure_3_11() -> Figure:
    """A 4-way OR followed by a 4-way AND."""
    return _cascade(MinHash().any_of(4).all_of(4), [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])


def distances() -> Figure:
    """The points at distance 1 from the origin, by four norms."""
    figure, one = axes("x", "y", 4.4, 4.2)
    turns = np.linspace(0, 2 * np.pi, 721)
    for r, colour in ((1, RED), (2, GREEN), (4, BLUE), (inf, BROWN)):
        points = np.array([np.array([np.cos(t), np.sin(t)]) / lr((0, 0), (np.cos(t), np.sin(t)), r) for t in turns])
        one.plot(points[:, 0], points[:, 1], color=colour, lw=2, label="L∞" if r == inf else f"L{r}")
    one.set_aspect("equal")
    one.legend(frameon=False, loc="center")
    return figure


def other_families() -> Figure:
    """Collision probabilities of random hyperplanes and of random lines."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    angles, ratio = np.linspace(0, 180, 361), np.linspace(0.02, 4, 400)
    left.plot(angles, Hyperplanes().probability(angles), color=GREEN, lw=2, label="one hyperplane")
    left.plot(angles, Hyperplanes().all_of(8).any_of(16).probability(angles), color=BLUE, lw=2, label="16 bands of 8")
    left.set_xlabel("angle, degrees")
    left.set_ylabel("probability of a collision")
    right.plot(ratio, RandomLines(a=1.0).probability(ratio), color=GREEN, lw=2, label="one line")
    right.plot(
        ratio, RandomLines(a=1.0).all_of(4).any_of(32).probability(ratio), color=BLUE, lw=2, label="32 bands of 4"
    )
    right.set_xlabel("distance / length of a segment")
    for one in (left, right):
        one.grid(alpha=0.25)
        one.legend(frameon=False)
    return figure


def applications() -> Figure:
    """Fingerprints: the two errors by the number of functions."""
    figure, one = axes("functions, each of three squares", "probability of the error")
    prints, counts = GridTriples(squares=1000, density=0.2), np.unique(np.geomspace(16, 8192, 60).astype(int)).tolist()
    one.plot(
        counts,
        [1 - prints.any_of(n).probability(0.2) for n in counts],
        color=RED,
        lw=2,
        label="a print of the same finger is missed",
    )
    one.plot(
        counts,
        [prints.any_of(n).probability(0.8) for n in counts],
        color=BLUE,
        lw=2,
        label="another finger is compared",
    )
    one.axvline(1024, color=GREY, ls="--", lw=1)
    one.set_xscale("log", base=2)
    one.legend(frameon=False, loc="center left")
    return figure


def figure_3_15() -> Figure:
    """The buckets that are searched for a string of ten symbols at J = 0.8."""
    figure = Figure(figsize=(7.2, 3.0), layout="constrained")
    parts = figure.subplots(1, 3, sharey=True)
    searched = list(Bounds("jaccard", 0.8).buckets(10))
    for i, one in enumerate(parts, 1):
        cells = [(j, q) for at, j, q in searched if at == i]
        one.scatter([j for j, _ in cells], [q for _, q in cells], marker="s", s=260, color=GREEN, zorder=3)
        one.set_title(f"symbol i = {i} of s", fontsize=10)
        one.set_xlim(0.4, 3.6)
        one.set_ylim(6.3, 11.7)
        one.set_xticks([1, 2, 3])
        one.set_yticks(range(7, 12))
        one.set_xlabel("position j in t")
        one.grid(alpha=0.25)
    parts[0].set_ylabel("symbols q after it in t")
    return figure


def lectures() -> Figure:
    """The end of a run of k numbers comes first more often than it should under linear permutations."""
    figure, one = axes("k, numbers of the set", "probability of coming first, times k")
    ks = [2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987]
    ends = [float(k * linear_chance(10007, range(k), 0)) for k in ks]
    middles = [float(k * linear_chance(10007, range(k), k // 2)) for k in ks]
    one.plot(ks, ends, color=RED, lw=2, marker="o", label="the first of 0, 1, …, k − 1")
    one.plot(ks, middles, color=BLUE, lw=2, marker="o", label="the middle one")
    one.axhline(1, color=GREY, ls="--", lw=1, label="min-wise independent")
    one.set_xscale("log")
    one.set_ylim(0, 3)
    one.legend(frameon=False)
    return figure


FIGURES: dict[str, Callable[[], Figure]] = {
    "sets": sets,
    "shingles": shingles,
    "minhashing": minhashing,
    "figure-3-8": figure_3_8,
    "distances": distances,
    "figure-3-10": figure_3_10,
    "figure-3-11": figure_3_11,
    "other-families": other_families,
    "applications": applications,
    "figure-3-15": figure_3_15,
    "lectures": lectures,
}


def main() -> None:
    """Draw all figures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        draw().savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
