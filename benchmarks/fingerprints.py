"""Accuracy and speed of `likewise fingerprints`, on real prints and on synthetic ones.

    python benchmarks/fingerprints.py --data FOLDER          real prints, 50 and 500 synthetic ones: a minute
    python benchmarks/fingerprints.py --fingers 1000         5,000 synthetic prints, 100 of them looked up

FOLDER has fingerprints.csv: minutiae (impression, x, y, angle) with the finger of each. Without it, only
synthetic prints are measured (made_prints.py). On real prints:

- "default": all defaults; the fingers serve only to count what is right.
- "all compared": the scores of all pairs, whether or not they are candidates.
- "left out": tolerances and threshold chosen on nine fingers and tested on the pairs of the tenth, each in turn.
- "as they lie": random triples of squares (MMDS §3.8.5) on the raw prints, which are not aligned as it assumes.
- "laid together": the same after every print was aligned with the first print of its finger, for which the fingers must
  be known; with what the formulas of MMDS §3.8.5 predict from the density and agreement that the squares then have.

Writes results/fingerprints.json, and with --data the picture docs/fingerprints.svg.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.apps.fingerprints import (
    Curve,
    Fingerprints,
    Grid,
    Prints,
    Rate,
    agreement,
    curve,
    fingerprints,
    read_prints,
)
from likewise.families.grids import GridTriples
from made_prints import made

HERE = Path(__file__).parent
PICTURE = HERE.parent / "docs" / "fingerprints.svg"
NEAR, TURNED = (10.0, 12.0, 15.0, 20.0), (15.0, 20.0, 30.0)
ALL_PAIRS = 200
"""Fingers up to which all prints are compared with all."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def scores(found: Fingerprints, prints: Prints) -> Floats:
    """The score of every pair, as a table of prints by prints; 0 if they were not compared."""
    number = {name: i for i, name in enumerate(prints.names)}
    out = np.zeros((len(prints), len(prints)))
    for a, b, score in zip(*(found.scored[name].to_pylist() for name in ("id_a", "id_b", "score")), strict=True):
        out[number[a], number[b]] = out[number[b], number[a]] = score
    return out


def of_pairs(table: Floats, prints: Prints) -> tuple[Floats, Bools]:
    """The scores of all pairs, and which of them are of one finger."""
    i, j = np.triu_indices(len(prints), 1)
    fingers = np.array(prints.fingers)
    return table[i, j], fingers[i] == fingers[j]


def judged(table: Floats, prints: Prints) -> Curve:
    values, same = of_pairs(table, prints)
    return curve(values[same], values[~same])


def statistics(drawn: Curve) -> dict[str, float]:
    """Statistics of a curve."""
    found = {"equal_error": drawn.equal_error}
    return found | {f"true_at_false_{false:g}": drawn.true_at(false) for false in (0.0, 0.001, 0.01)}


def default(prints: Prints, threads: int) -> tuple[Fingerprints, dict[str, Any]]:
    found = fingerprints(prints, threads=threads)
    begun = time.perf_counter()
    found = fingerprints(prints, threads=threads)
    seconds = time.perf_counter() - begun
    details = found.stats["details"]
    kept = {"threshold": details["threshold"], "counts": found.stats["counts"], "rates": details["rates"]}
    return found, {"seconds": seconds, **kept, **statistics(judged(scores(found, prints), prints))}


def left_out(prints: Prints, threads: int) -> dict[str, Any]:
    """Choose on all fingers but one, judge by that one; the pairs of two such fingers are judged twice."""
    fingers = np.array(prints.fingers)
    tables = {
        (near, turned): scores(fingerprints(prints, near=near, turned=turned, threads=threads), prints)
        for near, turned in product(NEAR, TURNED)
    }
    right = missed = passed = others = 0
    chosen: list[list[float]] = []
    for finger in np.unique(fingers):
        here = fingers == finger
        rest = prints.take(np.flatnonzero(~here))
        best, line = (0.0, 0.0), 0.0
        least = np.inf
        for setting, table in tables.items():
            drawn = judged(table[np.ix_(~here, ~here)], rest)
            error = 1 - drawn.true + drawn.false
            at = int(np.argmin(error))
            if error[at] < least:
                least, best, line = float(error[at]), setting, _between(drawn, at)
        chosen.append([*best, line])
        own = tables[best][np.ix_(here, here)][np.triu_indices(int(here.sum()), 1)]
        other = tables[best][np.ix_(here, ~here)].ravel()
        right += int((own >= line).sum())
        missed += int((own < line).sum())
        passed += int((other >= line).sum())
        others += len(other)
    return {
        "true_match": Rate(right, right + missed).to_dict(),
        "false_match": Rate(passed, others).to_dict(),
        "chosen_near_turned_threshold": chosen,
    }


