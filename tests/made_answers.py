"""Inputs of representative runs, made from a seed, and the digest of an answer."""

import hashlib
import json
import random

import numpy as np


def documents(count=1500, seed=1):
    """Random documents of 20 to 120 words; a fifth of them have a near copy, a few an identical one."""
    chance = random.Random(seed)
    words = [f"w{number}" for number in range(2500)]
    texts = [" ".join(chance.choices(words, k=chance.randrange(20, 120))) for _ in range(count)]
    for text in list(texts[: count // 5]):
        changed = text.split()
        changed[chance.randrange(len(changed))] = "changed"
        texts.append(" ".join(changed))
    texts += texts[:20]
    chance.shuffle(texts)
    return texts


def baskets(count=2000, seed=2):
    """Sets of 3 to 12 of 400 tokens, the low numbers frequent."""
    chance = random.Random(seed)
    return [[f"t{int(chance.paretovariate(0.7)) % 400}" for _ in range(chance.randrange(3, 13))] for _ in range(count)]


def vectors(count=4000, width=32, seed=3):
    """Integer vectors in clusters, so that distances are exact in double precision."""
    source = np.random.default_rng(seed)
    centres = source.integers(-50, 50, (count // 8, width))
    return (centres[np.arange(count) % len(centres)] + source.integers(-3, 4, (count, width))).astype(np.float64)


def bits(count=3000, seed=4):
    """64-bit codes, some of them a few bits apart."""
    source = np.random.default_rng(seed)
    codes = source.integers(0, 2**63, count, dtype=np.uint64)
    flips = np.uint64(1) << source.integers(0, 64, count // 3, dtype=np.uint64)
    return np.concatenate([codes, codes[: count // 3] ^ flips])


def pages(count=60, seed=5):
    """Articles of function words and names, each on three pages with other furniture."""
    chance = random.Random(seed)
    small = [
        "the",
        "of",
        "and",
        "to",
        "a",
        "in",
        "that",
        "is",
        "was",
        "he",
        "for",
        "it",
        "with",
        "as",
        "his",
        "on",
        "be",
        "at",
        "by",
        "i",
    ]
    found = []
    for _ in range(count):
        article = " ".join(
            chance.choice(small) if chance.random() < 0.45 else f"name{chance.randrange(5000)}" for _ in range(150)
        )
        for _ in range(3):
            menu = " ".join(f"Menu{chance.randrange(400)}" for _ in range(30))
            found.append(f"{menu} {article} {menu[::-1]}")
    chance.shuffle(found)
    return found


def ratings(users=120, items=200, seed=6):
    """Triples of user, item and one to five stars; groups of users share favourites."""
    chance = random.Random(seed)
    rows = []
    for user in range(users):
        favourites = random.Random(user % 12).sample(range(items), 25)
        for item in dict.fromkeys([*chance.sample(favourites, 18), *chance.sample(range(items), 6)]):
            rows.append((f"u{user}", f"i{item}", chance.randint(4, 5) if item in favourites else chance.randint(1, 5)))
    return rows


def digest(table, columns):
    """The SHA-256 of these columns, row by row; floats by their shortest exact form."""
    rows = [[row[name] for name in columns] for row in table.to_pylist()]
    return hashlib.sha256(json.dumps(rows, default=str).encode()).hexdigest()[:16]
