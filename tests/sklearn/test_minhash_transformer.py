"""Signatures as features: their agreement is the Jaccard similarity, within the error that theory gives."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from likewise import MinHash
from likewise.sklearn import MinHashTransformer

SIGMAS = 5
"""Standard errors that an estimate may be off: with probability below 1e-6 it is more."""
SETS = np.zeros((3, 90), bool)
SETS[0, :60] = SETS[1, 20:80] = SETS[2, 85:] = True  # similarities 1/2, 0, 0


def test_agreement_estimates_similarity():
    n = 4000
    signatures = MinHashTransformer(n).fit_transform(SETS)
    assert signatures.dtype == np.uint32
    agree = float((signatures[0] == signatures[1]).mean())
    assert abs(agree - 0.5) <= SIGMAS * 0.5 * n**-0.5
    assert not (signatures[0] == signatures[2]).any()


@pytest.mark.parametrize("bits", [1, 2, 8])
def test_the_inner_product_estimates_the_agreement_of_bits(bits):
    n = 4000
    features = MinHashTransformer(n, bits=bits).fit_transform(csr_matrix(SETS))
    assert issparse(features)
    assert features.shape == (3, n << bits)
    products = (features @ features.T).toarray()
    chance = 2.0**-bits
    for i, j, similarity in ((0, 0, 1), (0, 1, 0.5), (0, 2, 0)):
        expected = chance + (1 - chance) * similarity
        assert abs(products[i, j] - expected) <= SIGMAS * (expected * (1 - expected) / n) ** 0.5 + 1e-9
    dense = MinHashTransformer(n, bits=bits, sparse_output=False).fit_transform(SETS)
    assert (dense == features.toarray()).all()


def test_texts_have_the_signatures_of_their_shingles():
    from likewise import Words

    texts = ["a rose is a rose", "to be or not to be", ""]
    found = MinHashTransformer(32, shingle="words:2", random_state=7).fit_transform(texts)
    assert (found == MinHash(7).signatures(Words(2).sets(texts), 32)).all()


def test_threads_and_seeds():
    data = np.random.default_rng(0).random((9000, 12)) < 0.4
    one, two = (MinHashTransformer(8, n_jobs=jobs).fit_transform(data) for jobs in (1, 2))
    assert (one == two).all()
    assert (MinHashTransformer(8, random_state=2).fit_transform(data) != one).any()


def test_output_as_a_frame():
    frame = MinHashTransformer(4).set_output(transform="pandas").fit_transform(SETS)
    assert frame.columns.tolist() == [f"minhashtransformer{i}" for i in range(4)]


def test_a_linear_model_learns_from_similarity():
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, 400)
    core = random.random((2, 200)) < 0.3
    data = core[labels] ^ (random.random((400, 200)) < 0.15)
    model = make_pipeline(MinHashTransformer(128, bits=4), LogisticRegression())
    assert model.fit(data[:200], labels[:200]).score(data[200:], labels[200:]) > 0.95


@pytest.mark.parametrize(("name", "value"), [("n_components", 0), ("bits", 17), ("bits", 0)])
def test_bad_parameters(name, value):
    with pytest.raises(ValueError, match=f"'{name}'"):
        MinHashTransformer(**{name: value}).fit(SETS)


def test_without_scikit_learn_the_error_names_the_extra():
    code = (
        "import sys; sys.modules['sklearn'] = None\n"
        "import likewise; likewise.MinHash\n"
        "try: import likewise.sklearn\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "likewise.sklearn needs scikit-learn: pip install 'likewise[sklearn]'"
