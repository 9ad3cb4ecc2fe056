"""Passages of two documents of which at least one repeats itself: the suspect covered by its longest shared runs.

Documents that repeat themselves share a run in many places, up to as many as the product of their lengths. Here every
part of the suspect gets one place in the source: for every word of the suspect the longest run shared with the source
that ends there, where the source has it first; a least number of these runs covers all of them. Where few runs are long
enough for a passage they are looked at one by one. Otherwise the suffix automaton of the suspect (Blumer et al. 1985)
reads the source once, in linear time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, making
from likewise.kernels.hashing import U0, U1, U63
from likewise.kernels.hashtable import TABLE_ODD, slot_range, table_bits
from likewise.kernels.intrinsics import trailing_zeros

STATE_ODD = np.uint64(0xD6E8FEB86659FD93)
"""An odd number that spreads the states of an automaton over 64 bits."""

WINDOW = 16
"""Most words, on either side, that are searched for the continuation of a passage: the search takes their product."""


class Automaton(NamedTuple):
    """The suffix automaton of a document: states, and transitions by words in a hash table.

    A state stands for the runs of words that end at the same places: the longest has size[state] words, and link[state]
    is the state of the longest of its ends that occurs elsewhere too.
    """

    link: Any
    size: Any
    first: Any  # a transition of this state
    order: Any  # states by ascending size
    prefix: Any  # the state of the words up to this one
    word: Any
    owner: Any  # the state that a transition leaves; -1: a free slot
    target: Any
    following: Any  # another transition of the same state
    longest: Any  # of a state, words of the longest run read that ends so
    place: Any  # where it ended in what was read
    early: Any  # where a run that ends so, of any size, ended first


@making
def make_automaton(n):
    """Return room for the automaton of n words."""
    states = 2 * n + 1
    slots = 1 << table_bits(3 * n)
    return Automaton(
        np.empty(states, np.int32),
        np.empty(states, np.int32),
        np.empty(states, np.int32),
        np.empty(states, np.int32),
        np.empty(n, np.int32),
        np.empty(slots, np.uint64),
        np.full(slots, np.int32(-1), np.int32),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        np.empty(states, np.int32),
        np.empty(states, np.int32),
        np.empty(states, np.int32),
    )


@inner
def slot_of_transition(auto, state, word, down, mask):
    """Return the slot of a transition, or the free slot where it belongs."""
    slot = ((word ^ (np.uint64(state) * STATE_ODD)) * TABLE_ODD) >> down
    while auto.owner[slot] >= 0 and (auto.owner[slot] != state or auto.word[slot] != word):
        slot = (slot + U1) & mask
    return slot


@inner
def add_transition(auto, slot, state, word, target):
    """Put a transition in a free slot."""
    auto.owner[slot], auto.word[slot], auto.target[slot] = state, word, target
    auto.following[slot] = auto.first[state]
    auto.first[state] = slot


@making
def build_automaton(units, n, auto):
    """Build the suffix automaton of n words; return how many states it has."""
    down, mask = slot_range(3 * n)
    auto.link[0] = -1
    auto.size[0] = 0
    auto.first[0] = -1
    states, last = 1, 0
    for i in range(n):
        word = units[i]
        new = states
        states += 1
        auto.size[new] = i + 1
        auto.first[new] = -1
        auto.link[new] = 0
        auto.prefix[i] = new
        state, last = last, new
        while state >= 0:
            slot = slot_of_transition(auto, state, word, down, mask)
            if auto.owner[slot] >= 0:
                break
            add_transition(auto, slot, state, word, new)
            state = auto.link[state]
        if state < 0:
            continue
        known = auto.target[slot]
        if auto.size[state] + 1 == auto.size[known]:
            auto.link[new] = known
            continue
        clone = states
        states += 1
        auto.size[clone] = auto.size[state] + 1
        auto.link[clone] = auto.link[known]
        auto.first[clone] = -1
        entry = auto.first[known]
        while entry >= 0:
            slot = slot_of_transition(auto, clone, auto.word[entry], down, mask)
            add_transition(auto, slot, clone, auto.word[entry], auto.target[entry])
            entry = auto.following[entry]
        while state >= 0:
            slot = slot_of_transition(auto, state, word, down, mask)
            if auto.target[slot] != known:
                break
            auto.target[slot] = clone
            state = auto.link[state]
        auto.link[known], auto.link[new] = clone, clone
    counts = np.zeros(n + 2, np.int64)
    for state in range(states):
        counts[auto.size[state] + 1] += 1
    for size in range(n + 1):
        counts[size + 1] += counts[size]
    for state in range(states):
        auto.order[counts[auto.size[state]]] = state
        counts[auto.size[state]] += 1
    return states


class Longest(NamedTuple):
    """The longest runs shared with the source that end at each word of the suspect, of those words that have any.

    last: the word, ascending; size: words of the run; end: the word of the source behind the first such run. marks: of
    all words, those that have a run.
    """

    last: Any
    size: Any
    end: Any
    marks: Any


@making
def make_longest(n):
    """Return room for the longest runs of n words."""
    marks = np.empty((n >> 6) + 1, np.uint64)
    return Longest(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32), marks)


@inner
def longest_runs(auto, n, states, other, m, length, longest):
    """Write for every word of the suspect the longest run shared with the source that ends there, and where.

    Runs of fewer than `length` words do not count. Returns how many words have one.
    """
    down, mask = slot_range(3 * n)
    auto.longest[:states] = 0
    state, size, found = 0, 0, False
    for j in range(m):
        word = other[j]
        while True:
            slot = slot_of_transition(auto, state, word, down, mask)
            if auto.owner[slot] >= 0:
                state = auto.target[slot]
                size += 1
                break
            if state == 0:
                break
            state = auto.link[state]
            size = auto.size[state]
        if size >= length and auto.longest[state] < size:
            if auto.longest[state] == 0:
                auto.early[state] = j + 1
            auto.longest[state] = size
            auto.place[state] = j + 1
            found = True
    if not found:
        return 0
    for k in range(states - 1, 0, -1):
        state = auto.order[k]
        above = auto.link[state]
        if auto.longest[state] > 0 and auto.size[above] >= length:
            early = auto.early[state]
            if auto.longest[above] < auto.size[above] or early < auto.place[above]:
                auto.place[above] = early
            if auto.longest[above] == 0 or early < auto.early[above]:
                auto.early[above] = early
            auto.longest[above] = auto.size[above]
    for k in range(1, states):
        state = auto.order[k]
        if auto.longest[state] == 0:
            above = auto.link[state]
            auto.longest[state], auto.place[state] = auto.longest[above], auto.place[above]
    count = 0
    for i in range(n):
        state = auto.prefix[i]
        if auto.longest[state] > 0:
            longest.last[count], longest.size[count], longest.end[count] = i, auto.longest[state], auto.place[state]
            count += 1
    return count


@inner
def longest_of(runs, count, n, length, longest):
    """Write the same as `longest_runs`, from all runs of `length` words or more; each word's in its place at first."""
    _, sizes, ends, marks = longest
    marks[: (n >> 6) + 1] = U0
    for run in range(count):
        i, j = runs[run, 0], runs[run, 1]
        for size in range(length, runs[run, 2] + 1):
            last, end = i + size - 1, j + size
            bit = U1 << (np.uint64(last) & U63)
            new = marks[last >> 6] & bit == U0
            if new or size > sizes[last] or (size == sizes[last] and end < ends[last]):
                sizes[last], ends[last] = size, end
                marks[last >> 6] |= bit
    written = 0
    for block in range((n >> 6) + 1):
        bits = marks[block]
        while bits != U0:
            last = (block << 6) + np.int64(trailing_zeros(bits))
            longest.last[written], sizes[written], ends[written] = last, sizes[last], ends[last]
            bits &= bits - U1
            written += 1
    return written


