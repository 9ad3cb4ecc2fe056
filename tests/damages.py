"""Damages to the files that a run stores, one at a time, and what a later command may then do about them."""

import contextlib
import random

from likewise.errors import LikewiseError

SMALL = 1 << 12
"""Bytes up to which a deep test damages every byte of a file in turn; in a longer one it takes places at random."""


def damages(path, others, seed=1, deep=False, flips=256):
    """Yield (name, content) for each damage to a file; the content None stands for a file that is gone.

    others: other files, one of which may be put in its place; the first is its namesake in another run. deep: several
    other files, more lengths, and a bit of every byte of small files, or at `flips` places of large ones.
    """
    content = path.read_bytes()
    chance = random.Random(f"{path.name} {seed}")
    size = len(content)
    yield "missing", None
    for length in sorted({0, 1, size // 2, size - 1} if deep else {size - 1}):
        if 0 <= length < size:
            yield f"cut to {length} bytes", content[:length]
    yield "longer", content + b"\0"
    every = deep and size <= min(SMALL, 16 * flips)
    for place in range(size) if every else sorted(chance.sample(range(size), min(size, flips if deep else 1))):
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        yield f"flipped at {place}", bytes(changed)
    more = chance.sample(others[1:], min(len(others[1:]), 8)) if deep else []
    for other in [*others[:1], *more]:
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
