"""Prints of made-up fingers: random minutiae, and impressions that are turned, shifted, jittered and incomplete."""

import numpy as np


def impression(random, finger, turn=None, shift=None, jitter=1.5, missing=0.15, spurious=4):
    """A print of a finger (x, y, angle): some minutiae missing, some new, all of them moved."""
    kept = finger[random.random(len(finger)) >= missing]
    new = np.column_stack([random.uniform(0, 300, (spurious, 2)), random.uniform(0, 2 * np.pi, spurious)])
    whole = np.concatenate([kept, new])
    turn = random.uniform(-np.pi, np.pi) if turn is None else turn
    shift = random.uniform(-100, 100, 2) if shift is None else np.asarray(shift)
    cosine, sine = np.cos(turn), np.sin(turn)
    places = (
        whole[:, :2] @ np.array([[cosine, sine], [-sine, cosine]]) + shift + random.normal(0, jitter, (len(whole), 2))
    )
    angle = np.mod(whole[:, 2] + turn + random.normal(0, 0.05, len(whole)), 2 * np.pi)
    return np.column_stack([places, angle])


def finger(random, minutiae=40):
    return np.column_stack([random.uniform(0, 300, (minutiae, 2)), random.uniform(0, 2 * np.pi, minutiae)])


def columns(prints, fingers=None):
    """Prints by name, as a dict of columns."""
    names = [name for name, rows in prints.items() for _ in rows]
    rows = np.concatenate(list(prints.values()))
    out = {"print": names, "x": rows[:, 0], "y": rows[:, 1], "angle": rows[:, 2]}
    return out if fingers is None else out | {"finger": [fingers[name] for name in names]}


def database(fingers=12, each=2, seed=5, **how):
    """Columns of prints f0_0, f0_1, f1_0, …"""
    random = np.random.default_rng(seed)
    prints, known = {}, {}
    for number in range(fingers):
        one = finger(random)
        for place in range(each):
            prints[f"f{number}_{place}"] = impression(random, one, **how)
            known[f"f{number}_{place}"] = f"f{number}"
    return columns(prints, known)


def csv_of(table):
    """Columns as the text of a CSV file."""
    rows = zip(*table.values(), strict=True)
    return "\n".join([",".join(table), *(",".join(map(str, row)) for row in rows)]) + "\n"
