import numpy as np
from arrays_of import ints
from hypothesis import given
from hypothesis import strategies as st

from likewise.kernels import pairs as best

PAIRS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 9), st.sampled_from([0.25, 0.5, 0.75, 1.0])),
    max_size=60,
    unique_by=lambda pair: pair[:2],
)


@given(PAIRS, st.integers(1, 5), st.integers(0, 60))
def test_heaps_keep_the_best(pairs, k, cut):
    scores, partners = np.empty((4, k)), np.empty((4, k), np.int64)
    counts, floors = np.zeros(4, np.int64), np.zeros(4)
    for part in (pairs[:cut], pairs[cut:]):
        rows, others = ints([row for row, _, _ in part]), ints([other for _, other, _ in part])
        best.offer(rows, others, np.array([score for *_, score in part]), scores, partners, counts, floors)
    for row in range(4):
        offered = sorted((-score, other) for of, other, score in pairs if of == row)[:k]
        held = zip((-scores[row, : counts[row]]).tolist(), partners[row, : counts[row]].tolist(), strict=True)
        assert sorted(held) == offered
        assert floors[row] == (-offered[-1][0] if len(offered) == k else 0)
