"""Estimators that follow the conventions of scikit-learn; they need `pip install 'likewise[sklearn]'`.

MinHashNeighbors    neighbours by the Jaccard distance of sets: rows of 0 and 1, sparse matrices, texts
LSHNeighbors        neighbours of vectors: angle, cosine, l2, l1 or hamming
MinHashTransformer  minhash signatures as features

The neighbours classes answer as `sklearn.neighbors.NearestNeighbors` does, and transform as `KNeighborsTransformer` or
`RadiusNeighborsTransformer` do. Every distance is exact; of the neighbours, the fraction `recall` is found.

>>> from likewise.sklearn import MinHashNeighbors
>>> baskets = [[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 0, 1, 1]]
>>> distances, rows = MinHashNeighbors(n_neighbors=1).fit(baskets).kneighbors([[1, 1, 1, 1, 0]])
>>> distances.tolist(), rows.tolist()
([[0.25]], [[0]])
"""

from likewise.base.extras import installed, missing

if not installed("sklearn"):
    raise missing("likewise.sklearn", "sklearn")

from likewise.sklearn.minhash import MinHashNeighbors, MinHashTransformer
from likewise.sklearn.vector_neighbors import LSHNeighbors

__all__ = ["LSHNeighbors", "MinHashNeighbors", "MinHashTransformer"]
