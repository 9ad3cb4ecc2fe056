"""Machine code of kernels: kept in whole files, loaded without the compiler, from the wheel where that is possible."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from likewise import kernels
from likewise.kernels import cache, machine_code

ROOT = Path(__file__).parent.parent.parent
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

USE = """
import json, sys
import numpy as np
from numba.core import event
from likewise.kernels import cache
if len(sys.argv) > 1:
    cache.SHIPPED = cache.Path(sys.argv[1])
compiled = []
class Listener(event.Listener):
    def on_start(self, happening): compiled.append(happening.data["dispatcher"].py_func.__name__)
    def on_end(self, happening): pass
event.register("numba:compile", Listener())
from likewise.kernels.hashing import mix
from likewise.kernels.graph import components
labels = components(4, np.array([0, 2]), np.array([1, 3]))
print(json.dumps({"mix": int(mix(np.uint64(5))), "labels": np.asarray(labels).tolist(), "compiled": compiled,
    "ready": "numba.np.arraymath" in sys.modules, "shipped": cache.shipped() is not None,
    "folder": str(cache.cache_directory())}))
"""


def use(folder: Path, *words: str, **environment: str) -> dict[str, object]:
    """Two kernels in a process of its own: their results, and what had to be compiled."""
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(folder), **environment}
    command = [sys.executable, "-c", USE, *words]
    done = subprocess.run(command, env=surroundings, stdout=subprocess.PIPE, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object]]:
    """A cache that two kernels were compiled into, and their results."""
    folder = tmp_path_factory.mktemp("cache")
    return folder, use(folder)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same kernels compiled for the baseline, as a wheel carries them."""
    folder = tmp_path_factory.mktemp("baseline")
    tool = ROOT / "tools" / "machine_code.py"
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("machine_code", tool)
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    try:
        spec.loader.exec_module(hook)
        hook.compile_into(folder / "compiled", folder / "cache", "-c", USE)
    finally:
        sys.path[:] = before
    return folder / "compiled"


def test_a_second_process_compiles_nothing_and_leaves_the_compiler_alone(compiled) -> None:
    folder, first = compiled
    assert {"mix", "components"} <= set(first["compiled"])
    again = use(folder)
    assert again["compiled"] == []
    assert not again["ready"], "loading machine code does not prepare Numba to compile"
    assert {name: again[name] for name in ("mix", "labels")} == {name: first[name] for name in ("mix", "labels")}


def test_damaged_code_is_compiled_again(compiled, tmp_path) -> None:
    folder, first = compiled
    files = sorted(Path(first["folder"]).glob(f"*{cache.SUFFIX}"))
    assert files
    for file in files:
        copy = tmp_path / file.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        content = bytearray(file.read_bytes())
        inside = cache.CHECK + struct.calcsize(cache.LENGTH) + 100
        content[inside] ^= 1
        copy.write_bytes(content if file.name.startswith("hashing") else content[:inside])
    again = use(tmp_path)
    assert {"mix", "components"} <= set(again["compiled"])
    assert again["labels"] == first["labels"]
    assert use(tmp_path)["compiled"] == []


@pytest.mark.skipif(bool(numba.config.BOUNDSCHECK), reason="code that checks its bounds is no wheel's")
def test_code_of_the_wheel_is_used_where_it_fits(compiled, wheel, tmp_path) -> None:
    _, first = compiled
    used = use(tmp_path, str(wheel))
    assert used["shipped"]
    assert used["compiled"] == []
    assert not list(Path(used["folder"]).glob(f"*{cache.SUFFIX}")), "nothing is kept twice"
    assert {name: used[name] for name in ("mix", "labels")} == {name: first[name] for name in ("mix", "labels")}


