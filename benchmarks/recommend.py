"""Collaborative filtering: similar pairs against brute force, held-out items recommended, and growth.

python benchmarks/recommend.py                                   all of it on MovieLens 100k, and growth
python benchmarks/recommend.py --data FOLDER                     and on the baskets in FOLDER/retail.sets.gz
python benchmarks/recommend.py --only truth|held-out|growth|picture

MovieLens 100k comes with the wheel of recbole, which is fetched once with pip and kept in .data.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from corpus import DATA, HERE
from likewise.apps.recommend import Ratings, read_ratings, recommend
from likewise.base.memory import peak_memory

PACKAGE = "recbole==1.2.1"
INSIDE = "recbole/dataset_example/ml-100k/ml-100k.inter"
RESULTS = HERE / "results" / "recommend.json"
PICTURE = HERE.parent / "docs" / "recommend.svg"
THRESHOLD = 0.2
SAMPLED = 500
"""Baskets that are compared with all others."""
HELD_OUT = 2000
"""Customers of whom an item is held out; all, if there are fewer."""
SEED = 1
Ints = NDArray[np.int64]
Pair = tuple[int, int]


def movielens(folder: Path = DATA) -> Path:
    """The ratings, unpacked from the wheel."""
    target = folder / "ml-100k.inter"
    if not target.exists():
        wheels = folder / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        if not any(wheels.glob("recbole-*.whl")):
            download = [
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--only-binary=:all:",
                "--dest",
                str(wheels),
                PACKAGE,
            ]
            subprocess.run([sys.executable, "-m", *download], check=True)
        with ZipFile(min(wheels.glob("recbole-*.whl"))) as archive:
            target.write_bytes(archive.read(INSIDE))
    return target


def rows_of(read: Ratings) -> list[tuple[Any, Any, float]]:
    """Ratings as rows, without the code that is to be checked."""
    users, items = read.user_ids.to_pylist(), read.item_ids.to_pylist()
    values = np.ones(len(read.users)) if read.values is None else read.values
    return [(users[u], items[i], v) for u, i, v in zip(read.users, read.items, values, strict=True)]


def counts_of(path: Path, of: int, view: str) -> tuple[list[str], NDArray[np.float32]]:
    """A matrix of counts: a row for each customer (of 0) or item (of 1), read line by line with nothing of likewise."""
    lines = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    owners = {name: row for row, name in enumerate(dict.fromkeys(line[of] for line in lines))}
    others = {name: row for row, name in enumerate(dict.fromkeys(line[1 - of] for line in lines))}
    kinds = 2 if view == "liked-hated" else 1
    counts = np.zeros((len(owners), len(others) * kinds), np.float32)
    for line in lines:
        row, column, stars = owners[line[of]], others[line[1 - of]], float(line[2])
        if view == "liked-hated":
            if stars >= 4 or stars <= 2:
                counts[row, 2 * column + (stars <= 2)] = 1
        elif view != "liked" or stars >= 4:
            counts[row, column] = stars if view == "stars" else 1
    return list(owners), counts


def brute_force(names: list[str], counts: NDArray[np.float32], union: str) -> dict[tuple[str, str], float]:
    """Every pair at or above the threshold, by comparing all of them."""
    total = counts.sum(axis=1).astype(np.int64)
    found = {}
    for row in range(len(counts) - 1):
        shared = np.minimum(counts[row], counts[row + 1 :]).sum(axis=1).astype(np.int64)
        both = total[row] + total[row + 1 :] - (shared if union == "max" else 0)
        scores = shared / np.maximum(both, 1)
        for place in np.flatnonzero((scores >= THRESHOLD) & (shared > 0)).tolist():
            found[names[row], names[row + 1 + place]] = float(scores[place])
    return found


def truth_movielens(path: Path) -> list[dict[str, Any]]:
    """All pairs, in every view and with both unions, against brute force."""
    told = []
    for view, union in (
        ("bought", "max"),
        ("liked", "max"),
        ("liked-hated", "max"),
        ("stars", "max"),
        ("stars", "sum"),
    ):
        for method in ("auto", "exact", "lsh"):
            for side, of in (("customers", 0), ("items", 1)):
                truth = brute_force(*counts_of(path, of, view), union)
                begun = time.perf_counter()
                found = recommend(
                    path, view=view, union=union, threshold=THRESHOLD, method=method, only=side, threads=1
                )
                seconds = time.perf_counter() - begun
                table = found.customers if side == "customers" else found.items
                assert table is not None
                columns = (table[name].to_pylist() for name in ("id_a", "id_b", "similarity"))
                got = {(str(a), str(b)): score for a, b, score in zip(*columns, strict=True)}
                right = sum(truth.get(pair) == score for pair, score in got.items())
                entry = {
                    "view": view,
                    "union": union,
                    "side": side,
                    "method": method,
                    "taken": found.stats["details"]["methods"][side]["taken"],
                    "pairs": len(truth),
                    "found": len(got),
                    "recall": right / max(1, len(truth)),
                    "precision": right / max(1, len(got)),
                    "seconds": round(seconds, 3),
                }
                print(entry, flush=True)
                told.append(entry)
    return told


def truth_baskets(path: Path, k: int = 10) -> dict[str, Any]:
    """The nearest of some baskets, each compared with all others."""
    with gzip.open(path, "rt") as lines:
        baskets = [frozenset(line.split()) for line in lines]
    begun = time.perf_counter()
    found = recommend(path, k=k, only="customers", threshold=THRESHOLD, threads=1)
    seconds = time.perf_counter() - begun
    assert found.customers is not None
    near: dict[int, list[tuple[int, float]]] = {}
    for a, b, score in zip(
        *(found.customers[name].to_pylist() for name in ("id_a", "id_b", "similarity")), strict=True
    ):
        near.setdefault(a, []).append((b, score))
    right = total = 0
    for number in np.random.default_rng(SEED).choice(len(baskets), SAMPLED, replace=False).tolist():
        one = baskets[number]
        scored = [
            (-len(one & other) / len(one | other), place)
            for place, other in enumerate(baskets)
            if place != number and not one.isdisjoint(other)
        ]
        truth = [(place, -score) for score, place in sorted(scored)[:k] if -score >= THRESHOLD]
        total += len(truth)
        right += sum(mine == theirs for mine, theirs in zip(near.get(number, []), truth, strict=False))
    told = {
        "baskets": len(baskets), "k": k, "asked": SAMPLED, "neighbours": total, "right": right,
        "rows": found.customers.num_rows, "seconds": round(seconds, 2), "stages": found.stats["seconds"],
        "method": found.stats["details"]["methods"]["customers"], "peak_megabytes": round((peak_memory() or 0) / 1e6),
    }  # fmt: skip
    print(told, flush=True)
    return told


def split(read: Ratings) -> tuple[Ratings, Ints, Ints]:
    """Hold one liked item of each customer out at random; what is left, the customers, and the items."""
    rng = np.random.default_rng(SEED)
    liked = np.ones(len(read.users), bool) if read.values is None else read.values >= 4
    places = np.flatnonzero(liked)
    places = places[rng.permutation(len(places))]
    users, first = np.unique(read.users[places], return_index=True)
    several = np.bincount(read.users)[users] > 1
    users, held = users[several], places[first[several]]
    if len(users) > HELD_OUT:
        some = np.sort(rng.permutation(len(users))[:HELD_OUT])
        users, held = users[some], held[some]
    kept = np.ones(len(read.users), bool)
    kept[held] = False
    values = None if read.values is None else read.values[kept]
    left = Ratings(read.users[kept], read.items[kept], values, read.times[kept], read.user_ids, read.item_ids)
    return left, users, read.items[held]


def hit_rate(tables: Iterable[tuple[int, Any]], held: dict[int, int]) -> float:
    """The part of the customers to whom the held-out item was recommended."""
    hits = {user for user, item in tables if held[user] == item}
    return len(hits) / len(held)


def held_out(source: Path, views: list[str]) -> list[dict[str, Any]]:
    """Hit rate at 10 of an item held out, by items, by customers, and by what is popular."""
    left, users, items = split(read_ratings(source))
    names, titles = left.user_ids.to_pylist(), left.item_ids.to_pylist()
    held = {names[user]: titles[item] for user, item in zip(users, items, strict=True)}
    popular = np.argsort(-np.bincount(left.items, minlength=len(titles)), kind="stable")
    own: dict[int, set[int]] = {int(user): set() for user in users}
    for user, item in zip(left.users.tolist(), left.items.tolist(), strict=True):
        if user in own:
            own[user].add(item)
    best = {user: [item for item in popular.tolist() if item not in has][:10] for user, has in own.items()}
    pairs = [(names[user], titles[item]) for user, chosen in best.items() for item in chosen]
    told: list[dict[str, Any]] = [{"by": "popularity", "customers": len(held), "hit_rate": hit_rate(pairs, held)}]
    for view in views:
        for by in ("items", "customers"):
            for neighbours in (10, 50, 200):
                begun = time.perf_counter()
                found = recommend(
                    left, list(held), only="recommendations", view=view, by=by, neighbours=neighbours, threads=1
                )
                seconds = time.perf_counter() - begun
                table = found.recommendations
                assert table is not None
                pairs = list(zip(table["user"].to_pylist(), table["item"].to_pylist(), strict=True))
                entry = {
                    "by": by,
                    "view": view,
                    "neighbours": neighbours,
                    "customers": len(held),
                    "hit_rate": hit_rate(pairs, held),
                    "seconds": round(seconds, 2),
                }
                told.append(entry)
                print(entry, flush=True)
    print(told[0])
    return told


def enlarged(read: Ratings, times: int) -> Ratings:
    """Copies of all customers, each with a tenth of its ratings replaced by ratings of items as popular as they are."""
    rng = np.random.default_rng(SEED)
    users = np.concatenate([read.users + copy * len(read.user_ids) for copy in range(times)])
    items = np.tile(read.items, times)
    noise = rng.random(len(items)) < 0.1
    items[noise] = rng.choice(read.items, int(noise.sum()))
    values = np.ones(len(items)) if read.values is None else np.tile(read.values, times)
    return read_ratings(list(zip(users.tolist(), items.tolist(), values.tolist(), strict=True)))


def growth(path: Path) -> list[dict[str, Any]]:
    """The same with ten times the customers, all pairs and the ten nearest; each size in a process of its own."""
    told = []
    for times in (1, 10):
        for k in (0, 10):
            command = [sys.executable, __file__, "--only", "one-size", "--times", str(times), "-k", str(k)]
            done = subprocess.run([*command, "--source", str(path)], check=True, capture_output=True, text=True)
            told.append(json.loads(done.stdout.splitlines()[-1]))
            print(told[-1], flush=True)
    return told


def one_size(path: Path, times: int, k: int) -> dict[str, Any]:
    """Similar customers and items, and recommendations for all, of customers multiplied."""
    read = enlarged(read_ratings(path), times)
    recommend([("a", "x"), ("b", "x")], k=k or None, threads=1)
    before = peak_memory() or 0
    begun = time.perf_counter()
    found = recommend(read, view="bought", k=k or None, threads=1)
    seconds = time.perf_counter() - begun
    return {
        "customers": len(read.user_ids), "items": len(read.item_ids), "ratings": len(read.users), "k": k or None,
        "similar_customers": found.stats["counts"]["similar_customers"],
        "similar_items": found.stats["counts"]["similar_items"],
        "methods": {side: method["taken"] for side, method in found.stats["details"]["methods"].items()},
        "seconds": round(seconds, 2), "stages": found.stats["seconds"],
        "peak_megabytes_before": round(before / 1e6), "peak_megabytes": round((peak_memory() or 0) / 1e6),
    }  # fmt: skip


def picture(path: Path, results: dict[str, Any]) -> None:
    """How many customers are how similar, in each view; and how often an item held out comes back."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "likewise"
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 3.6))
    edges = np.linspace(0.02, 0.8, 40)
    for view, colour in (("bought", "#1b6ca8"), ("stars", "#5fa55a"), ("liked", "#e08e0b"), ("liked-hated", "#b23a48")):
        table = recommend(path, view=view, threshold=0.02, only="customers", threads=1).customers
        assert table is not None
        scores = np.sort(table["similarity"].to_numpy())
        counts = len(scores) - np.searchsorted(scores, edges)
        left.plot(edges[counts > 0], counts[counts > 0], color=colour, label=view)
    left.axvline(THRESHOLD, color="#999999", linewidth=0.8, linestyle=":")
    left.set(
        yscale="log",
        xlabel="similarity",
        ylabel="pairs of customers at least this similar",
        title="customers of MovieLens 100k",
    )
    left.legend(frameon=False)
    names, shown = [], []
    for data, label in (("movielens", "films"), ("retail", "baskets")):
        if data in results.get("held_out", {}):
            rows = results["held_out"][data]
            names.append(label)
            views = {row.get("view") for row in rows if row["by"] != "popularity"}
            view = "liked" if "liked" in views else "bought"  # the defaults
            shown.append(
                [rows[0]["hit_rate"]]
                + [
                    next(r["hit_rate"] for r in rows if (r["by"], r.get("view"), r.get("neighbours")) == (by, view, 50))
                    for by in ("items", "customers")
                ]
            )
    for place, (way, colour) in enumerate(
        (("popular", "#999999"), ("by items", "#1b6ca8"), ("by customers", "#e08e0b"))
    ):
        heights = [row[place] for row in shown]
        bars = right.bar(np.arange(len(names)) + 0.27 * (place - 1), heights, 0.25, color=colour, label=way)
        right.bar_label(bars, fmt="%.2f", fontsize=8)
    right.set_xticks(range(len(names)), names)
    right.set(ylabel="hit rate at 10", title="a held-out item is recommended")
    right.set_ylim(0, 1.3 * max(max(row) for row in shown))
    right.legend(frameon=False, loc="upper right", ncols=3, fontsize=9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder with retail.sets.gz")
    parser.add_argument("--only", choices=["truth", "held-out", "growth", "picture", "one-size"])
    parser.add_argument("--times", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("-k", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--source", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only == "one-size":
        print(json.dumps(one_size(asked.source, asked.times, asked.k)))
        return
    path = movielens()
    retail = asked.data / "retail.sets.gz" if asked.data else None
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if asked.only in (None, "truth"):
        results.setdefault("truth", {})["movielens"] = truth_movielens(path)
        if retail:
            results["truth"]["retail"] = truth_baskets(retail)
    if asked.only in (None, "held-out"):
        results.setdefault("held_out", {})["movielens"] = held_out(path, ["bought", "liked", "liked-hated", "stars"])
        if retail:
            results["held_out"]["retail"] = held_out(retail, ["bought"])
    if asked.only in (None, "growth"):
        results["growth"] = growth(path)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    if asked.only in (None, "picture"):
        picture(path, results)


if __name__ == "__main__":
    main()
