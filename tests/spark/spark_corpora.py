"""Small corpora that a search finds hard: copies, near-copies, templates, several scripts, empty documents."""

import random

import pyarrow as pa

WORDS = [f"w{i}" for i in range(3000)]
ALPHABETS = ["abcdefghij", "абвгдежзик", "αβγδεζηθικ", "日本語文章検索比較類似", "ابتثجحخدذر"]


def documents(count, seed=1, words=WORDS):
    """Documents of which a third repeat an earlier one, wholly or nearly, and some are blank."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        chance = draw.random()
        if found and chance < 0.15:
            found.append(draw.choice(found))
        elif found and chance < 0.45:
            changed = draw.choice(found).split()
            for _ in range(draw.randint(1, 4) if changed else 0):
                changed[draw.randrange(len(changed))] = draw.choice(words)
            found.append(("  " if chance < 0.17 else " ").join(changed))
        elif chance < 0.47:
            found.append(" " * draw.randint(0, 3))
        else:
            found.append(" ".join(draw.choices(words, k=draw.randint(20, 120))))
    return found


def multilingual(count, seed=2):
    """Documents whose words are of several scripts."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(letters, k=4)) for letters in ALPHABETS for _ in range(400)]
    return documents(count, seed, words)


def templates(count, seed=3, filled=3):
    """Documents of three templates, each with a few words of its own: buckets of hundreds."""
    draw = random.Random(seed)
    frames = [draw.choices(WORDS, k=60) for _ in range(3)]
    found = []
    for number in range(count):
        words = list(frames[number % 3])
        for _ in range(draw.randint(0, filled)):
            words[draw.randrange(len(words))] = draw.choice(WORDS)
        found.append(" ".join(words))
    return found


def table(texts, seed=5):
    """A table with ids that are no row numbers, and scores with ties."""
    draw = random.Random(seed)
    ids = [f"doc-{number:05d}" for number in range(len(texts))]
    draw.shuffle(ids)
    return pa.table({"name": ids, "text": texts, "score": [draw.randrange(5) for _ in texts]})


def settled(found):
    """The rows of a table, Arrow or Spark, in the order of their values."""
    arrow = found.toArrow() if hasattr(found, "toArrow") else found
    return arrow.sort_by([(name, "ascending") for name in arrow.column_names]).to_pylist()