@inner
def are_equal(units, i, other, j, size):
    """Tell whether `size` words are the same."""
    for k in range(size):  # noqa: SIM110
        if units[i + k] != other[j + k]:
            return False
    return True


@inner
def extend(units, other, m, low, high, least, window, forward, found):
    """Make a passage longer by runs of at least `least` words, each the nearest within the window.

    Forward up to word `high` of the suspect, or backward down to word `low`. `found`: start, end, start, end, equal.
    """
    while True:
        best = 2 * window + 1
        step_i = step_j = 0
        for di in range(min(window + 1, best)):
            for dj in range(min(window + 1, best - di)):
                if forward:
                    i, j = found[1] + di, found[3] + dj
                else:
                    i, j = found[0] - di - least, found[2] - dj - least
                if i < low or i + least > high or j < 0 or j + least > m:
                    continue
                if are_equal(units, i, other, j, least):
                    best = di + dj
                    step_i, step_j = di, dj
                    break
        if best > 2 * window:
            return
        size = least
        if forward:
            i, j = found[1] + step_i, found[3] + step_j
            while i + size < high and j + size < m and units[i + size] == other[j + size]:
                size += 1
            found[1], found[3] = i + size, j + size
        else:
            i, j = found[0] - step_i - 1, found[2] - step_j - 1
            while i - size >= low and j - size >= 0 and units[i - size] == other[j - size]:
                size += 1
            found[0], found[2] = i - size + 1, j - size + 1
        found[4] += size