@pytest.mark.parametrize("other", ["numba", "sources", "python", "native", "checked"])
def test_code_of_another_wheel_is_left_aside(wheel, tmp_path, monkeypatch, other) -> None:
    target = json.loads((wheel / cache.TARGET).read_text())
    assert target["for"] == cache.made_for()
    monkeypatch.setattr(cache, "SHIPPED", tmp_path)
    monkeypatch.setattr(cache.config, "BOUNDSCHECK", None)
    find = cache.shipped.__wrapped__
    assert find() is None, "there is none"
    (tmp_path / cache.TARGET).write_text(json.dumps(target))
    assert find() == (tmp_path, tuple(target["processor"]))
    if other in ("sources", "numba", "python"):
        target["for"][("sources", "numba", "python").index(other)] += "x"
        (tmp_path / cache.TARGET).write_text(json.dumps(target))
    elif other == "native":
        monkeypatch.setenv(cache.NATIVE, "1")
    else:
        monkeypatch.setattr(cache.config, "BOUNDSCHECK", 1)
    assert find() is None


def test_an_older_processor_compiles_for_itself(wheel, monkeypatch) -> None:
    monkeypatch.setattr(cache, "SHIPPED", wheel)
    monkeypatch.setattr(cache.config, "BOUNDSCHECK", None)
    processor = json.loads((wheel / cache.TARGET).read_text())["processor"][1]
    assert processor in cache.BASELINES.values()
    needed = cache.NEEDED.get(processor, ())
    have = dict.fromkeys((*needed, "more"), True)
    monkeypatch.setattr(cache.binding, "get_host_cpu_features", lambda: have)
    assert cache.shipped.__wrapped__() is not None
    for feature in needed:
        monkeypatch.setattr(cache.binding, "get_host_cpu_features", lambda without=feature: {**have, without: False})
        assert cache.shipped.__wrapped__() is None, feature


ALONE = """
import json, sys
import numpy as np
from likewise.kernels import graph, hashing
answers = [int(hashing.mix(np.uint64(5))), np.asarray(graph.components(4, np.array([0, 2]), np.array([1, 3]))).tolist()]
loaded = "numba" in sys.modules
import numba
answers.append(int(numba.njit(lambda x: hashing.mix(x))(np.uint64(5))))
print(json.dumps([*answers, loaded]))
"""


def test_compiled_kernels_need_no_compiler_and_leave_it_as_it_is(compiled) -> None:
    folder, first = compiled
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", ALONE], env=surroundings, stdout=subprocess.PIPE, check=True)
    checked = bool(cache.config.BOUNDSCHECK)
    assert json.loads(done.stdout) == [first["mix"], first["labels"], first["mix"], checked]


class Pair(NamedTuple):
    """Two values, of one type or of two."""

    a: Any
    b: Any


NUMBERS = [np.dtype(kind) for kind in ("?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d")]
VALUES = [
    *(0, -1, 2**31, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), True, 1.5, None, (), (1, 2), (1, 2.0), ((1,), np.uint8(1))),
    *(kind.type(1) for kind in NUMBERS),
    *(np.zeros(3, kind) for kind in NUMBERS),
    *(np.zeros((4, 6)), np.zeros((4, 6), order="F"), np.zeros((4, 6))[::2], np.zeros(6)[::2], np.zeros((0, 3))),
    *(np.frombuffer(b"12345678"), (np.frombuffer(b"1", np.uint8), np.zeros(1, np.uint8))),
    *(Pair(1, 2), Pair(1, 2.0), Pair(np.zeros(1), Pair(None, np.zeros(1))), Pair(np.zeros(1), np.frombuffer(b"8" * 8))),
]
ODD = np.zeros(9, "u1")[1:].view("u8")
OTHERS = ["a", b"a", [1], {}, len, 2**64, np.zeros(1, ">i4"), np.zeros(1, "U1"), ODD, (1, "a")]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_types_have_the_names_that_numba_gives_them(value: Any) -> None:
    assert machine_code.type_name(value) == numba.typeof(value).name


