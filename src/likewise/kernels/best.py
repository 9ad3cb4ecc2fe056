"""The k best partners of every row, kept while pairs arrive: one heap a row, the worst of its partners on top."""

from __future__ import annotations

from likewise.kernels import inner, kernel


@inner
def is_worse(score_a, partner_a, score_b, partner_b):
    """Tell whether a partner comes after another: a lower score, or the same and a higher number."""
    return score_a < score_b or (score_a == score_b and partner_a > partner_b)


@inner
def rise(scores, partners, place):
    """Move the last entry of a heap up, above every better one."""
    score = scores[place]
    partner = partners[place]
    while place > 0:
        above = (place - 1) >> 1
        if not is_worse(score, partner, scores[above], partners[above]):
            break
        scores[place] = scores[above]
        partners[place] = partners[above]
        place = above
    scores[place] = score
    partners[place] = partner


@inner
def sink(scores, partners, count):
    """Move the first entry of a heap of `count` down, below every worse one."""
    score = scores[0]
    partner = partners[0]
    place = 0
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and is_worse(scores[child + 1], partners[child + 1], scores[child], partners[child]):
            child += 1
        if not is_worse(scores[child], partners[child], score, partner):
            break
        scores[place] = scores[child]
        partners[place] = partners[child]
        place = child
    scores[place] = score
    partners[place] = partner


@kernel
def offer(rows, others, scores, best, partners, counts, floors):
    """Offer pairs to the heaps: best[r] has the scores of row r and partners[r] their numbers, counts[r] of them.

    floors[r] becomes the lowest score of a full heap: a pair with a lower one is of no use to the row.
    """
    k = best.shape[1]
    for p in range(rows.size):
        row = rows[p]
        n = counts[row]
        if n < k:
            best[row, n] = scores[p]
            partners[row, n] = others[p]
            rise(best[row], partners[row], n)
            counts[row] = n + 1
            if n + 1 == k:
                floors[row] = best[row, 0]
        elif is_worse(best[row, 0], partners[row, 0], scores[p], others[p]):
            best[row, 0] = scores[p]
            partners[row, 0] = others[p]
            sink(best[row], partners[row], k)
            floors[row] = best[row, 0]
