"""What is seen: ticks of counts, legends, a sentence for a single bar, points that add up, words explained."""

import json
import re
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_runs import documents, texts

import likewise
from likewise.families.banding import Banding
from likewise.report import pictures
from likewise.report.page import Explained
from likewise.view.picture import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Plot, count_scale, number_scale

SCORES = {"edges": [0, 100, 200, 300], "candidates": [3, 1, 2], "matches": [0, 1, 2]}
CERTIFICATE = {"recall": 0.99, "low": 0.95, "high": 1.0}
POINTS = {"name": {"disagree": -9.0, "agree": 12.0}, "town": {"disagree": -3.0, "agree": 4.0}}


def numbers(svg):
    """The numbers in a picture: those at its ticks."""
    words = [node.text or "" for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]
    return [word for word in words if re.fullmatch(r"[\d.,]+[kMG]?", word)]


@pytest.mark.parametrize("counts", [[1, 2, 1], [1, 1, 3], [2, 0, 5], [40_000, 1, 2], [7, 7, 8]])
def test_counts_have_whole_ticks(counts):
    several = np.array(counts)
    drawn = [
        pictures.cluster_sizes(np.array([2, 3, 4]), several),
        pictures.score_histogram({**SCORES, "candidates": counts, "matches": counts}, None),
        pictures.similarity_histogram(np.array([0.0, 100.0, 200.0, 300.0]), several, None),
    ]
    for svg in drawn:
        found = numbers(svg)
        assert len(found) > 3
        assert [one for one in found if "." in one] == []


def test_every_size_of_small_clusters_has_a_bar():
    assert numbers(pictures.cluster_sizes(np.array([2, 5]), np.array([3, 3])))[:4] == ["2", "3", "4", "5"]
    assert "1k" in numbers(pictures.cluster_sizes(np.array([2, 900]), np.array([1_000, 1])))


ROWS = [{"score_from": i, "score_to": i + 1, "fraction": i / 5, "low": 0, "high": 1} for i in range(5)]
DRAWN = {
    "similarities": lambda: pictures.similarity_histogram(np.array([0.0, 0.5, 1.0]), np.array([1, 2]), 0.123),
    "s-curve": lambda: pictures.s_curve(Banding(20, 5), 0.8, 0.99, CERTIFICATE),
    "scores": lambda: pictures.score_histogram(SCORES, -12.34),
    "points": lambda: pictures.field_points(POINTS),
    "validation": lambda: pictures.validation_curve(ROWS, 1.5),
}


@pytest.mark.parametrize("name", DRAWN)
def test_legends_stand_above_the_plot(name):
    """All of it is within the picture, and its colours are those of the style."""
    svg = DRAWN[name]()
    *_, width, height = map(float, re.search(r'viewBox="([^"]+)"', svg)[1].split())
    (top,) = (
        float(one) for one in re.findall(r'<path fill="none" class="stroke-muted"[^>]* d="M[\d.]+,([\d.]+)V', svg)
    )
    legend = re.findall(r'<g transform="translate\(([\d.]+) ([\d.]+)\)">.*?<text x="(\d+)">(.*?)</text></g>', svg)
    assert len(legend) == {"similarities": 1, "s-curve": 4, "points": 2}.get(name, 3)
    places = set()
    for x, y, before, label in legend:
        assert 0 < float(y) < top
        assert float(x) + float(before) + 4.5 * len(label) <= width
        places.add((x, y))
    assert len(places) == len(legend)
    for shape in re.findall(r'(?: points| d)="([^"]+)"', svg):
        numbers = [tuple(map(float, one)) for one in re.findall(r"(-?[\d.]+),(-?[\d.]+)", shape)]
        assert all(0 <= x <= width and -6.4 <= y <= height for x, y in numbers)
    assert "#" not in svg


def test_what_is_drawn_is_where_the_numbers_are():
    """A curve through the corners of the axes, a bar as high as its tick."""
    plot = Plot(number_scale(0, 1, 0), number_scale(0, 4, 0), "x", "y")
    plot.line([0, 0.5, 1], [0, 4, 2], "accent")
    plot.bars([0.25, 0.75], [1], "second")
    svg = plot.svg("")
    floor, top, left, right = HEIGHT - BOTTOM, TOP, LEFT, WIDTH - RIGHT
    middle, half = (left + right) / 2, (right - left) / 4
    assert f'points="{left:.2f},{floor:.2f} {middle:.2f},{top:.2f} {right:.2f},{(floor + top) / 2:.2f}"' in svg
    (level,) = re.findall(r'y="([\d.]+)">1</text>', svg)
    assert f'd="M{middle - half:.2f},{floor:.2f}V{float(level) - 3.6:.2f}H{middle + half:.2f}V{floor:.2f}Z"' in svg


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-30, 20, ["−30", "−20", "−10", "0", "10", "20"]),
        (0.5, 0.5, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0, 2_000_000, ["0", "500k", "1M", "1.5M", "2M"]),
        (0, 3e-6, ["0", "5e−07", "1e−06", "1.5e−06", "2e−06", "2.5e−06", "3e−06"]),
    ],
)
def test_ticks_are_round_numbers(low, high, labels):
    assert number_scale(low, high).labels == labels


