"""Spans that many sources hold, and shared elements of sets, against their definitions."""

import numpy as np
from arrays_of import hashes, ints
from hypothesis import given
from hypothesis import strategies as st

from likewise.apps.passages.search import listed_spans
from likewise.kernels import coverage

SPANS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(0, 9), st.integers(1, 6), st.integers(1, 3)),
    max_size=25,
)


def spans_of(drawn):
    """Spans (suspect, source, start, end, equal), ordered as the kernel wants them."""
    rows = [(suspect, source, start, start + size, equal) for suspect, source, start, size, equal in drawn]
    return sorted(set(rows), key=lambda row: (row[0], row[1], row[2], -row[3]))


def naive_listed(spans, many, need=1):
    """Holders and choice of every span, by definition."""
    holders, chosen = [], []
    rank = {span: (-span[4], span[1], span[2]) for span in spans}
    for place, span in enumerate(spans):
        mine = [other for other in spans if other[0] == span[0]]
        holders.append(len({other[1] for other in mine if other[2] <= span[2] and span[3] <= other[3]}))
        keep = False
        for word in range(span[2], span[3]):
            having = [other for other in mine if other[2] <= word < other[3]]
            before = {other[1] for other in having if (rank[other], spans.index(other)) < (rank[span], place)}
            keep |= len({other[1] for other in having}) <= many or len(before) < need
        chosen.append(keep)
    return holders, chosen


@given(drawn=SPANS, many=st.integers(1, 4), need=st.integers(1, 2))
def test_holders_and_choice(drawn, many, need):
    spans = spans_of(drawn)
    holders, chosen = listed_spans(ints(spans).reshape(-1, 5), many, need)
    assert (holders.tolist(), chosen.tolist()) == naive_listed(spans, many, need)


@given(drawn=SPANS, many=st.integers(1, 4), cut=st.integers(0, 6), gone=st.integers(0, 6))
def test_what_a_part_leaves_out_the_whole_leaves_out(drawn, many, cut, gone):
    """Sources come in blocks, and one of them may be dropped in the end."""
    spans = spans_of(drawn)
    block = [span for span in spans if span[1] < cut]
    kept = listed_spans(ints(block).reshape(-1, 5), many + 1, 2)[1]
    left_out = {span for span, keep in zip(block, kept, strict=True) if not keep}
    whole = [span for span in spans if span[1] != gone]
    chosen = listed_spans(ints(whole).reshape(-1, 5), many)[1]
    assert left_out.isdisjoint(span for span, keep in zip(whole, chosen, strict=True) if keep)


SETS = st.lists(st.sets(st.integers(0, 90), max_size=70), min_size=1, max_size=coverage.MEMBERS)


@given(SETS, SETS)
def test_shared_elements(a, b):
    flat, offsets = hashes([x for one in a for x in one]), np.cumsum([0, *map(len, a)])
    other, other_offsets = hashes([x for one in b for x in one]), np.cumsum([0, *map(len, b)])
    members = coverage.members_of(flat, offsets)
    assert len(members) >= 2 * len(set().union(*a))
    right, left = (part.ravel() for part in np.indices((len(b), len(a))))
    shared = np.zeros(len(left), np.int64)
    coverage.count_shared_elements(members, other, other_offsets, left.copy(), right.copy(), shared)
    assert shared.tolist() == [len(a[i] & b[j]) for i, j in zip(left, right, strict=True)]
