"""`result.plot`: what is drawn is what was found; and what a notebook shows."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import likewise
from likewise.errors import LikewiseError, OutputError

RANDOM = np.random.default_rng(6)
POINTS = RANDOM.normal(size=(80, 6))


def texts():
    made = []
    for copies in (0, 0, 1, 2, 2, 5):
        words = [f"w{i}" for i in RANDOM.integers(0, 500, 60)]
        made.append(" ".join(words))
        for copy in range(copies):
            made.append(" ".join([*words[: 50 + copy], "changed", *words[51 + copy :]]))
    return made


TEXTS = texts()


def bars(axes):
    return int(sum(patch.get_height() for patch in axes.patches))


def legend(axes):
    return " ".join(text.get_text() for text in axes.get_legend().get_texts())


@pytest.mark.parametrize("method", ["lsh", "exact"])
def test_dedup(method, tmp_path):
    found = likewise.dedup(TEXTS, shingle="words:3", threshold=0.6, method=method)
    figure = found.plot(tmp_path / "result.png")
    assert (tmp_path / "result.png").stat().st_size > 5000
    upper, lower = figure.axes[:2]
    assert bars(upper) == len(found.pairs)
    assert upper.lines[0].get_xdata()[0] == 0.6
    assert "threshold 0.6" in legend(upper)
    sizes = found.clusters.group_by("cluster").aggregate([("id", "count")])["id_count"].to_numpy()
    expected = dict(zip(*np.unique(sizes[sizes > 1], return_counts=True), strict=True))
    drawn = lower.lines[0]
    assert dict(zip(drawn.get_xdata(), drawn.get_ydata(), strict=True)) == expected
    assert ("probability" in legend(upper)) == (method == "lsh")
    if method == "lsh":
        known = found.stats["details"]["banding"]
        curve = figure.axes[2].lines[0]
        banding = likewise.Banding(known["bands"], known["rows"])
        np.testing.assert_allclose(curve.get_ydata(), banding.probability(curve.get_xdata()))


def test_pairs_and_neighbours():
    found = likewise.pairs(TEXTS, shingle="words:3", threshold=0.6)
    assert bars(found.plot().axes[0]) == len(found)
    estimated = likewise.pairs(TEXTS, shingle="words:3", threshold=0.6, estimate=True).plot().axes[0]
    assert estimated.get_xlabel() == "estimated similarity"
    vectors = likewise.pairs(POINTS, measure="angle", within=60)
    axes = vectors.plot().axes[0]
    assert bars(axes) == len(vectors) > 0
    assert axes.get_xlabel() == "angle (degrees)"
    nearest = likewise.nearest(POINTS, k=3, measure="l2")
    assert bars(nearest.plot().axes[0]) == 240


@pytest.mark.parametrize(
    "found",
    [
        lambda: likewise.dedup(["a", "b"]),
        lambda: likewise.pairs(["a", "b"]),
        lambda: likewise.pairs(POINTS[:1], measure="l2", within=1),
        lambda: likewise.pairs(POINTS[[0, 0]], measure="l2", within=0),
        lambda: likewise.nearest(POINTS[:1]),
        lambda: likewise.pairs(["a b c d e f"] * 3, threshold=1),
    ],
)
def test_little_to_draw(found, tmp_path):
    found().plot(tmp_path / "few.svg")
    ET.parse(tmp_path / "few.svg")


def test_the_same_figure_gives_the_same_file(tmp_path):
    found = likewise.dedup(TEXTS, shingle="words:3", threshold=0.6)
    for name in ("a.svg", "b.svg"):
        found.plot(tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_errors(tmp_path, monkeypatch):
    found = likewise.dedup(["a", "b"])
    with pytest.raises(OutputError, match=r"must end in .png, .svg or .pdf"):
        found.plot(tmp_path / "plot.xyz")
    with pytest.raises(OutputError, match="cannot be written"):
        found.plot(tmp_path / "nowhere" / "plot.png")
    monkeypatch.setattr("likewise.base.extras.find_spec", lambda name: None)
    with pytest.raises(LikewiseError, match=r"pip install 'likewise\[plot\]'"):
        found.plot()


@pytest.mark.parametrize(
    "shown",
    [
        likewise.Banding(20, 5),
        likewise.MinHash(),
        likewise.MinHash().all_of(3).any_of(4),
        likewise.Hyperplanes().all_of(2),
        likewise.RandomLines(2.0),
        likewise.SameField(["name", "<b>"]),
    ],
    ids=lambda one: type(one).__name__,
)
def test_curves_in_a_notebook(shown):
    """The picture is well-formed, and its curve goes from 0 or above to 1."""
    html = shown._repr_html_()
    picture = ET.fromstring(html[html.index("<svg") :])
    line = picture.find("{http://www.w3.org/2000/svg}polyline").get("points").split()
    heights = [float(point.split(",")[1]) for point in line]
    assert heights == sorted(heights, reverse=True)
    assert heights[-1] == 0
    assert "<b><b>" not in html


@pytest.mark.parametrize("name", ["Dedup", "Pairs", "Nearest"])
def test_results_in_a_notebook(name):
    found = {
        "Dedup": lambda: likewise.dedup(TEXTS, shingle="words:3", threshold=0.6),
        "Pairs": lambda: likewise.pairs(TEXTS, shingle="words:3", threshold=0.6),
        "Nearest": lambda: likewise.nearest(POINTS, k=1),
    }[name]()
    assert f"<b>{name}</b>" in found._repr_html_()
    assert "<table>" in found.explain(0, 1)._repr_html_()
