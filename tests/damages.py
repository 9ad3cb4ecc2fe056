"""Damages to the files that a run stores, one at a time, and what a later command may then do about them."""

import contextlib
import random

from likewise.errors import LikewiseError

MANY = 1 << 13
"""Bytes up to which every byte of a file is damaged in turn in a deep test; of a longer one as many places at random."""


def places(size, chance, deep):
    """Return where to flip a bit: everywhere in small files if the test is deep, otherwise at a few places."""
    if deep and size <= MANY:
        return range(size)
    count = min(size, MANY // 8 if deep else 2)
    edges = {0, size - 1} if deep else set()
    return sorted({*edges, *chance.sample(range(size), count)}) if size else ()


def damages(path, others, seed=1, deep=False):
    """Yield (name, content) for each damage to a file; the content None stands for a file that is gone.

    others: other files, one of which may be put in its place; the first is its namesake in another run.
    """
    content = path.read_bytes()
    chance = random.Random(f"{path.name} {seed}")
    yield "missing", None
    for size in {0, 1, len(content) // 2, len(content) - 1} if deep else {0, len(content) - 1}:
        if 0 <= size < len(content):
            yield f"cut to {size} bytes", content[:size]
    yield "longer", content + b"\0"
    for place in places(len(content), chance, deep):
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        yield f"flipped at {place}", bytes(changed)
    for other in others if deep else others[:1]:
        if other.is_file() and other.read_bytes() != content:
            yield f"replaced by {other}", other.read_bytes()


@contextlib.contextmanager
def damaged(path, content):
    """Put this content in the place of a file for a while."""
    before = path.read_bytes()
    try:
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        yield
    finally:
        path.write_bytes(before)


def verdict(call, expected, names):
    """Return "right" or "refused", or in words what was wrong.

    A refusal is an error of ours, one line that has one of the names in it and says what to do.
    """
    try:
        found = call()
    except LikewiseError as error:
        message = str(error)
        if "\n" in message or not any(str(name) in message for name in names):
            return f"refused without a name: {message}"
        if not any(words in message for words in ("run dedup again", "run it again", "choose another")):
            return f"refused without a way out: {message}"
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "right" if found == expected else "a wrong answer"