def _between(drawn: Curve, at: int) -> float:
    """The middle between a threshold and the next score below it."""
    below = drawn.thresholds[at + 1] if at + 1 < len(drawn.thresholds) else drawn.thresholds[at]
    return float(drawn.thresholds[at] + below) / 2


def laid_together(prints: Prints, found: Fingerprints) -> Prints:
    """Align each print with the first of its finger, along the best chain of matches between them."""
    assert prints.fingers is not None
    rows = found.matches.to_pylist()
    first: dict[str, str] = {}
    for name, finger in zip(prints.names, prints.fingers, strict=True):
        first.setdefault(finger, name)
    finger_of = dict(zip(prints.names, prints.fingers, strict=True))
    ways = {name: (0.0, np.zeros(2)) for name in first.values()}
    while True:  # matches come best first, so that the best one to a print already laid down is taken
        for row in rows:
            a, b = row["id_a"], row["id_b"]
            if finger_of[a] == finger_of[b] and (a in ways) != (b in ways):
                break
        else:
            break
        turn, shift = np.radians(row["rotation"]), np.array([row["shift_x"], row["shift_y"]])
        if a in ways:  # the way back from b to a
            turn, shift = -turn, -_turned(shift, -turn)
            a, b = b, a
        after, moved = ways[b]
        ways[a] = (turn + after, _turned(shift, after) + moved)
    places = np.column_stack([prints.x, prints.y])
    angle = np.array(prints.angle)
    for number, name in enumerate(prints.names):
        part = slice(int(prints.offsets[number]), int(prints.offsets[number + 1]))
        turn, shift = ways.get(name, (0.0, np.zeros(2)))
        places[part] = _turned(places[part], turn) + shift
        angle[part] += turn
    return Prints(prints.names, places[:, 0].copy(), places[:, 1].copy(), angle, prints.offsets, prints.fingers)


def _turned(points: Floats, turn: float) -> Floats:
    cosine, sine = np.cos(turn), np.sin(turn)
    turned: Floats = points @ np.array([[cosine, sine], [-sine, cosine]])
    return turned


def by_the_chapter(prints: Prints, side: float = 20.0, border: float = 5.0) -> dict[str, Any]:
    """What 1024 functions, and two groups of them, do on these prints, and what the formulas say."""
    grid = Grid.over(prints, side, border)
    squares = grid.squares(prints)
    i, j = np.triu_indices(len(prints), 1)
    fingers = np.array(prints.fingers)
    same = fingers[i] == fingers[j]
    density = grid.density(squares)
    agree = {"same": agreement(squares, i[same], j[same]), "other": agreement(squares, i[~same], j[~same])}
    base = GridTriples(len(grid), density)
    out: dict[str, Any] = {"squares": len(grid), "density": density, "agreement": agree}
    for name, family in (("1024", base.any_of(1024)), ("2 x 1024", base.any_of(1024).all_of(2))):
        pairs = family.candidates(squares, sample=0)
        met = np.zeros((len(prints), len(prints)), bool)
        met[pairs.left, pairs.right] = True
        out[name] = {
            "true": Rate(int(met[i, j][same].sum()), int(same.sum())).to_dict(),
            "false": Rate(int(met[i, j][~same].sum()), int((~same).sum())).to_dict(),
            "formula_true": family.probability(1 - agree["same"]),
            "formula_false": family.probability(1 - agree["other"]),
        }
    return out


