"""Mirrors: how many pairs of mirrored hosts are found, and how many pages fold along links.

python benchmarks/mirrors.py noise [--picture docs/mirrors.svg]     crawls of mirrored hosts made of a real file tree
python benchmarks/mirrors.py debian --data FOLDER                   real mirrors: *.mirrors of python-apt-common
python benchmarks/mirrors.py growth --hosts 10000                   the same at a tenth, and at all
python benchmarks/mirrors.py links --links 10000000                 contraction, from a table of URLs; and at a tenth

The file tree is that of the Python this runs in. Results go to benchmarks/results/mirrors.json, by command.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import re
import resource
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.apps.mirrors import contract, mirrors
from likewise.base.memory import peak_memory

RESULTS = Path(__file__).parent / "results" / "mirrors.json"
TOPS = ("/pub", "/mirror", "/pub/mirrors", "/ftp/site", "/archive")
LEVELS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
WAYS = {"from the start": "start", "from the end": "end", "not at all": None}
Pair = tuple[str, str]


@functools.cache
def tree() -> list[str]:
    """The files of this Python's library and packages, as paths of pages."""
    paths = sysconfig.get_paths()
    found = set()
    for root in {paths["stdlib"], paths["purelib"]}:
        for file in Path(root).rglob("*.py"):
            found.add("/" + str(file.relative_to(root)).removesuffix(".py") + ".html")
    return sorted(found)


