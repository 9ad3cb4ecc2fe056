"""Neighbours against brute force: exact distances, and the recall that was asked for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from scipy.stats import binom
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors
from sklearn.pipeline import make_pipeline

from likewise.sklearn import LSHNeighbors, MinHashNeighbors

RISK = 1e-6
"""The probability with which a test of recall fails although the recall is on target."""


def baskets(seed=0, sets=400, copies=3, columns=300, size=40, changed=4):
    """Random sets, each with copies of which a few elements are replaced; two are empty, two equal."""
    random = np.random.default_rng(seed)
    rows = np.zeros((sets, columns), bool)
    for i in range(sets):
        rows[i, random.choice(columns, size, replace=False)] = True
    made = [rows]
    for _ in range(copies):
        more = rows.copy()
        for i in range(sets):
            more[i, random.choice(np.flatnonzero(rows[i]), changed, replace=False)] = False
            more[i, random.choice(columns, changed, replace=False)] = True
        made.append(more)
    whole = np.concatenate(made)
    whole[[3, 77]] = False
    whole[90] = whole[91]
    return whole


def jaccard(a, b):
    """|a Δ b| / |a ∪ b|, 0 for two empty sets."""
    a, b = a.astype(float), b.astype(float)  # whole numbers, which are multiplied sooner
    shared = a @ b.T
    union = a.sum(1)[:, None] + b.sum(1)[None, :] - shared
    return np.where(union == 0, 0.0, (union - shared) / np.maximum(union, 1))


def least_found(pairs, recall):
    """The fewest of so many pairs that are found, each with this probability, except with probability RISK."""
    return int(binom.ppf(RISK, pairs, recall))


DATA = baskets()
TRUE = jaccard(DATA, DATA)


def nearest(table, k, own=False):
    table = table.copy()
    if own:
        np.fill_diagonal(table, np.inf)
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(table, order, 1), order


@pytest.mark.parametrize(
    "kind", [np.asarray, csr_matrix, lambda x: x.astype(float).tolist()], ids=["array", "csr", "list"]
)
def test_sets_exactly(kind):
    found = MinHashNeighbors(method="exact", radius=0.4).fit(kind(DATA))
    for own in (True, False):
        X = None if own else kind(DATA[:50])
        truth = TRUE if own else TRUE[:50]
        distances, rows = found.kneighbors(X, 7)
        expected = nearest(truth, 7, own)
        assert (distances == expected[0]).all()
        assert (rows == expected[1]).all()
        distances, rows = found.radius_neighbors(X)
        for i, (far, near) in enumerate(zip(distances, rows, strict=True)):
            expected = [j for j in np.flatnonzero(truth[i] <= 0.4) if not own or i != j]
            assert near.tolist() == expected
            assert (far == truth[i, expected]).all()


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_sets_by_tables_have_the_recall(n_jobs):
    radius, recall = 0.35, 0.9
    found = MinHashNeighbors(method="lsh", radius=radius, recall=recall, n_jobs=n_jobs).fit(DATA)
    assert found.banding_ is not None
    graph = found.radius_neighbors_graph(mode="distance")
    stored = csr_matrix((np.ones_like(graph.data), graph.indices, graph.indptr), graph.shape)
    left, right = stored.nonzero()
    assert (TRUE[left, right] <= radius).all()
    assert (graph.data == TRUE[left, graph.indices]).all()
    close = np.less_equal(TRUE, radius)
    np.fill_diagonal(close, False)
    pairs = int(np.triu(close).sum())
    assert least_found(pairs, recall) <= int((left < right).sum()) <= pairs
    assert (stored != stored.T).nnz == 0
    distances, rows = found.kneighbors(n_neighbors=3)
    truth, _ = nearest(TRUE, 3, own=True)
    assert (np.take_along_axis(TRUE, rows, 1) == distances).all()
    assert (distances >= truth).all()
    assert (distances == truth).sum() >= least_found(truth.size, recall)


def test_a_larger_radius_than_the_fitted_one_misses_nothing():
    found = MinHashNeighbors(method="lsh", radius=0.2).fit(DATA)
    for radius in (0.2, 0.6, 0.95, 1.0):
        graph = found.radius_neighbors_graph(DATA[:40], radius)
        assert (graph.toarray() <= (TRUE[:40] <= radius)).all()
        assert radius == 0.2 or (graph.toarray() == (TRUE[:40] <= radius)).all()


@pytest.mark.parametrize("radius", [0.3, 0.4, 0.6, 0.7, 0.9])
def test_a_distance_equal_to_the_radius_is_within_it(radius):
    """1 − 0.7 is more than 0.3 in floating point; the ratio of the sizes is not."""
    tenths = round(10 * radius)
    whole, part = np.ones(10, bool), np.arange(10) >= tenths
    for method in ("exact", "lsh"):
        found = MinHashNeighbors(1, method=method, radius=min(radius, 0.7)).fit([whole])
        assert found.radius_neighbors([part], radius)[0][0].tolist() == [radius]


def test_samples_with_nothing_in_common_fill_up_the_neighbours():
    alone = np.eye(6, 8, dtype=bool)
    distances, rows = MinHashNeighbors(3).fit(alone).kneighbors()
    assert (distances == 1).all()
    assert rows.tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    with pytest.raises(ValueError, match="n_samples_fit"):
        MinHashNeighbors(6).fit(alone).kneighbors()


def test_a_sparse_matrix_may_hold_zeros_and_duplicates():
    matrix = csr_matrix(([1.0, 1.0, 0.0, 2.0], [0, 0, 1, 2], [0, 3, 4]), shape=(2, 3))
    found = MinHashNeighbors(1).fit(matrix)
    assert found.kneighbors([[1, 0, 0]])[0].tolist() == [[0.0]]
    assert matrix.nnz == 4


def test_texts():
    texts = ["the cat sat on the mat today", "the cat sat on the mat", "to be or not to be"]
    found = MinHashNeighbors(1, shingle="words:2").fit(texts)
    distances, rows = found.kneighbors(["a cat sat on the mat"])
    assert rows.tolist() == [[1]]
    assert distances[0, 0] == pytest.approx(2 / 6)
    with pytest.raises(ValueError, match="list of texts"):
        found.kneighbors("one text")
    with pytest.raises(ValueError, match="list of texts"):
        found.fit([1, 2])


POINTS = np.random.default_rng(5).normal(size=(600, 12))
POINTS[40] = POINTS[41]
NAMES = {"l2": "euclidean", "l1": "cityblock", "cosine": "cosine", "euclidean": "euclidean", "manhattan": "cityblock"}
RADII = {"l2": 2.5, "l1": 7.0, "cosine": 0.35, "euclidean": 2.5, "manhattan": 7.0, "angle": 50.0, "hamming": 0.25}


def vectors(metric):
    return POINTS > 0 if metric == "hamming" else POINTS


def truth_of(metric, a, b):
    if metric == "angle":
        return np.degrees(np.arccos(np.clip(1 - cdist(a, b, "cosine"), -1, 1)))
    return cdist(a, b, NAMES.get(metric, metric))


@pytest.mark.each_value
@pytest.mark.parametrize("metric", RADII)
@pytest.mark.parametrize("own", [True, False])
def test_vectors_exactly(metric, own):
    data, radius = vectors(metric), RADII[metric]
    truth = truth_of(metric, data if own else data[:30], data)
    X = None if own else data[:30]
    found = LSHNeighbors(5, radius=radius, metric=metric, method="exact").fit(data)
    distances, rows = found.kneighbors(X)
    tolerance = {"rtol": 1e-9, "atol": 3e-6 if metric == "angle" else 1e-12}  # arccos near 1 loses half of the digits
    np.testing.assert_allclose(distances, nearest(truth, 5, own)[0], **tolerance)
    np.testing.assert_allclose(np.take_along_axis(truth, rows, 1), distances, **tolerance)
    distances, rows = found.radius_neighbors(X, sort_results=True)
    for i, (far, near) in enumerate(zip(distances, rows, strict=True)):
        expected = [j for j in np.flatnonzero(truth[i] <= radius) if not own or i != j]
        assert sorted(near.tolist()) == expected
        assert (np.diff(far) >= 0).all()
        np.testing.assert_allclose(far, truth[i, near], **tolerance)


@pytest.mark.parametrize(
    ("metric", "radius"),
    [
        pytest.param("l2", 1.2, marks=pytest.mark.soak),
        pytest.param("angle", 20.0, marks=pytest.mark.soak),
        ("cosine", 0.06),  # which is searched for by angles
        pytest.param("hamming", 0.05, marks=pytest.mark.soak),
    ],
)
def test_vectors_by_tables_have_the_recall(metric, radius):
    random = np.random.default_rng(3)
    centres = random.normal(size=(700, 64))
    data = np.concatenate([centres + random.normal(0, 0.1, centres.shape) for _ in range(4)])
    if metric == "hamming":
        data = data > 0
    truth = truth_of(metric, data, data)
    close = truth <= radius
    found = LSHNeighbors(3, radius=radius, metric=metric, method="lsh", recall=0.9).fit(data)
    graph = found.radius_neighbors_graph(mode="distance").tocoo()
    assert close[graph.row, graph.col].all()
    pairs = int(np.triu(close, 1).sum())
    assert pairs > 1000
    assert int((graph.row < graph.col).sum()) >= least_found(pairs, 0.9)
    distances, _ = found.kneighbors()
    expected = nearest(truth, 3, own=True)[0]
    good = np.isclose(distances, expected, rtol=1e-9, atol=1e-6)
    assert good.sum() >= least_found(expected.size, 0.9)


def test_all_copies_of_a_vector_are_neighbours():
    """A table of pairs may be abridged where many are equal; a graph may not."""
    data = np.zeros((1600, 3))
    assert LSHNeighbors(radius=0.5).fit(data).radius_neighbors_graph().nnz == 1600 * 1599


def test_what_cannot_be_compared_is_a_value_error():
    with pytest.raises(ValueError, match=r"sample 1 .* has no direction"):
        LSHNeighbors(metric="cosine").fit([[1.0, 2.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match=r"sample 0 .* has no direction"):
        LSHNeighbors(1, metric="cosine").fit([[1.0, 2.0]]).kneighbors([[0.0, 0.0]])
    with pytest.raises(ValueError, match="only 0 and 1"):
        LSHNeighbors(metric="hamming").fit([[0, 2]])
    with pytest.raises(ValueError, match="'metric'"):
        LSHNeighbors(metric="nothing").fit([[0, 2]])
    with pytest.raises(ValueError, match="'radius'"):
        LSHNeighbors(radius=-1).fit([[0, 2]])
    with pytest.raises(ValueError, match="smaller radius"):
        MinHashNeighbors(method="lsh", radius=0.999).fit([[0, 2]])


ESTIMATORS = [MinHashNeighbors(3, radius=0.3, method="lsh"), LSHNeighbors(3, radius=1.5, metric="l2")]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["sets", "vectors"])
def test_clone_and_pickle(estimator):
    data = DATA[:200].astype(float)
    found = clone(estimator).fit(data)
    again = pickle.loads(pickle.dumps(found))
    for a, b in zip(found.kneighbors(), again.kneighbors(), strict=True):
        assert (a == b).all()
    assert clone(found).get_params() == estimator.get_params()


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=["sets", "vectors"])
def test_names_of_features(estimator):
    import pandas as pd

    frame = pd.DataFrame(DATA[:50, :20].astype(float), columns=[f"c{i}" for i in range(20)])
    found = clone(estimator).fit(frame)
    assert found.feature_names_in_.tolist() == list(frame.columns)
    assert len(found.get_feature_names_out()) == 50
    with pytest.raises(ValueError, match="feature names"):
        found.kneighbors(frame.rename(columns={"c1": "other"}))


def test_a_graph_of_neighbours_replaces_that_of_scikit_learn():
    random = np.random.default_rng(8)
    centres = random.normal(size=(6, 10)) * 4
    labels = random.integers(0, 6, 300)
    data = centres[labels] + random.normal(size=(300, 10))
    graph = LSHNeighbors(5, recall=0.99).fit_transform(data)
    assert graph.shape == (300, 300)
    assert graph.nnz == 300 * 6
    assert (graph.diagonal() == 0).all()
    pipeline = make_pipeline(LSHNeighbors(5), KNeighborsClassifier(5, metric="precomputed"))
    pipeline.fit(data[:200], labels[:200])
    expected = KNeighborsClassifier(5).fit(data[:200], labels[:200]).predict(data[200:])
    assert (pipeline.predict(data[200:]) == expected).all()
    eps = 3.0
    near = LSHNeighbors(radius=eps, graph="radius", method="exact")
    found = make_pipeline(near, DBSCAN(eps=eps, metric="precomputed")).fit(data)[-1].labels_
    assert (found == DBSCAN(eps=eps).fit(data).labels_).all()


def test_clusters_of_sets():
    near = MinHashNeighbors(radius=0.4, graph="radius", recall=0.999, method="lsh")
    found = make_pipeline(near, DBSCAN(eps=0.4, min_samples=2, metric="precomputed")).fit(DATA)[-1].labels_
    truth = DBSCAN(eps=0.4, min_samples=2, metric="precomputed").fit(TRUE).labels_
    assert len(set(truth)) > 300
    assert (found == truth).all()


def test_the_same_answer_as_nearest_neighbors():
    ours = LSHNeighbors(4, metric="l2").fit(POINTS)
    theirs = NearestNeighbors(n_neighbors=4).fit(POINTS)
    for a, b in zip(ours.kneighbors(POINTS[:20] + 0.1), theirs.kneighbors(POINTS[:20] + 0.1), strict=True):
        np.testing.assert_allclose(a, b)
