"""`result.explain`: what two items share, against the definitions; the scheme of the run; what became of them."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import MinHash, Sets, Words, measures
from likewise.errors import IncompatibleError, InputError
from likewise.jobs.explain.run import explain_run

SIGMAS = 5
"""Standard errors that an estimate may be off: with probability below 1e-6 it is more."""
RANDOM = np.random.default_rng(4)
WORDS = [f"w{i}" for i in range(400)]


def documents(count=60):
    """Texts and near-copies of them: two words of a hundred are replaced."""
    made = []
    for _ in range(count):
        words = RANDOM.choice(WORDS, 100).tolist()
        made.append(" ".join(words))
        words[30], words[70] = "new", "newer"
        made.append(" ".join(words))
    return made


TEXTS = documents()


def shingles(text, k):
    words = text.split()
    return {" ".join(words[i : i + k]) for i in range(len(words) - k + 1)}


def check(told, a, b, k):
    """Everything that can be counted is as counted."""
    here, there = shingles(a, k), shingles(b, k)
    shared = len(here & there)
    assert told.sizes == (len(here), len(there))
    assert told.shared == shared
    assert told.similarities["jaccard"] == measures.jaccard(here, there)
    assert told.similarities["containment"] == measures.containment(here, there)
    assert told.similarities["containment_of_b"] == measures.containment(there, here)
    assert told.similarities["dice"] == pytest.approx(2 * shared / (len(here) + len(there)))
    assert told.similarities["cosine"] == pytest.approx(shared / sqrt(len(here) * len(there)))
    assert told.similarities["overlap"] == pytest.approx(shared / min(len(here), len(there)))
    jaccard = told.similarities["jaccard"]
    assert told.standard_error == pytest.approx(sqrt(jaccard * (1 - jaccard) / told.scheme.slots))
    assert abs(told.estimate - jaccard) <= SIGMAS * told.standard_error
    for kind, values in (("shared", here & there), ("only_a", here - there), ("only_b", there - here)):
        listed = told.shingles[kind]
        assert {text for text, _ in listed} <= values
        assert len(listed) == min(8, len(values))
        counts = [count for _, count in listed]
        assert counts == sorted(counts)
        for text, count in listed:
            assert count == sum(text in shingles(one, k) for one in TEXTS)


@pytest.mark.parametrize("method", ["lsh", "exact"])
@pytest.mark.parametrize("kind", ["dedup", "pairs"])
def test_documents(method, kind):
    function = getattr(likewise, kind)
    found = function(TEXTS, shingle="words:3", threshold=0.6, method=method)
    for a, b in ((6, 7), (7, 6), (6, 9)):
        told = found.explain(a, b)
        check(told, TEXTS[a], TEXTS[b], 3)
        assert told.found is (abs(a - b) == 1)
        if method == "exact":
            assert told.scheme.banding is None
            assert told.probability == (told.similarities["jaccard"] >= 0.6)
            continue
        banding = told.scheme.banding
        assert {"bands": banding.b, "rows": banding.r, "slots": banding.slots} == found.stats["details"]["banding"]
        assert told.candidate == banding.probability(told.similarities["jaccard"])
        signature = MinHash().signatures(Words(3).sets([TEXTS[a], TEXTS[b]]), banding.slots)
        same = (signature[0] == signature[1]).reshape(banding.b, banding.r).all(axis=1)
        assert told.bands == np.flatnonzero(same).tolist()
        assert told.estimate == float((signature[0] == signature[1]).mean())
        assert bool(told.bands) or not told.found


def test_what_became_of_documents():
    found = likewise.dedup(TEXTS, shingle="words:3", threshold=0.6)
    assert found.explain(0, 1).notes == ("0 is kept", "1 is removed; 0 is kept in its place")


def test_estimates_are_those_of_the_run():
    found = likewise.pairs(TEXTS, shingle="words:3", threshold=0.6, estimate=True)
    row = found.to_pylist()[0]
    told = found.explain(row["id_a"], row["id_b"])
    assert told.estimate == row["estimated_similarity"]
    assert told.scheme.slots == found.stats["details"]["estimate"]["slots"]
    assert told.bands
    assert 0 < told.probability <= told.candidate


def test_two_collections_have_their_own_rows():
    found = likewise.pairs(TEXTS[:20], [*TEXTS[20:], TEXTS[3]], shingle="words:3", threshold=0.6)
    last = len(TEXTS) - 20
    assert found.explain(3, last).similarities["jaccard"] == 1
    assert found.explain(3, last).found
    assert found.explain(3, 0).found is False
    with pytest.raises(InputError, match="numbered from 0 to 19"):
        found.explain(20, 0)


def test_ignored_shingles_do_not_count():
    texts = [f"the same menu on every page {text}" for text in TEXTS]
    found = likewise.dedup(texts, shingle="words:3", threshold=0.6, ignore_common=0.5)
    every = shingles(texts[0], 3)
    menu = shingles("the same menu on every page", 3)
    assert found.explain(0, 1).sizes[0] == len(every - menu)
    assert {text for text, _ in found.explain(0, 2).shingles["shared"]} == set()


def test_a_bag_counts_repetitions():
    found = likewise.pairs(["a a a b", "a a b"], shingle=likewise.Tokens(bag=True), threshold=0.1)
    told = found.explain(0, 1)
    assert told.sizes == (4, 3)
    assert told.similarities["jaccard"] == found.to_pylist()[0]["similarity"] == 3 / 4


def test_sets_and_containment():
    sets = Sets.from_lists([["a", "b"], ["a", "b", "c", "d"], []])
    found = likewise.pairs(sets, measure="containment", threshold=0.9)
    assert found.explain(0, 1).found
    told = found.explain(1, 0)
    assert told.found is False
    assert told.similarity == 0.5
    assert found.explain(2, 1).similarities["containment"] == 1
    assert told.shingles == {}


def test_vectors():
    points = np.random.default_rng(1).normal(size=(50, 8))
    found = likewise.pairs(points, measure="l2", within=3)
    row = found.to_pylist()[0]
    told = found.explain(row["id_a"], row["id_b"])
    assert told.distance == row["distance"]
    assert told.found
    assert told.probability == 1
    assert told.distances["angle"] == pytest.approx(measures.angle(points[row["id_a"]], points[row["id_b"]]))
    near = likewise.nearest(points, k=2)
    first = near.to_pylist()[0]
    assert near.explain(first["id_a"], first["id_b"]).found
    far = int(np.argmax(((points - points[0]) ** 2).sum(axis=1)))
    assert "not among the nearest" in near.explain(0, far).summary()
    bits = points > 0
    assert likewise.pairs(bits, measure="hamming", within=3).explain(0, 1).distance == (bits[0] != bits[1]).sum()


def test_hash_tables_find_what_is_near_with_the_recall():
    random = np.random.default_rng(2)
    centres = random.normal(size=(2000, 32))
    found = likewise.pairs(np.concatenate([centres, centres + random.normal(0, 0.05, centres.shape)]), measure="angle",
                           within=10, method="lsh")  # fmt: skip
    assert 0.99 <= found.explain(0, 2000).probability <= 1
    assert found.explain(0, 1).probability == 0


def files(tmp_path, texts=TEXTS):
    path = tmp_path / "docs.jsonl"
    path.write_text("".join(json.dumps({"key": f"k{i}", "text": text}) + "\n" for i, text in enumerate(texts)))
    return path


def test_a_finished_run(tmp_path):
    path = files(tmp_path)
    out = tmp_path / "run"
    found = likewise.dedup(path, id="key", shingle="words:3", threshold=0.6, method="lsh", out=out)
    here, there = found.explain("k6", "k7"), explain_run(out, "k6", "k7")
    assert here.to_dict() == there.to_dict()
    check(there, TEXTS[6], TEXTS[7], 3)
    again = likewise.rethreshold(out, 0.99)
    told = again.explain("k6", "k7")
    assert told.to_dict() == explain_run(out, "k6", "k7").to_dict()
    assert (told.found, told.scheme.threshold, told.bands) == (False, 0.99, here.bands)
    with pytest.raises(InputError, match="no item with the id 'zz'"):
        explain_run(out, "k6", "zz")
    path.write_text("")
    with pytest.raises(likewise.LikewiseError, match=r"docs.jsonl"):
        explain_run(out, "k6", "k7")


@pytest.mark.parametrize(
    "settings",
    [
        {"method": "lsh"},
        {"method": "exact", "id": "key"},
        {"method": "lsh", "ignore_common": 0.5},
        {"k": 1},
        {"measure": "containment"},
    ],
    ids=str,
)
def test_a_finished_run_of_pairs(tmp_path, settings):
    """A folder explains what the result does: the same everything, from the definitions and in words."""
    texts = [f"the same menu on every page {text}" for text in TEXTS]
    path = files(tmp_path, texts)
    found = likewise.pairs(path, shingle="words:3", threshold=0.6, **settings)
    out = found.save(tmp_path / "out")
    name = "k{}" if "id" in settings else "{}"
    for a, b in ((6, 7), (7, 6), (6, 9)):
        here, there = found.explain(name.format(a), name.format(b)), explain_run(out, name.format(a), name.format(b))
        assert here.to_dict() == there.to_dict()
        assert there.found is (abs(a - b) == 1)
        left_out = shingles("the same menu on every page", 3) if "ignore_common" in settings else set()
        both = [shingles(texts[one], 3) - left_out for one in (a, b)]
        assert there.sizes == tuple(map(len, both))
        assert there.similarities["jaccard"] == measures.jaccard(*both)
    with pytest.raises(InputError, match="there is no item"):
        explain_run(out, name.format(6), "zz")


def test_a_finished_run_of_pairs_of_two_collections(tmp_path):
    (tmp_path / "b").mkdir()
    here, there = files(tmp_path, TEXTS[:20]), files(tmp_path / "b", [*TEXTS[20:], TEXTS[3]])
    found = likewise.pairs(here, there, shingle="words:3", threshold=0.6)
    out, last = found.save(tmp_path / "out"), len(TEXTS) - 20
    assert explain_run(out, 3, last).to_dict() == found.explain(3, last).to_dict()
    assert explain_run(out, 3, last).found
    assert explain_run(out, 3, 0).found is False


def test_what_pairs_were_not_asked_for(tmp_path):
    path = files(tmp_path, [*TEXTS, TEXTS[0]])
    last = len(TEXTS)
    below = likewise.pairs(path, shingle="words:3", threshold=0.6, below=0.99).save(tmp_path / "below")
    told = explain_run(below, 0, last)
    assert (told.found, told.notes) == (False, ("only pairs with a similarity below 0.99 were asked for",))
    assert explain_run(below, 0, 1).notes == ()
    best = likewise.pairs(path, shingle="words:3", threshold=0.6, k=1).save(tmp_path / "best")
    assert explain_run(best, 0, last).found
    assert not explain_run(best, 0, 2).notes
    points = np.array([[0.0, 0], [0, 1], [0, 5]])
    np.save(tmp_path / "points.npy", points)
    far = likewise.pairs(tmp_path / "points.npy", measure="l2", within=6, beyond=2).save(tmp_path / "far")
    assert explain_run(far, 0, 1).notes == ("only pairs with a distance above 2 were asked for",)
    assert explain_run(far, 0, 2).found


DISTANCES = {
    "l2": lambda x, y: sqrt(((x - y) ** 2).sum()),
    "l1": lambda x, y: abs(x - y).sum(),
    "angle": measures.angle,
    "hamming": lambda x, y: (x != y).sum(),
}


@pytest.mark.parametrize("kind", ["npy", "parquet"])
@pytest.mark.parametrize(("measure", "within"), [("l2", 3), ("l1", 7), ("angle", 60), ("hamming", 2)])
def test_a_finished_run_of_vectors(tmp_path, measure, within, kind):
    points = np.random.default_rng(1).normal(size=(50, 8))
    points = points > 0 if measure == "hamming" else points
    settings = {}
    path = tmp_path / f"points.{kind}"
    if kind == "npy":
        np.save(path, points)
    else:
        settings["id"] = "key"
        pq.write_table(pa.table({"key": [f"k{i}" for i in range(50)], "vector": list(points)}), path)
    found = likewise.pairs(path, measure=measure, within=within, **settings)
    out = found.save(tmp_path / "out")
    listed = {(row["id_a"], row["id_b"]) for row in found.to_pylist()}
    assert listed
    for a, b in ((0, b) for b in range(1, 50)):
        names = (f"k{a}", f"k{b}") if settings else (a, b)
        told = explain_run(out, *names)
        true = DISTANCES[measure](points[a], points[b])
        assert told.distance == pytest.approx(true, rel=1e-6)
        assert told.found is (names in listed) is (told.distance <= within)
        assert told.probability == told.found
        assert told.to_dict() == found.explain(*names).to_dict()
        assert ("within" if told.found else "more than") in told.summary()


def test_a_finished_run_of_neighbours(tmp_path):
    points = np.random.default_rng(1).normal(size=(50, 8))
    np.save(tmp_path / "points.npy", points)
    found = likewise.nearest(tmp_path / "points.npy", k=2, measure="l2")
    out = found.save(tmp_path / "out")
    order = np.argsort(((points - points[0]) ** 2).sum(axis=1))
    assert explain_run(out, 0, int(order[1])).found
    assert "not among the nearest" in explain_run(out, "0", str(order[3])).summary()


def test_a_run_without_its_state(tmp_path):
    path, out = files(tmp_path), tmp_path / "run"
    with_state = likewise.dedup(path, id="key", shingle="words:3", threshold=0.6, method="lsh", out=tmp_path / "state")
    likewise.dedup(path, id="key", shingle="words:3", threshold=0.6, method="lsh", out=out, state=False)
    for pair in (("k6", "k7"), ("k7", "k6"), ("k6", "k9")):
        assert explain_run(out, *pair).to_dict() == with_state.explain(*pair).to_dict()


def test_runs_that_cannot_be_explained(tmp_path):
    out = tmp_path / "pairs"
    likewise.pairs(TEXTS[:4]).save(out)
    with pytest.raises(InputError, match="given in memory"):
        explain_run(out, 0, 1)
    path = files(tmp_path)
    likewise.pairs(path, shingle="words:3").save(out)
    path.write_text("")
    with pytest.raises(InputError, match=r"docs.jsonl has changed since the run"):
        explain_run(out, 0, 1)
    path.unlink()
    with pytest.raises(InputError, match=r"docs.jsonl is missing"):
        explain_run(out, 0, 1)
    with pytest.raises(likewise.MissingInput, match="no finished run"):
        explain_run(tmp_path, 0, 1)
    likewise.pairs(TEXTS[:4]).save(tmp_path / "pairs.csv")
    with pytest.raises(likewise.MissingInput, match="this is a file; name the folder of a run"):
        explain_run(tmp_path / "pairs.csv", 0, 1)


def test_many_text_files_are_found_by_their_paths(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for number, text in enumerate(TEXTS):
        (folder / f"{number:03d}.txt").write_text(text)
    out = likewise.pairs(folder, shingle="words:3", threshold=0.6).save(tmp_path / "out")
    told = explain_run(out, str(folder / "118.txt"), str(folder / "119.txt"))
    assert told.found
    assert told.similarities["jaccard"] == measures.jaccard(*(shingles(TEXTS[one], 3) for one in (118, 119)))
    with pytest.raises(InputError, match="no item with the id"):
        explain_run(out, str(folder / "118.txt"), "other.txt")


def test_a_document_of_an_earlier_run(tmp_path):
    out = tmp_path / "run"
    likewise.dedup(files(tmp_path), id="key", shingle="words:3", threshold=0.6, out=out)
    (tmp_path / "more").mkdir()
    more = tmp_path / "more" / "new.jsonl"
    more.write_text(json.dumps({"key": "new", "text": TEXTS[6]}) + "\n")
    found = likewise.dedup(more, id="key", threshold=0.6, against=out, shingle="words:3")
    told = found.explain("k6", "new")
    assert told.similarities["jaccard"] == 1
    assert told.notes == ("k6 is kept", "new is removed; k6 is kept in its place")


def test_what_is_set_aside_stays_so(tmp_path):
    path = tmp_path / "docs.jsonl"
    lines = [json.dumps({"text": text}) for text in TEXTS[:6]]
    path.write_text("\n".join([*lines[:3], "{broken", *lines[3:], "{broken"]) + "\n")
    found = likewise.dedup(path, shingle="words:3", threshold=0.6, on_error="skip")
    aside, rows = list(found.aside), found.kept.num_rows
    check_ids = found.clusters.column("id").to_pylist()
    found.explain(check_ids[0], check_ids[1])
    assert found.aside == aside
    assert found.kept.num_rows == rows
    assert len(aside) == 2


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.tags, self.urls = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.urls += [value for name, value in attrs if name in ("src", "href")]


EVIL = "<script>alert(1)</script> \x1b[2J & \u202e </pre></style> <img src=x onerror=alert(1)>"


def test_hostile_text_stays_text(tmp_path):
    texts = [f"{EVIL} {TEXTS[0]}", f"{EVIL} {TEXTS[1]}"]
    path = files(tmp_path, texts)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row, name in zip(rows, ("<b>one</b>", "two\x1b[2J"), strict=True):
        row["key"] = name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = likewise.dedup(path, id="key", shingle="words:3", threshold=0.6).explain("<b>one</b>", "two\x1b[2J")
    page = told.to_html(tmp_path / "why.html")
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == page
    found = Tags(page)
    assert not {"script", "img", "link"} & set(found.tags)
    assert found.urls == []
    assert found.tags.count("style") == found.tags.count("pre") - 1 == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for shown in (page, str(told), repr(told), told._repr_html_()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert json.loads(json.dumps(told.to_dict()))["id_a"] == "<b>one</b>"


def test_the_page_marks_what_differs(tmp_path):
    page = likewise.pairs(TEXTS, shingle="words:3", threshold=0.6).explain(0, 1).to_html()
    assert page.count("<mark>") == 4
    assert "<mark>new</mark>" in page
    assert "<mark>newer</mark>" in page


def test_a_result_without_items_says_so(tmp_path: Path):
    from likewise.jobs.result import Pairs

    found = likewise.pairs(TEXTS[:4])
    with pytest.raises(IncompatibleError, match="cannot explain"):
        Pairs(found.table, found.stats).explain(0, 1)