def test_values_that_are_told_apart_have_different_names_and_others_have_none() -> None:
    assert [machine_code.type_name(value) for value in OTHERS] == [None] * len(OTHERS)
    known: dict[Any, str | None] = {}
    for value in (*VALUES, *OTHERS):
        name = machine_code.type_name(value)
        assert known.setdefault(machine_code.kind_of(value), name) == name, value


def test_code_that_lacks_something_is_not_linked() -> None:
    code = machine_code.MachineCode(b"", "wrapper", [], ["no_such_function_anywhere"])
    assert machine_code.entry("none", code) is None


def test_a_folder_of_somebody_else_is_not_trusted(tmp_path, monkeypatch) -> None:
    """Where anyone may write, anyone could have left code there to be run."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    assert kernels.cache_directory.__wrapped__() is not None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    (tmp_path / "likewise-12345").mkdir()
    assert kernels.cache_directory.__wrapped__() is None


JOBS = """
import tempfile
import numpy as np
import likewise

words = [f"word{i}" for i in range(60)]
texts = [" ".join(words), " ".join(words[1:]), " ".join(words[:30]), "naïve 中文", ""]
lines = ["a b c d e f\\none two three four five", "A B C D E F\\nx", "six seven eight nine ten\\na b c d e f"]
for shingle in ("words:3", "chars:7", "tokens", "stopwords:en", likewise.Words(3, bag=True)):
    for method in ("lsh", "exact"):
        likewise.dedup(texts, shingle=shingle, method=method)
likewise.dedup(["http://a.b/c/d", "http://x.b/c/d"], shingle=likewise.Urls())
likewise.dedup(texts, measure="containment", threshold=0.9)
for unit in ("lines", "paragraphs"):
    likewise.dedup(lines, unit=unit, min_left=3)
for action in ("drop", "cut", "report"):
    likewise.decontaminate(texts + lines, tests=[texts[0], " ".join(words[3:12])], action=action)
for measure in ("jaccard", "containment", "cosine", "dice"):
    likewise.pairs(texts, texts[:2], measure=measure, k=1)
likewise.passages(texts, texts)
draw = np.random.default_rng(0)
for count in (300, 6000):
    rows = draw.standard_normal((count, 32)).astype(np.float32)
    for measure, within in (("angle", 30), ("l2", 3), ("l1", 9)):
        likewise.nearest(rows, 5, measure=measure, recall=0.9)
        likewise.nearest(rows, 5, measure=measure, other=rows[:50])
        likewise.dedup(rows, measure=measure, within=within)
likewise.nearest(draw.integers(0, 2**63, 6000).astype(np.uint64), 3, measure="hamming")
with tempfile.TemporaryDirectory() as folder:
    for place, shingle in enumerate(("words:5", "chars:5", "stopwords:en", "tokens")):
        with likewise.Index.create(f"{folder}/{place}", shingle=shingle) as index:
            index.add(["a", "b"], texts[:2])
            index.query(texts[0])
            index.query(texts)
names = [f"{first} Lee{i}" for first in ("Ann", "Bo", "Zoe", "Bill", "William") for i in range(100)]
people = {"name": names, "phone": [f"650-555-{i % 97:04d}" for i in range(500)], "text": texts[:3] * 166 + texts[:2]}
earlier = likewise.link(people)
likewise.link({name: values[:50] for name, values in people.items()}, against=earlier)
likewise.link(people, {name: values[::2] for name, values in people.items()})
likewise.link({"name": names}, {"name": names[::2]})
likewise.recommend({"a": words, "b": words[1:]})
likewise.mirrors([f"http://{host}/docs/{word}.html" for host in ("a.org/x", "b.net") for word in words])
"""


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_what_is_warmed_up_is_all_that_jobs_need(tmp_path) -> None:
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "likewise", "warmup"], env=surroundings, check=True)
    before = {file.name for file in tmp_path.rglob("*.code")}
    subprocess.run([sys.executable, "-W", "ignore", "-c", JOBS], env=surroundings, check=True)
    assert {file.name for file in tmp_path.rglob("*.code")} == before
    assert len(before) > 400
