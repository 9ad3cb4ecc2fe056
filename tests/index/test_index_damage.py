"""Damaged indexes: every question has the right answer or a DamagedError, and none ends the process."""

import os
import random
import shutil
import signal
import sys
import traceback
from collections import Counter
from functools import cache, partial
from itertools import cycle, islice

import numpy as np
import pytest

from likewise import Index
from likewise.errors import DamagedError
from likewise.index.lmdb_tree import check_metas
from likewise.index.redis_server import RedisAddress, RedisKeys, RedisServer

SOAK = [pytest.mark.soak, pytest.mark.timeout(3600)]
TIMES = [pytest.param(11, id="quick"), pytest.param(1000, marks=SOAK, id="deep")]
"""Damages of a file, each kind equally often; those of a server are as many."""
KINDS = ["bit", "bits", "cut", "cut page", "zeros", "noise", "swap", "copy", "longer", "meta", "field"]
RIGHT, REFUSED, WRONG, FAULT = 0, 3, 4, 5
WORDS = {RIGHT: "right", REFUSED: "refused", WRONG: "wrong", FAULT: "fault"}
PAGE = 4096


@cache
def texts(count, seed=0):
    """Documents, some of which are much like another."""
    found = []
    for number in range(count):
        chance = random.Random(f"{seed} {number // 3}")
        words = [f"w{chance.randrange(300)}" for _ in range(40)]
        words[number % 3 * 5] = f"x{number}"
        found.append(" ".join(words))
    return found


def made(place, kind):
    """Make an index that has been changed a few times."""
    if kind == "vectors":
        rows = np.random.default_rng(1).normal(size=(400, 12))
        with Index.create(place, measure="l2") as index:
            for first in range(0, 400, 100):
                index.add([f"v{i}" for i in range(first, first + 100)], rows[first : first + 100])
            index.remove(["v7", "v311"])
        return
    given = texts(120)
    with Index.create(place, shingle="words:2", threshold=0.3, containment=True, texts=True) as index:
        for first in range(0, 120, 30):
            index.add([f"t{i}" for i in range(first, first + 30)], given[first : first + 30])
        index.remove(["t7", "t111"])


def answers(place, kind):
    """Everything that can be asked of an index."""
    with Index.open(place, threads=1) as index:
        if kind == "vectors":
            asked = np.random.default_rng(1).normal(size=(400, 12))[::7] + 0.01
            return [
                len(index), index.query(asked, 5).to_pylist(), index.get(["v1", "v300"]).tolist(), "v7" in index,
            ]  # fmt: skip
        asked = texts(120)[::5]
        found = [index.query(asked, 5, measure=measure).to_pylist() for measure in ("jaccard", "containment")]
        return [len(index), found, index.get([f"t{i}" for i in range(0, 110, 9)]), "t7" in index, "t8" in index]


def changed(place, kind):
    """Change an index, and ask it again."""
    with Index.open(place, threads=1) as index:
        more = np.ones((3, 12)) if kind == "vectors" else texts(3, 1000)
        index.add(["new0", "new1", "new2"], more)
        index.remove(["v10" if kind == "vectors" else "t10"])
        index.compact()
    return answers(place, kind)


def judged(act, truth):
    """Ask; return the code of how that ended."""
    try:
        return RIGHT if act() == truth else WRONG
    except DamagedError:
        return REFUSED
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        return FAULT


def ended(*asked):
    """Ask one or two questions (act, truth) in a process of its own; return how each ended, a signal ends both."""
    child = os.fork()
    if child == 0:
        code = 255
        try:
            codes = [judged(act, truth) for act, truth in asked]
            code = sum(one << 3 * place for place, one in enumerate(codes))
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return [signal.Signals(os.WTERMSIG(status)).name] * len(asked)
    code = os.WEXITSTATUS(status)
    return [WORDS.get(code >> 3 * place & 7, str(code)) for place in range(len(asked))]


