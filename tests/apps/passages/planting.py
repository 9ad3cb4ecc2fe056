"""Documents with copied passages whose places are known, and shared runs by their definition."""

import random

GLUE = [" ", "  ", "\n", ", ", " — ", ". ", " 😀 ", "\u3000", '" ']


def naive_runs(a, b, least):
    """(i, j, size) of all runs of at least `least` equal words that cannot be made longer."""
    found = []
    for i in range(len(a)):
        for j in range(len(b)):
            if i and j and a[i - 1] == b[j - 1]:
                continue
            size = 0
            while i + size < len(a) and j + size < len(b) and a[i + size] == b[j + size]:
                size += 1
            if size >= least:
                found.append((i, j, size))
    return found


class Writer:
    """Writes words with anything between them, and records the characters at which each starts and ends."""

    def __init__(self, rng):
        self.rng, self.text, self.places = rng, rng.choice(["", "«", "\n"]), []

    def write(self, word):
        shape = self.rng.choice([str, str.upper, str.title]) if word.isascii() else str
        self.places.append((len(self.text), len(self.text) + len(word)))
        self.text += shape(word) + self.rng.choice(GLUE)


def word_of(kind, number):
    """A word that no other kind or number gives: plain, accented, with a combining mark, or one ideograph."""
    form = (
        f"{kind}{number}",
        f"é{kind}{number}ñ",
        f"{kind}e\u0301{number}",
        chr(0x4E00 + 40 * number + ord(kind) % 40),
    )
    return form[number % 4]


def planted(seed, sources=3, passages=4, changed=False):
    """Return (suspect, sources, truth): truth lists (source, start, end, start, end, length, equal)."""
    rng = random.Random(seed)
    originals = []
    for source in range(sources):
        writer = Writer(rng)
        for number in range(rng.randrange(30, 60)):
            writer.write(word_of("abcdefgh"[source], number))
        originals.append(writer)
    suspect, truth, filler = Writer(rng), [], 0

    def fill(count):
        nonlocal filler
        for _ in range(count):
            suspect.write(word_of("x", filler))
            filler += 1

    fill(rng.randrange(0, 9))
    for _ in range(passages):
        source = rng.randrange(sources)
        size = rng.randrange(8, 25)
        start = rng.randrange(0, len(originals[source].places) - size + 1)
        first = len(suspect.places)
        equal = size
        for number in range(size):
            if changed and number >= 8 and number % 4 == 0 and size - number > 3:
                fill(1)
                equal -= 1
            else:
                suspect.write(word_of("abcdefgh"[source], start + number))
        places, theirs = suspect.places[first:], originals[source].places[start : start + size]
        truth.append((source, places[0][0], places[-1][1], theirs[0][0], theirs[-1][1], size, equal))
        fill(rng.randrange(6, 12))
    return suspect.text, [writer.text for writer in originals], sorted(truth)