@inner
def continued(units, other, m, start, size, found, last, gap):
    """Return where in the source these words go on with a passage, nearest to its end; -1: nowhere.

    `last` is where the last run of the passage begins in the source.
    """
    if abs(start - found[1]) > gap:
        return -1
    window = min(gap, WINDOW)
    for away in range(window + 1):
        for side in range(2):
            j = found[3] + away if side == 0 else found[3] - away
            if j > last and j + size > found[3] and j + size <= m and are_equal(units, start, other, j, size):
                return j
    return -1


@inner
def cover(units, n, other, m, rules, longest, count, passages):
    """Write the passages (start, end, start, end, equal) that cover every shared run of `length` words of the suspect.

    longest: what `longest_runs` writes, of `count` words. Each word gets one place in the source, the one that goes on
    with the passage before if there is one. Runs of `least` words close to a passage make it longer, up to the next
    one. There are at most 2 n / length + 1 passages.
    """
    window = min(rules.gap, WINDOW)
    made = 0
    last: Any = 0
    begun: Any = -1
    k, p, final = 0, 0, -1
    size, other_start = np.int64(0), np.int64(0)
    while p < n:
        while k < count and longest.last[k] - longest.size[k] + 1 <= p:
            final, size, other_start = longest.last[k], longest.size[k], longest.end[k] - longest.size[k]
            k += 1
        if final < p:
            if k == count:
                break
            p = longest.last[k] - longest.size[k] + 1
            continue
        start = final - size + 1
        p = final + 1
        if made > 0:
            found = passages[made - 1]
            if start > found[1] and rules.gap > 0:
                before = found[3]
                extend(units, other, m, 0, start, rules.least, window, True, found)
                if found[3] != before:
                    begun, last = max(begun, found[1] - 1), max(last, found[3] - 1)
            if start > begun:
                again = continued(units, other, m, start, size, found, last, rules.gap)
                if again < 0 and (
                    abs(start - found[1]) <= rules.gap
                    and abs(other_start - found[3]) <= rules.gap
                    and other_start > last
                    and other_start + size > found[3]
                ):
                    again = other_start
                if again >= 0:
                    found[4] += start + size - max(start, found[1])
                    found[1], found[3] = start + size, again + size
                    begun, last = start, again
                    continue
        low = passages[made - 1, 1] if made > 0 else 0
        found = passages[made]
        found[0] = start
        found[1] = start + size
        found[2] = other_start
        found[3] = other_start + size
        found[4] = size
        if rules.gap > 0 and low < start:
            extend(units, other, m, low, n, rules.least, window, False, found)
        begun, last = start, other_start
        made += 1
    if made > 0 and rules.gap > 0:
        extend(units, other, m, 0, n, rules.least, window, True, passages[made - 1])
    return made