def test_counts_that_hide_others_have_a_logarithmic_axis():
    scale = count_scale([1, 2, 40_000])
    assert scale.logarithmic
    assert scale.labels == ["1", "10", "100", "1k", "10k"]
    assert 0 < scale.part(1) < scale.part(2) < scale.part(40_000) < 1
    assert not count_scale([1, 2, 3]).logarithmic
    assert count_scale([]).labels == count_scale([0, 1]).labels == ["0", "1"]


def written(tmp_path, made, **options):
    """The page of a run over some texts, and its numbers."""
    pq.write_table(pa.table({"text": made}), tmp_path / "docs.parquet")
    likewise.dedup(tmp_path / "docs.parquet", out=tmp_path / "run", **options)
    page = likewise.write_report(tmp_path / "run").read_text(encoding="utf-8")
    return page, json.loads((tmp_path / "run" / "run.json").read_text())["counts"]


def test_a_single_bar_is_a_sentence(tmp_path):
    made = texts(60)[:60]
    page, _ = written(tmp_path, [*made, *(" ".join(["changed", *text.split()[1:]]) for text in made)])
    assert "All 60 pairs have the similarity 0.9649." in page  # 55 of 57 shingles
    assert "60 clusters of 2 documents each." in page
    assert 'class="picture"' not in page


def test_each_number_of_pairs_says_what_it_counts(tmp_path):
    """Copies are compared once, and listed one by one."""
    made = texts(80)[:80]
    near = [" ".join(["changed", *text.split()[1 + place % 9 :]]) for place, text in enumerate(made)]
    page, counts = written(tmp_path, [*made, *near, *made[:30]], threshold=0.6)
    assert counts["candidates"] < counts["pairs"]
    assert f"{counts['candidates']} candidate pairs were compared (copies are compared once)." in page
    rest = counts["pairs"] - counts["verified"]
    assert f"The {counts['pairs']} pairs of the result, copies included: {counts['verified']} of them" in page
    assert f"in the other {rest} at least one document is a copy" in page
    page, _ = written(tmp_path, [*made, *near], threshold=0.6)
    assert "copies" not in page


def test_the_points_of_a_match_add_up(tmp_path):
    path, *_ = documents(tmp_path, 4)
    names = [f"{first} {last}" for first in ("Ann", "Bo", "Cy", "Di", "Ed", "Flo") for last in ("Lee", "Diaz", "Wu")]
    towns = [f"Town {i % 7}" for i in range(len(names))]
    people = pa.table({"name": names * 3, "town": towns * 3, "year": [str(1950 + i % 40) for i in range(54)]})
    pq.write_table(people, path)
    likewise.link(path).save(tmp_path / "link")
    page = likewise.write_report(tmp_path / "link").read_text(encoding="utf-8")
    falls = re.findall(r'<table class="waterfall">(.*?)</table>', page, re.S)
    assert len(falls) > 5
    assert "How the points of a match add up" in page
    for fall in falls:
        rows = re.findall(r'<th scope="row">(.*?)</th>.*?<td class="number">(.*?)</td>', fall)
        *steps, (last, score) = [(name, float(points.replace("−", "-"))) for name, points in rows]
        assert last == "score"
        assert sum(points for _, points in steps) == pytest.approx(score, abs=1e-6)


def test_words_are_explained_once():
    explained = Explained()
    first = explained("Jaccard similarity of words:5, <b>recall</b>")
    assert first.count("<abbr ") == 3
    assert "all runs of 5 words" in first
    assert "<b>" not in first
    assert "<abbr" not in explained("the recall, the Jaccard similarity of words:5")
    assert "<abbr" not in Explained()("recalled, S-curves, a-recall")


def test_a_page_explains_its_words(tmp_path):
    page, _ = written(tmp_path, texts(300), method="lsh")
    for word in ("Jaccard similarity", "words:5", "S-curve", "recall"):
        assert len(re.findall(f'<abbr title="[^"]+" tabindex="0">{word}</abbr>', page)) == 1