def damaged(data, kind, chance):
    """Return the bytes of a database with one damage."""
    data, pages = bytearray(data), len(data) // PAGE
    at = chance.randrange(pages) * PAGE
    if kind == "bit":
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == "bits":
        for _ in range(20):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif kind == "cut":
        del data[chance.randrange(len(data)) :]
    elif kind == "cut page":
        del data[at:]
    elif kind == "zeros":
        data[at : at + PAGE] = bytes(PAGE)
    elif kind == "noise":
        size = chance.choice([8, 64, PAGE])
        data[at : at + size] = chance.randbytes(size)
    elif kind in ("swap", "copy"):
        other = chance.randrange(pages) * PAGE
        first, second = bytes(data[at : at + PAGE]), bytes(data[other : other + PAGE])
        data[at : at + PAGE] = second
        if kind == "swap":
            data[other : other + PAGE] = first
    elif kind == "longer":
        data += chance.randbytes(chance.randrange(1, 3 * PAGE))
    elif kind == "meta":
        data[chance.randrange(2) * PAGE + chance.randrange(152)] ^= 1 << chance.randrange(8)
    else:  # what stands at the beginning of a page, or of a node in it
        data[at + chance.randrange(64)] = chance.randrange(256)
    return bytes(data)


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("kind", ["texts", "vectors"])
def test_no_damage_of_a_file_gives_a_wrong_answer(tmp_path, kind, times):
    """Of 300 damages 26 ended the process by SIGBUS, and 4 gave wrong answers."""
    made(tmp_path / "index", kind)
    truth = answers(tmp_path / "index", kind)
    whole = (tmp_path / "index" / "1" / "data.mdb").read_bytes()
    shutil.copytree(tmp_path / "index", tmp_path / "changed")
    after = changed(tmp_path / "changed", kind)
    chance, seen = random.Random(32), Counter()
    for how in islice(cycle(KINDS), times):
        content = damaged(whole, how, chance)
        folder = tmp_path / "bad"
        shutil.copytree(tmp_path / "index", folder)
        (folder / "1" / "data.mdb").write_bytes(content)
        ends = ended((partial(answers, folder, kind), truth), (partial(changed, folder, kind), after))
        for end, what in zip(ends, (how, how + ", changed"), strict=True):
            seen[end, what] += 1
        shutil.rmtree(folder)
    bad = {f"{end} after {how}": count for (end, how), count in seen.items() if end not in ("right", "refused")}
    assert not bad
    ends = Counter()
    for (end, _), count in seen.items():
        ends[end] += count
    assert ends["right"] > times / 10, "damage of pages that are not used"
    assert ends["refused"] > times / 4


@pytest.mark.parametrize("times", TIMES)
def test_no_damage_on_a_server_gives_a_wrong_answer(redis_url, times):
    made(redis_url, "texts")
    truth = answers(redis_url, "texts")
    address = RedisAddress.of("test", redis_url)
    client = RedisServer(address).client
    keys = sorted(client.keys(RedisKeys(address.name).prefix.replace("{", "[{]") + "*"))
    assert len(keys) > 10
    saved = {key: client.dump(key) for key in keys}
    strings = [key for key in keys if client.type(key) == b"string"]
    chance, seen = random.Random(33), Counter()
    for kind in islice(cycle(["bit", "cut", "gone", "other", "longer"]), times):
        key = chance.choice(strings)
        value = bytearray(client.get(key))
        if kind == "bit" and value:
            value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
        elif kind == "cut":
            del value[chance.randrange(len(value) + 1) :]
        elif kind == "longer":
            value += b"x"
        elif kind == "other":
            value = bytearray(client.get(chance.choice(strings)))
        client.delete(key) if kind == "gone" else client.set(key, bytes(value))
        seen[ended((lambda: answers(redis_url, "texts"), truth))[0], kind] += 1
        client.restore(key, 0, saved[key], replace=True)
    bad = {f"{end} after {how}": count for (end, how), count in seen.items() if end not in ("right", "refused")}
    assert not bad
    assert answers(redis_url, "texts") == truth


def test_a_file_that_becomes_shorter_while_it_is_open(tmp_path):
    made(tmp_path / "index", "texts")

    def act():
        with Index.open(tmp_path / "index", threads=1) as index:
            asked = texts(120)[::5]
            index.query(asked)
            os.truncate(tmp_path / "index" / "1" / "data.mdb", 3 * PAGE)
            index.query(asked)

    assert ended((act, None)) == ["refused"]


def test_what_is_damaged_is_not_made_sound_by_a_merge(tmp_path):
    """A merge would have written damaged tables with new checksums."""
    made(tmp_path / "index", "texts")
    path = tmp_path / "index" / "1" / "data.mdb"
    with Index.open(tmp_path / "index") as index, index._store.read() as snapshot:
        values = {name: bytes(snapshot.get(name)) for name in snapshot.names() if name.endswith("/texts")}
    some = max(values.values(), key=len)
    whole = path.read_bytes()
    other = bytes([some[100] ^ 1]) + some[101:200]
    path.write_bytes(whole.replace(some[100:200], other))  # also in pages that are not used any more
    with Index.open(tmp_path / "index") as index:
        index.query(texts(3))  # reads no documents
        with pytest.raises(DamagedError, match="run index check"):
            index.compact()
        with pytest.raises(DamagedError, match="damaged"):
            index.get([f"t{i}" for i in range(120) if i not in (7, 111)])
        assert index.check(repair=True).lost > 0
        index.compact()


def test_what_is_not_a_database_is_not_opened(tmp_path):
    path = tmp_path / "data.mdb"
    for content in (b"x", b"x" * 100_000, bytes(100_000)):
        path.write_bytes(content)
        with pytest.raises(DamagedError, match=r"data\.mdb is damaged or not a database of likewise"):
            check_metas(path)
