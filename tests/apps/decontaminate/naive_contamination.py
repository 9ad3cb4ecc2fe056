"""The oracle of `decontaminate`: every window of every item looked for in every document, with lists of words."""

from collections import Counter, defaultdict

from likewise import Words

SHORTEST, LONG_RUN, MOST_PLACES, MOST_IN_ITEM, FEW_WORDS = 5, 25, 100, 4, 13


def words(text):
    return Words(1).units(text)


def run_from(document, item, i, j):
    """The run that has document[i] and item[j]: its first word in both, and its length."""
    low = 0
    while low < min(i, j) and document[i - low - 1] == item[j - low - 1]:
        low += 1
    high = 0
    while i + high < len(document) and j + high < len(item) and document[i + high] == item[j + high]:
        high += 1
    return i - low, j - low, low + high


def most_shifts(corpus, items, length):
    """How many runs with one item cover a place of a document, at most: more than 8 are not all found."""
    most = 0
    for document in map(words, corpus):
        for item in map(words, items):
            runs = set()
            for i in range(len(document) - length + 1):
                for j in range(len(item) - length + 1):
                    if document[i : i + length] == item[j : j + length]:
                        runs.add(run_from(document, item, i, j))
            covered = Counter(place for at, _, size in runs for place in range(at, at + size))
            most = max(most, max(covered.values(), default=0))
    return most


def windows(some, k):
    return [tuple(some[i : i + k]) for i in range(len(some) - k + 1)]


def hits(corpus, items, length=8, share=0.5, common=None, rare=3):
    """The set of (document, item, first word, first word in the item, words, why, share) that count."""
    documents, items = [words(one) for one in corpus], [words(one) for one in items]
    limit = common if common is not None else min(1000, max(10, len(corpus) // 1000))
    places = defaultdict(list)
    for number, item in enumerate(items):
        mine = Counter()
        for place, window in enumerate(windows(item, length)):
            mine[window] += 1
            if mine[window] <= MOST_IN_ITEM and item not in items[:number]:
                places[window].append((number, place))
    places = {window: where for window, where in places.items() if len(where) <= MOST_PLACES}
    frequency = Counter(window for one in documents for window in set(windows(one, length)))
    found = set()
    for d, document in enumerate(documents):
        runs = defaultdict(set)
        for i, window in enumerate(windows(document, length)):
            for number, place in places.get(window, ()):
                at, item_at, size = run_from(document, items[number], i, place)
                inside = windows(items[number][item_at : item_at + size], length)
                if any(frequency[one] <= limit for one in inside if one in places):
                    runs[number].add((at, item_at, size))
        for number, mine in runs.items():
            inside = [window for _, at, size in mine for window in windows(items[number][at : at + size], length)]
            told = min(frequency[window] for window in inside if window in places) <= rare
            covered = len({j for _, item_at, size in mine for j in range(item_at, item_at + size)})
            total = len(items[number])
            for at, item_at, size in mine:
                reasons = {
                    "whole": size == total,
                    "most": covered >= share * total and (told or covered >= FEW_WORDS),
                    "long": size >= LONG_RUN,
                }
                why = next((reason for reason, holds in reasons.items() if holds), None)
                if why:
                    found.add((d, number, at, item_at, size, why, covered / total))
    for number, item in enumerate(items):
        if SHORTEST <= len(item) < length and item not in items[:number]:
            having = [d for d, document in enumerate(documents) if tuple(item) in windows(document, len(item))]
            for d in having if len(having) <= rare else ():
                for i, window in enumerate(windows(documents[d], len(item))):
                    if window == tuple(item):
                        found.add((d, number, i, 0, len(item), "short", 1.0))
    return found