def real(path: Path, threads: int) -> tuple[dict[str, Any], dict[str, Curve]]:
    prints = read_prints(path, finger="finger")
    found, first = default(prints, threads)
    every = fingerprints(prints, votes=1e-9, threads=threads)
    lying = fingerprints(prints, aligned=True, threads=threads)
    laid = laid_together(prints, found)
    after = fingerprints(laid, aligned=True, threads=threads)
    curves = {
        "likewise, nothing set": judged(scores(found, prints), prints),
        "all pairs compared": judged(scores(every, prints), prints),
        "laid together by the truth, chapter's functions": judged(scores(after, laid), laid),
        "as they lie, chapter's functions": judged(scores(lying, prints), prints),
    }
    results = {
        "default": first,
        "all compared": statistics(curves["all pairs compared"]),
        "left out": left_out(prints, threads),
        "as they lie": {**lying.stats["details"]["rates"], **by_the_chapter(prints)},
        "laid together": {**after.stats["details"]["rates"], **by_the_chapter(laid)},
    }
    return results, curves


def grown(fingers: int, queries: int | None, threads: int) -> dict[str, Any]:
    """Synthetic prints: all pairs, or some prints against all."""
    table = made(fingers, 5, seed=fingers)
    prints = read_prints(table, finger="finger")
    only = None if queries is None else prints.names[:: max(1, len(prints) // queries)][:queries]
    begun = time.perf_counter()
    found = fingerprints(prints, only=only, threads=threads)
    seconds = time.perf_counter() - begun
    kept = {name: found.stats["details"][name] for name in ("threshold", "rates")}
    kept |= {name: found.stats[name] for name in ("counts", "peak_memory_bytes")}
    return {"prints": len(prints), "seconds": seconds, "stages": found.stats["seconds"], **kept}


def draw(curves: dict[str, Curve], path: Path) -> None:
    """Both rates at all thresholds; the false match rate on a logarithmic axis that ends where one pair is."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "likewise"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.2, 4.4))
    styles = ["-", "--", "-.", ":"]
    colours = ["#1b6ca8", "#111111", "#c4622d", "#888888"]
    for (name, drawn), style, colour in zip(curves.items(), styles, colours, strict=True):
        false = np.maximum(drawn.false, 5e-4)
        label = f"{name} (EER {100 * drawn.equal_error:.1f} %)" if drawn.equal_error < 0.1 else name
        axes.step(false, drawn.true, style, where="post", label=label, color=colour, linewidth=1.8)
    axes.set_xscale("log")
    axes.set_xlim(5e-4, 1)
    axes.set_ylim(0, 1.02)
    axes.set_xticks([5e-4, 1e-3, 1e-2, 1e-1, 1], ["0", "0.001", "0.01", "0.1", "1"])
    axes.set_xlabel("false match rate (of 1,125 pairs of different fingers)")
    axes.set_ylabel("true match rate (of 100 pairs)")
    axes.set_title("50 prints of 10 fingers, FVC 2002 DB1 B", fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.55), fontsize=8.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with fingerprints.csv")
    parser.add_argument("--fingers", type=int, nargs="*", default=[10, 100], help="synthetic, five prints each")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results" / "fingerprints.json")
    asked = parser.parse_args()
    summary = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    summary["machine"] = {"cores": os.cpu_count(), "python": platform.python_version(), "threads": asked.threads}
    summary["likewise"] = version("likewise")
    fingerprints(made(4, 3), threads=1)  # compiles, or loads what was compiled
    if asked.data is not None:
        summary["real"], curves = real(asked.data / "fingerprints.csv", asked.threads)
        draw(curves, PICTURE)
    for fingers in asked.fingers:
        name = f"{fingers * 5} prints"
        summary.setdefault("made", {})[name] = grown(fingers, 100 if fingers > ALL_PAIRS else None, asked.threads)
        rates = summary["made"][name]["rates"]
        true, false = (Rate(rates[kind]["count"], rates[kind]["of"]) for kind in ("true_match", "false_match"))
        print(f"made, {name}: {summary['made'][name]['seconds']:.1f} s; true {true}; false {false}", flush=True)
    asked.out.write_text(json.dumps(summary, indent=2) + "\n")
    if asked.data is not None:
        print(json.dumps(summary["real"], indent=1))


if __name__ == "__main__":
    main()
