"""Representative runs give the answers they always gave: data/answers.json has the digests, recorded with version 0.1.

Where an answer is meant to change, record it anew and say why in the commit.
"""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import likewise
import made_answers as made
from apps.fingerprints.made_fingers import database
from apps.link.made_people import one_table, two_tables
from apps.mirrors.sites import site

RECORDED = json.loads((Path(__file__).parent / "data" / "answers.json").read_text())
PAIRS = ["id_a", "id_b", "similarity"]
ROWS = ["id_a", "id_b"]
DISTANCES = ["id_a", "id_b", "distance"]
REMOVED = ["id", "kept_id", "similarity", "kind"]


def dedup(source, *, clusters=False, **options):
    found = likewise.dedup(source, **options)
    digests = [made.digest(found.removed, REMOVED), made.digest(found.pairs, PAIRS)]
    return [*digests, made.digest(found.clusters, ["id", "cluster"])] if clusters else digests


def pairs(*sources, columns=PAIRS, **options):
    return [made.digest(likewise.pairs(*sources, **options), columns)]


def link(*tables):
    found = likewise.link(*(pa.Table.from_pylist(table) for table in tables))
    return [made.digest(found.matches, ROWS)]


def passages():
    texts = made.documents()
    found = likewise.passages([" ".join(text.split()[5:60]) for text in texts[:60]], texts[:300], length=8)
    places = ["suspect_start", "suspect_end", "source_start", "source_end", "length", "equal"]
    measured = made.digest(found.documents, ["suspect", "source", "containment", "jaccard"])
    return [made.digest(found.passages, ["suspect", "source", *places]), measured]


def articles():
    found = likewise.articles(made.pages())
    return [made.digest(found.pairs, PAIRS), made.digest(found.articles, ["id", "keeper", "size"])]


def mirrors():
    hosts = [("a.org", 0), ("b.net", 0), ("c.com", 3), ("d.de", 3), ("e.eu", 6)]
    found = likewise.mirrors([url for host, first in hosts for url in site(host, first=first)])
    return [made.digest(found.mirrors, ["id", "keeper"])]


def recommend():
    found = likewise.recommend(made.ratings(), threshold=0.2)
    return [made.digest(found.customers, PAIRS), made.digest(found.items, PAIRS)]


RUNS = {
    "dedup lsh": lambda: dedup(made.documents(), clusters=True, method="lsh"),
    "dedup exact longest": lambda: dedup(made.documents(), method="exact", keep="longest"),
    "dedup chars": lambda: dedup(made.documents(), shingle="chars:5", threshold=0.6, recall=0.9, seed=7, method="lsh"),
    "dedup sets": lambda: dedup(likewise.Sets.from_lists(made.baskets()), threshold=0.6),
    "pairs of two collections": lambda: pairs(made.documents()[:900], made.documents()[900:], threshold=0.5),
    "pairs k": lambda: pairs(made.documents(), threshold=0.3, shingle="words:2", k=3, method="lsh"),
    "pairs angle": lambda: pairs(made.vectors(), columns=ROWS, measure="angle", within=8, method="lsh"),
    "pairs l2": lambda: pairs(made.vectors(), columns=DISTANCES, measure="l2", within=14, method="lsh"),
    "pairs hamming": lambda: pairs(made.bits(), columns=DISTANCES, measure="hamming", within=2),
    "nearest l2": lambda: [made.digest(likewise.nearest(made.vectors(), 3, measure="l2"), DISTANCES)],
    "exact jaccard": lambda: [made.digest(likewise.exact.pairs(made.baskets(), 0.7), PAIRS)],
    "exact containment": lambda: [
        made.digest(likewise.exact.pairs(made.baskets(500), 0.8, measure="containment"), PAIRS)
    ],
    "link two": lambda: link(*two_tables(300)[:2]),
    "link one": lambda: link(one_table(150, 3)[0]),
    "passages": passages,
    "articles": articles,
    "mirrors": mirrors,
    "recommend": recommend,
    "fingerprints": lambda: [made.digest(likewise.fingerprints(database()).matches, ROWS)],
}


@pytest.mark.parametrize("name", RUNS)
def test_the_answer_is_the_recorded_one(name):
    assert RUNS[name]() == RECORDED[name]


def test_everything_recorded_is_compared():
    assert set(RUNS) == set(RECORDED)
