"""scikit-learn's own checks of estimators."""

from __future__ import annotations

import warnings

import pytest

from likewise.sklearn import LSHNeighbors, MinHashNeighbors, MinHashTransformer

ESTIMATORS = [
    MinHashTransformer(16),
    MinHashTransformer(16, bits=2),
    MinHashTransformer(16, bits=2, sparse_output=False),
    MinHashNeighbors(),
    MinHashNeighbors(method="lsh", graph="radius"),
    LSHNeighbors(),
    LSHNeighbors(graph="radius", metric="l1"),
]
EXCEPTIONS: dict[str, str] = {}
"""Checks that do not apply, each with the reason. There are none for numbers; metric="cosine", "angle" and "hamming"
are not in the list of estimators, because the checks use vectors of zeros, and numbers other than 0 and 1."""


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_checks_of_scikit_learn_pass(estimator: object) -> None:
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=EXCEPTIONS)
    assert len(results) > 40
    assert {result["check_name"] for result in results if result["status"] == "failed"} == set()
    skipped = {result["check_name"] for result in results if result["status"] == "skipped"}
    assert skipped <= {"check_array_api_input"}
