"""A service of an index of vectors: lists of numbers in, distances out."""

from __future__ import annotations

import pytest
from test_serve_api import BEARER

from likewise import Index


@pytest.fixture
def vectors(tmp_path, client_of):
    with Index.create(tmp_path / "vectors", measure="l2", dtype="float32", threads=1) as made:
        made.add(["a", "b"], [[0, 0, 1], [3, 4, 1]])
        yield client_of(made)


def test_vectors_are_asked_for_added_and_returned(vectors):
    asked = {"items": [[3, 3, 1], [0, 0, 1.5]], "k": 1}
    expected = [[{"id": "b", "distance": 1.0}], [{"id": "a", "distance": 0.5}]]
    assert vectors.post("/query", json=asked).json() == {"answers": expected}
    assert vectors.post("/query", json={"items": [[0, 0, 0]], "within": 2}).json()["answers"] == [
        [{"id": "a", "distance": 1.0}]
    ]
    added = vectors.post("/items", json={"ids": ["c"], "items": [[0.5, 0, 0]]}, headers=BEARER)
    assert added.json() == {"added": 1, "items": 3}
    assert vectors.get("/items/c").json() == {"id": "c", "text": None, "vector": [0.5, 0.0, 0.0]}
    assert vectors.get("/example").json() == {"id": "a", "text": None, "vector": [0.0, 0.0, 1.0]}
    info = vectors.get("/info").json()
    assert (info["kind"], info["measure"], info["dimension"], info["threshold"]) == ("vectors", "l2", 3, None)
    assert vectors.delete("/items/c", headers=BEARER).json() == {"removed": 1, "items": 2}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"text": "a text"}, "this index holds vectors: give 'items', lists of numbers"),
        ({"items": ["a text"]}, "items.0: this index holds vectors: a list of numbers is needed"),
        ({"items": [[1, 2, 3], [1, "2", 3]]}, "items.1: this index holds vectors"),
        ({"items": [[]]}, "items.0: this index holds vectors"),
        ({"items": [[1, 2, 3], [1, 2]]}, "items.1: 2 numbers, and 3 in items.0"),
        ({"items": [[1, 2]]}, "have 3 components, and these 2"),
        ({"items": [[1e200, 2, 3]]}, "holds a number above"),
        ({"items": [[1, 2, 3]], "threshold": 0.5}, "'threshold' parameter"),
        ({"items": [[1, 2, 3]], "measure": "jaccard"}, "'measure' parameter"),
        ({"items": [[1, 2, 3]], "within": -1}, "within"),
    ],
)
def test_what_is_no_vector_is_refused(vectors, body, message):
    answer = vectors.post("/query", json=body)
    assert answer.status_code == 422, answer.text
    assert message in answer.json()["error"]


def test_bits_are_lists_of_0_and_1(tmp_path, client_of):
    with Index.create(tmp_path / "bits", measure="hamming", threads=1) as made:
        client = client_of(made)
        client.post("/items", json={"ids": [7], "items": [[0, 1, 1, 0]]}, headers=BEARER)
        asked = {"items": [[0, 1, 0, 0]]}
        assert client.post("/query", json=asked).json() == {"answers": [[{"id": 7, "distance": 1.0}]]}
        assert client.post("/query", json={"items": [[2, 1, 0, 0]]}).status_code == 422
