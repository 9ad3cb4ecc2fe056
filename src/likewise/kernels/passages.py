"""Passages that two documents share: fingerprints chosen by winnowing, runs of equal words, and runs put together.

Documents are words as kernels/text.py hashes them, runs what kernels/word_runs.py finds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from likewise.kernels import inner, kernel, making
from likewise.kernels.documents import document_units, longest_text, winnow, working_space
from likewise.kernels.hashing import U0
from likewise.kernels.hashtable import largest_set
from likewise.kernels.repetitive import build_automaton, cover, longest_of, longest_runs, make_automaton, make_longest
from likewise.kernels.sorting import first_from, sort_pairs, sort_values
from likewise.kernels.word_runs import (
    RUN_STEPS,
    count_steps,
    enter_grams,
    enter_seeds,
    find_grams,
    find_seeds,
    make_grams,
    mark_heavy,
    seed_shape,
    shared_runs,
)

STEPS, FREE_STEPS = 16, 1 << 14
"""Most steps of comparing two documents run by run: so many per word of both, and so many besides. With more, at least
one of them repeats itself, and each part of the suspect gets one place in the source. English books stay below."""

PORTION = 1 << 24
"""Steps after which `find_passages` returns, to be called again: a few tenths of a second."""


class SourceIndex(NamedTuple):
    """The sources: their words end to end, where each source begins, and fingerprints, sorted, with their sources.

    seeds: what `seeds_of` makes of the words.
    """

    words: Any
    offsets: Any
    values: Any
    owners: Any
    seeds: Any


class PassageRules(NamedTuple):
    """What a passage is. `every`: compare each suspect with each source, not only with those it shares a print with.

    k and window choose the fingerprints; a run has `least` words or more; runs at most `gap` words apart in both
    documents make one passage; a passage has `length` equal words or more; of the sources with one and the same
    fingerprint, the first `common` are looked at.
    """

    k: int
    window: int
    length: int
    gap: int
    least: int
    common: int
    every: bool


@inner
def is_within(a, b):
    """Tell whether passage a lies within passage b in both documents."""
    return a[0] >= b[0] and a[1] <= b[1] and a[2] >= b[2] and a[3] <= b[3]


@inner
def nearest_run(low, high, order, starts, others, sizes, used, now, gap, forward):
    """Return the run that goes on with a passage, forward or backward: the nearest within the gap; -1: there is none.

    `now` is the edge of the passage and of its outermost run, in both documents. Runs may overlap a little, but each
    must bring words on both sides.
    """
    best = -1
    least = 2 * gap + 1
    for place in range(low, high):
        b = order[place]
        if used[b]:
            continue
        i = starts[b] if forward else -(starts[b] + sizes[b])
        j = others[b] if forward else -(others[b] + sizes[b])
        if i <= now[2] or j <= now[3] or i + sizes[b] <= now[0] or j + sizes[b] <= now[1]:
            continue
        if abs(i - now[0]) <= gap and abs(j - now[1]) <= gap and abs(i - now[0]) + abs(j - now[1]) < least:
            least = abs(i - now[0]) + abs(j - now[1])
            best = b
    return best


@making
def join_runs(runs, n, m, length, gap, limit, passages):
    """Put runs together that are close in both documents and in the same order; return how many passages that makes.

    Returns -1 if it takes more steps than the limit.

    The longest run comes first and takes the nearest ones on either side, as long as there are any. Each passage is
    (start, end, start, end, equal words of the suspect); those with fewer equal words than `length` are dropped, and
    so are those that lie within another in both documents: a text that repeats itself has many.
    """
    count = runs.shape[0]
    starts = runs[:, 0].copy()
    others = runs[:, 1].copy()
    sizes = runs[:, 2].copy()
    keys, by_start, by_end = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    by_size, ordered_starts = np.empty(count, np.int64), np.empty(count, np.int64)
    ordered_ends = np.empty(count, np.int64)
    used = np.zeros(count, np.bool_)
    for run in range(count):
        by_start[run] = run
        keys[run] = starts[run] * (m + 1) + others[run]
    sort_pairs(keys, by_start, count, count)
    for place in range(count):
        run = by_start[place]
        ordered_starts[place] = starts[run]
        by_end[place] = place
        keys[place] = (starts[place] + sizes[place]) * (m + 1) + others[place] + sizes[place]
    sort_pairs(keys, by_end, count, count)
    for place in range(count):
        run = by_end[place]
        ordered_ends[place] = starts[run] + sizes[run]
        by_size[place] = by_start[place]
        keys[place] = (n - sizes[by_start[place]]) * count + place
    sort_pairs(keys, by_size, count, count)
    now = np.empty(4, np.int64)
    made, work = 0, 0
    for seed in by_size:
        if used[seed]:
            continue
        work += made
        if work > limit:
            return -1
        used[seed] = True
        found = passages[made]
        found[0] = starts[seed]
        found[1] = starts[seed] + sizes[seed]
        found[2] = others[seed]
        found[3] = others[seed] + sizes[seed]
        found[4] = sizes[seed]
        covered = False
        for p in range(made):
            covered |= is_within(found, passages[p])
        if covered:
            continue
        run = seed
        while run >= 0:
            now[0], now[1] = found[1], found[3]
            now[2], now[3] = starts[run], others[run]
            low = first_from(ordered_starts, found[1] - gap)
            high = first_from(ordered_starts, found[1] + gap + 1)
            work += high - low
            run = nearest_run(low, high, by_start, starts, others, sizes, used, now, gap, np.bool_(True))
            if run >= 0:
                used[run] = True
                found[4] += starts[run] + sizes[run] - max(starts[run], found[1])
                found[1], found[3] = starts[run] + sizes[run], others[run] + sizes[run]
        run = seed
        while run >= 0:
            now[0], now[1] = -found[0], -found[2]
            now[2], now[3] = -(starts[run] + sizes[run]), -(others[run] + sizes[run])
            low = first_from(ordered_ends, found[0] - gap)
            high = first_from(ordered_ends, found[0] + gap + 1)
            work += high - low
            run = nearest_run(low, high, by_end, starts, others, sizes, used, now, gap, np.bool_(False))
            if run >= 0:
                used[run] = True
                found[4] += min(starts[run] + sizes[run], found[0]) - starts[run]
                found[0], found[2] = starts[run], others[run]
        if found[4] >= length:
            made += 1
    if made * made > limit:
        return -1
    kept = 0
    for p in range(made):
        covered = False
        for q in range(made):
            same = is_within(passages[p], passages[q]) and is_within(passages[q], passages[p])
            if q != p and is_within(passages[p], passages[q]) and (q < p or not same):
                covered = True
                break
        used[p] = covered
    for p in range(made):
        if not used[p]:
            for part in range(5):
                passages[kept, part] = passages[p, part]
            kept += 1
    return kept


@inner
def sources_with(prints, index, common, used, seen, stamp, candidates):
    """Write the sources that have one of these fingerprints, in order; return how many, and how many are common.

    used[f] counts the sources with fingerprint f that were looked at so far; common + 1 means that there are more.
    """
    count, capped = np.int64(0), 0
    for f in range(prints.size):
        at = first_from(index.values, prints[f])
        last = np.int64(-1)
        while at < index.values.size and index.values[at] == prints[f] and used[f] <= common:
            source = np.int64(index.owners[at])
            at += 1
            if source == last:
                continue
            last = source
            used[f] += 1
            if used[f] > common:
                capped += 1
            elif seen[source] != stamp:
                seen[source], candidates[count] = stamp, source
                count += 1
    sort_values(candidates, count)
    return count, capped


LONGER, SEEDS, WHOLE = range(3)


class SuspectRuns(NamedTuple):
    """The words of a suspect and tables of its runs; those of LONGER, SEEDS and WHOLE are filled when they are needed.

    grams: of the fewest words; longer: of one word more; heavy: the words with which the most frequent ones begin; all:
    every word; seeds: see `seed_shape`; whole: of as many words as a passage has at least. filled: which tables are.
    """

    units: Any
    grams: Any
    longer: Any
    heavy: Any
    seeds: Any
    whole: Any
    all: Any
    filled: Any


@making
def make_suspect(n):
    """Return room for a suspect of n words."""
    grams, longer, seeds, whole = make_grams(n), make_grams(n), make_grams(n), make_grams(n)
    heavy, everything, filled = np.empty(64, np.uint64), np.full(64, ~U0), np.zeros(3, np.bool_)
    return SuspectRuns(np.empty(n, np.uint64), grams, longer, heavy, seeds, whole, everything, filled)


@inner
def counted_runs(suspect, n, other, m, least, hits, limit):
    """Find the runs of `least` words of a suspect that repeats itself; return how many places and runs there may be.

    -1 runs: they take too many steps. Often those that begin with a few words tell.
    """
    if not suspect.filled[LONGER]:
        suspect.filled[LONGER] = True
        enter_grams(suspect.units, n, least + 1, suspect.longer)
        mark_heavy(suspect.units, n, least, suspect.grams, suspect.heavy)
    for words in (suspect.heavy, suspect.all):
        count, steps = count_steps(suspect.grams, suspect.longer, n, other, m, least, words, hits, limit)
        if steps > limit:
            return 0, -1
    return count, steps // (least + RUN_STEPS)


@inner
def long_runs(suspect, n, other, begin, m, seeds, length, hits, enough):
    """Find the runs of `length` words or more; return how many places there are, and all with places in the suspect.

    The seeds of the source are looked at first; if too many of them are in the suspect, all runs of so many words are.
    Also returns whether it was by seeds.
    """
    if not suspect.filled[SEEDS]:
        suspect.filled[SEEDS] = True
        enter_seeds(suspect.units, n, length, suspect.seeds)
    count, total = find_seeds(suspect.seeds, n, seeds, begin, m, length, hits, enough)
    if total <= enough:
        return count, total, True
    if not suspect.filled[WHOLE]:
        suspect.filled[WHOLE] = True
        enter_grams(suspect.units, n, length, suspect.whole)
    count, total = find_grams(suspect.whole, n, other, m, length, hits, enough)
    return count, total, False


@making
def with_room(rows, count):
    """Return these rows, or new ones if they have no room for so many."""
    return rows if rows.shape[0] >= count else np.empty((2 * count, rows.shape[1]), np.int64)


@kernel
def find_passages(data, offsets, recipe, index, rules, used, place, out, counts):
    """Write passages of suspects: suspect, source, start, end, start, end, equal words; return how many there are.

    `place` is where to begin: the suspect, the place of its fingerprints in `used`, and how many of its sources were
    compared before. The call moves it on, and returns when there is no more space or after a portion of work; it
    returns minus the space needed if even the first pair of documents finds none. counts: pairs compared, common
    fingerprints, pairs too repetitive to list all places.
    """
    sources = index.offsets.size - 1
    largest = longest_text(offsets[place[0] :])
    longest = largest_set(index.offsets)
    room = np.empty(max(working_space(largest), longest), np.uint64)
    hits = np.empty((longest, 2), np.int32)
    suspect = make_suspect(largest)
    units = suspect.units
    values, places = np.empty(largest, np.uint64), np.empty(largest, np.int64)
    seen = np.full(sources, -1, np.int64)
    candidates = np.empty(sources, np.int64)
    for source in range(sources):
        candidates[source] = source
    runs, passages = np.empty((256, 3), np.int64), np.empty((256, 5), np.int64)
    auto, ends = make_automaton(1), make_longest(largest)
    written, work = 0, 0
    while place[0] < offsets.size - 1:
        row = place[0]
        n = document_units(data, offsets[row], offsets[row + 1], recipe.units, room, units)
        if n < rules.length:
            place[0] += 1
            continue
        cursor = place[1]
        capped = 0
        tally = used[cursor:cursor]
        if rules.every:
            count = sources
        else:
            chosen = winnow(units, n, rules.k, rules.window, suspect.grams.hashes, values, places)
            sort_values(values, chosen)
            different = 0
            for f in range(chosen):
                if f == 0 or values[f] != values[f - 1]:
                    values[different] = values[f]
                    different += 1
            tally = used[cursor : cursor + different].copy()
            count, capped = sources_with(values[:different], index, rules.common, tally, seen, row, candidates)
            work += 8 * different
        enter_grams(units, n, rules.least, suspect.grams)
        suspect.filled[:] = False
        states = 0
        work += 4 * n
        while place[2] < count:
            if work > PORTION and (written > 0 or place[2] > 0):
                return written
            source = candidates[place[2]]
            begin = index.offsets[source]
            m = index.offsets[source + 1] - begin
            other = index.words[begin : begin + m]
            limit = STEPS * (n + m) + FREE_STEPS
            found, total, made = 0, 0, 0
            if m >= rules.length:
                enough = limit // (rules.least + RUN_STEPS)
                if not suspect.filled[LONGER]:
                    # a place is a step, and begins a run at most
                    found, total = find_grams(suspect.grams, n, other, m, rules.least, hits, enough)
                if suspect.filled[LONGER] or total > enough:
                    found, total = counted_runs(suspect, n, other, m, rules.least, hits, limit)
                work += m + max(total, 0)
            if total > 0:
                runs, passages = with_room(runs, total), with_room(passages, total)
                nexts = suspect.grams.nexts
                made, equal = shared_runs(units, n, nexts, other, m, hits[:found], rules.least, 1, rules.least, runs)
                if equal < rules.length:
                    made = 0
                else:
                    made = join_runs(runs[:made], n, m, rules.length, rules.gap, limit, passages)
            repetitive = total < 0 or made < 0
            if repetitive:
                enough = limit // (rules.length + RUN_STEPS)
                found, total, seeded = long_runs(suspect, n, other, begin, m, index.seeds, rules.length, hits, enough)
                made = 0
                if total > enough:
                    if states == 0:
                        auto = make_automaton(n)
                        states = build_automaton(units, n, auto)
                        work += 16 * n
                    made = longest_runs(auto, n, states, other, m, rules.length, ends)
                    work += limit
                elif total > 0:
                    runs = with_room(runs, total)
                    nexts = suspect.seeds.nexts if seeded else suspect.whole.nexts
                    size, step = seed_shape(rules.length) if seeded else (rules.length, 1)
                    made, _ = shared_runs(units, n, nexts, other, m, hits[:found], size, step, rules.length, runs)
                    made = longest_of(runs, made, n, rules.length, ends)
                    work += total
                if made > 0:
                    passages = with_room(passages, 2 * n // rules.length + 2)
                    made = cover(units, n, other, m, rules, ends, made, passages)
                    work += n
            if written + made > out.shape[0]:
                return written if written > 0 else -made
            if repetitive:
                counts[2] += 1
            for p in range(made):
                out[written, 0], out[written, 1] = row, source
                for part in range(5):
                    out[written, 2 + part] = passages[p, part]
                written += 1
            counts[0] += 1
            place[2] += 1
        for f in range(tally.size):
            used[cursor + f] = tally[f]
        counts[1] += capped
        place[0] += 1
        place[1] += tally.size
        place[2] = 0
    return written