class Crawl:
    """URLs of hosts, half of whose sites have two to four mirrors, and the truth about them.

    noise: each host lacks this part of the pages of its site, and has as many others of its own. moved: the part of the
    mirrors on which the site is below another folder. Each group of `alike` sites has its own words in
    its paths, because a larger part of the web has more words.
    """

    def __init__(self, sites: int, noise: float, moved: float = 0.3, seed: int = 1, alike: int = 500) -> None:
        rng, paths = random.Random(seed), tree()
        self.urls: list[str] = []
        self.truth: set[Pair] = set()
        self.hosts = 0
        for site in range(sites):
            if site and site % alike == 0:
                ending = _letters(site // alike)
                paths = [re.sub("[a-z]+", lambda word: word[0] + ending, path) for path in tree()]  # noqa: B023
            pages = rng.sample(paths, rng.randint(20, 200))
            names = [f"www{copy}.site{_letters(site)}.org" for copy in range(rng.randint(2, 4) if site % 2 else 1)]
            self.truth |= set(combinations(names, 2))
            self.hosts += len(names)
            for copy, name in enumerate(names):
                top = rng.choice(TOPS) if copy and rng.random() < moved else ""
                here = [page for page in pages if rng.random() >= noise]
                others = rng.sample(paths, int(noise * len(pages)))
                self.urls += [f"http://{name}{top}{page}" for page in here]
                self.urls += [f"http://{name}{page}" for page in (*others, "/", "/index.html", "/robots.txt")]


def _letters(number: int) -> str:
    """A number in letters: digits are no part of a token."""
    name = ""
    while True:
        name += chr(97 + number % 26)
        number //= 26
        if not number:
            return name


def scores(found: Any, truth: set[Pair]) -> dict[str, Any]:
    """Precision and recall of the pairs of hosts that are taken for mirrors."""
    rows = found.pairs.select(["id_a", "id_b", "mirror"]).to_pylist()
    pairs = {tuple(sorted((row["id_a"], row["id_b"]))) for row in rows if row["mirror"]}
    right = len(pairs & {tuple(sorted(pair)) for pair in truth})
    return {
        "pairs": len(truth), "found": len(pairs), "right": right,
        "precision": round(right / len(pairs), 4) if pairs else None, "recall": round(right / max(1, len(truth)), 4),
    }  # fmt: skip


def measured(urls: list[str], truth: set[Pair], **options: Any) -> dict[str, Any]:
    """Find mirrors; return precision, recall and time."""
    begun = time.perf_counter()
    found = mirrors(urls, threads=1, **options)
    return {**scores(found, truth), "seconds": round(time.perf_counter() - begun, 2)}


def noise(sites: int, picture: str | None) -> dict[str, Any]:
    """Precision and recall against noise, by where positions are counted from, and by threshold."""
    told: dict[str, Any] = {"positions": {}, "thresholds": {}}
    for level in LEVELS:
        crawl = Crawl(sites, level)
        for name, way in WAYS.items():
            told["positions"].setdefault(name, []).append(measured(crawl.urls, crawl.truth, position=way))
        for threshold in (0.1, 0.2, 0.3, 0.5):
            entry = measured(crawl.urls, crawl.truth, threshold=threshold)
            told["thresholds"].setdefault(str(threshold), []).append(entry)
    for kind, ways in told.items():
        for name, entries in ways.items():
            line = "  ".join(f"{entry['precision']}/{entry['recall']}" for entry in entries)
            print(f"{kind} {name:<16} {line}")
    told |= {"noise": list(LEVELS), "sites": sites}
    if picture:
        draw(told, picture)
    return told


def draw(told: dict[str, Any], where: str) -> None:
    """Draw recall and precision against noise."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {"svg.hashsalt": "likewise", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    percent = [100 * level for level in told["noise"]]
    for axis, (kind, title) in zip(
        axes, (("positions", "positions counted"), ("thresholds", "threshold")), strict=True
    ):
        for name, entries in told[kind].items():
            axis.plot(
                percent, [entry["recall"] for entry in entries], marker="o", markersize=4, label=name, clip_on=False
            )
        axis.set_xlabel("pages that a host lacks, and as many of its own (%)")
        axis.set_ylim(0, 1)
        axis.legend(frameon=False, title=title, fontsize=9, title_fontsize=9, loc="lower left")
        axis.grid(alpha=0.25)
    axes[0].set_ylabel("mirror pairs that are found")
    figure.tight_layout()
    figure.savefig(where, metadata={"Date": None})
    print(f"drawn: {where}")


def debian(data: str, each: int) -> dict[str, Any]:
    """Real mirrors: each host has a random part of the tree of each distribution that it carries, at its real place."""
    rng, paths = random.Random(1), tree()
    files = sorted(Path(data).rglob("*.mirrors"))
    carried: dict[str, set[str]] = {}
    urls: list[str] = []
    for number, file in enumerate(files):
        lines = [line.strip() for line in file.read_text().splitlines() if line.startswith("http")]
        if len(lines) < 50:
            continue
        pages = rng.sample(paths, 1000)
        seen = set()
        for line in lines:
            host, _, top = line.split("://")[1].partition("/")
            if host in seen:
                continue
            seen.add(host)
            carried.setdefault(host.lower(), set()).add(f"{number}")
            urls += [f"http://{host}/{top.rstrip('/')}{page}" for page in rng.sample(pages, each)]
    truth = {pair for pair in combinations(sorted(carried), 2) if carried[pair[0]] & carried[pair[1]]}
    alone_in_one = sum(len(names) == 1 for names in carried.values())
    found = mirrors(urls, threads=1)
    told = scores(found, truth)
    groups = {row["id"]: (row["keeper"], row["top"]) for row in found.mirrors.to_pylist()}
    right = sum(bool(carried[host] & carried[keeper]) for host, (keeper, _) in groups.items())
    told |= {
        "hosts": len(carried), "with_one_distribution": alone_in_one, "urls": len(urls), "in_groups": len(groups),
        "groups": found.stats["counts"]["clusters"], "right_keeper": right,
        "tops": len({top for _, top in groups.values()}),
        "seconds": {name: round(value, 2) for name, value in found.stats["seconds"].items()},
    }  # fmt: skip
    print(json.dumps(told, indent=1))
    return told


def growth(hosts: int) -> list[dict[str, Any]]:
    """Time and memory at a tenth of the hosts, and at all, each in a process of its own."""
    told = []
    for count in (hosts // 10, hosts):
        entry = alone("grown", "--hosts", str(count))
        told.append(entry)
        print(entry)
    return told


def grown(hosts: int) -> dict[str, Any]:
    """Find mirrors among this many hosts, with noise of 0.2."""
    crawl = Crawl(hosts // 2, 0.2)
    mirrors(crawl.urls[:2000], threads=1)
    before = peak_memory() or 0
    told = measured(crawl.urls, crawl.truth)
    return {"hosts": crawl.hosts, "urls": len(crawl.urls), **told, "mb": round((peak_memory() or 0) / 1e6),
            "mb_before": round(before / 1e6)}  # fmt: skip


def links(count: int) -> list[dict[str, Any]]:
    """Contract graphs of a tenth of the links, and of all: the numbers alone, and from a table of URLs."""
    told = []
    for size in (count // 10, count):
        for kind in ("numbers", "urls"):
            entry = alone(f"linked-{kind}", "--links", str(size))
            told.append(entry)
            print({name: value for name, value in entry.items() if name != "by_round"})
    return told


def sites_of_links(count: int, noise: float = 0.0, seed: int = 1) -> tuple[Any, Any, Any, int, int]:
    """Sites of 500 pages with four mirrors each: a page has ten links to pages below it, the last hundred have none."""
    pages, copies, out, leaves = 500, 4, 10, 100
    rng = np.random.default_rng(seed)
    sites = max(1, count // ((pages - leaves) * copies * out))
    inner = np.arange(pages - leaves)
    reach = np.minimum(120, pages - 1 - inner)
    below = (
        inner[None, :, None] + 1 + (rng.random((sites, pages - leaves, out)) * reach[None, :, None]).astype(np.int64)
    )
    left, right = [], []
    for copy in range(copies):
        base = (np.arange(sites) * copies + copy)[:, None, None] * pages
        left.append(np.broadcast_to(base + inner[None, :, None], below.shape).ravel().astype(np.int32))
        there = base + below
        if noise:
            there = np.where(
                rng.random(below.shape) < noise, rng.integers(0, sites * copies * pages, below.shape), there
            )
        right.append(there.ravel().astype(np.int32))
    return np.concatenate(left), np.concatenate(right), sites, pages, copies


def linked_numbers(count: int) -> dict[str, Any]:
    """Contract a graph of numbers: the leaves are the same from the start, all else must fold by cascades."""
    left, right, sites, pages, copies = sites_of_links(count)
    nodes = sites * pages * copies
    page = np.arange(nodes) % pages
    site = np.arange(nodes) // (pages * copies)
    same = np.where(page >= pages - 100, site * pages + page, -1)
    host = np.arange(nodes) // pages
    contract([0, 0], [1, 2], same=[0, 1, 2], host=[0, 0, 0])
    contract([0, 0, 1, 1], [2, 3, 2, 4], similar=0.3, least=2)
    before, begun, cpu = peak_memory() or 0, time.perf_counter(), time.process_time()
    done = contract(left, right, nodes, same=same, host=host)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {
        "kind": "numbers", "links": len(left), "pages": nodes, "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu, 2), "mb": round((peak_memory() or 0) / 1e6), "mb_before": round(before / 1e6),
        "rounds": len(done.rounds),
        "folded": int((done.folded != np.arange(nodes)).sum()), "to_fold": nodes // copies * (copies - 1),
        "by_round": [one.folded for one in done.rounds], "looked": sum(one.looked for one in done.rounds[1:]),
    }  # fmt: skip


def linked_urls(count: int) -> dict[str, Any]:
    """The whole command: the leaves, alike by their URLs, make the hosts mirrors; links in a Parquet file do the rest.

    Pages above the leaves have other paths on each mirror, so that only their links can tell that they are one.
    """
    left, right, sites, pages, copies = sites_of_links(count)
    words = [_letters(26**2 + number) for number in range(20_000)]
    chosen = [random.Random(site).sample(words, pages) for site in range(sites)]
    names = [
        f"http://www{copy}.site{_letters(site)}.org/{_letters(site)}/"
        + f"{'docs' if page >= pages - 100 else 'pqrs'[copy]}/{chosen[site][page]}/list.html"
        for site in range(sites) for copy in range(copies) for page in range(pages)
    ]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        column = pa.array(names, pa.string())
        table = pa.table({"source": column.take(pa.array(left)), "target": column.take(pa.array(right))})
        pq.write_table(table, f"{folder}/links.parquet", row_group_size=1 << 17)
        leaves = [name for i, name in enumerate(names) if i % pages >= pages - 100]
        Path(f"{folder}/urls.txt").write_text("\n".join(leaves))
        size = Path(f"{folder}/links.parquet").stat().st_size
        del table, column, names, leaves, left, right
        command = [sys.executable, "-c", "from likewise.cli import main; main()", "mirrors", f"{folder}/urls.txt"]
        command += ["--links", f"{folder}/links.parquet", "--out", f"{folder}/out", "--json"]
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds = time.perf_counter() - begun
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
    stats = json.loads(done.stdout)
    counts = stats["counts"]
    return {
        "kind": "urls", "links": counts["links"], "pages": counts["graph_pages"], "file_mb": round(size / 1e6),
        "seconds": round(seconds, 2), "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "mb": round(stats["peak_memory_bytes"] / 1e6),
        "stages": stats["seconds"],
        "rounds": len(stats["details"]["rounds"]), "folded": counts["folded"],
        "to_fold": counts["graph_pages"] // copies * (copies - 1),
    }  # fmt: skip


def alone(*words: str) -> dict[str, Any]:
    """Run a part of this in a process of its own, so that its memory is its own."""
    done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "part", choices=["noise", "debian", "growth", "links", "grown", "linked-numbers", "linked-urls"]
    )
    parser.add_argument("--sites", type=int, default=200)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--links", type=int, default=10_000_000)
    parser.add_argument("--each", type=int, default=500, help="pages of a mirror that were crawled, of 1000")
    parser.add_argument("--data")
    parser.add_argument("--picture")
    given = parser.parse_args()
    inner: dict[str, Callable[[], Any]] = {
        "grown": lambda: grown(given.hosts),
        "linked-numbers": lambda: linked_numbers(given.links),
        "linked-urls": lambda: linked_urls(given.links),
    }
    if given.part in inner:
        print(json.dumps(inner[given.part]()))
        return
    if given.part == "debian" and not given.data:
        parser.error("debian needs --data, a folder with *.mirrors files")
    parts: dict[str, Callable[[], Any]] = {
        "noise": lambda: noise(given.sites, given.picture),
        "debian": lambda: debian(given.data, given.each),
        "growth": lambda: growth(given.hosts),
        "links": lambda: links(given.links),
    }
    told = parts[given.part]()
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps({**known, given.part: told}, indent=1) + "\n")


if __name__ == "__main__":
    main()
