"""run.json of every command: one schema, the same keys, snake case, and a page that names every key."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.base.runlog import SCHEMA
from likewise.cli import COMMANDS
from likewise.io.seals import read_sealed
from made_inputs import write_for_applications

Run = Callable[..., Any]
DOCS = Path(__file__).parent.parent.parent / "docs"
RUN_SCHEMA = json.loads((DOCS / "run.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(RUN_SCHEMA)
SNAKE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
USERS_NAMES = ("fields", "points", "columns", "languages")
"""Objects whose keys are the user's columns, or codes of languages."""

WORDS = [f"word{i}" for i in range(40)]
CALLS: dict[str, list[str]] = {
    "dedup": ["dedup docs.parquet --out run"],
    "dedup by hashing": ["dedup docs.parquet --method lsh --certify 5 --ignore-common 0.9 --out run"],
    "dedup of broken rows": ["dedup broken.jsonl --on-error skip --out run"],
    "dedup of stop words": ["dedup docs.parquet --shingle stopwords:auto --out run"],
    "dedup against": ["dedup docs.parquet --out first", "dedup more.parquet --against first --out run"],
    "dedup of lines": ["dedup docs.parquet --unit lines --min-words 2 --out run"],
    "dedup of vectors": ["dedup vectors.npy --measure l2 --within 0.5 --method lsh --certify 5 --out run"],
    "rethreshold": ["dedup docs.parquet --out first", "rethreshold first --threshold 0.9 --out run"],
    "pairs": ["pairs docs.parquet --with more.parquet --out run"],
    "pairs by hashing": ["pairs docs.parquet --method lsh -k 2 --out run"],
    "pairs by another measure": ["pairs docs.parquet --measure containment --explain --out run"],
    "pairs of vectors": ["pairs vectors.npy --measure l2 --within 0.5 --method lsh --out run"],
    "nearest": ["nearest vectors.npy --with vectors.npy -k 2 --out run"],
    "nearest by hashing": ["nearest vectors.npy -k 2 --method lsh --out run"],
    "index query": [
        "index create index",
        "index add index docs.parquet",
        "index query index more.parquet -k 2 --out run",
    ],
    "link": ["link people.csv others.csv --out run"],
    "link again": ["link people.csv others.csv --scored --out first", "link --from first --threshold 5 --out run"],
    "passages": ["passages docs.parquet --sources more.parquet --out run"],
    "decontaminate": ["decontaminate docs.parquet --tests more.parquet --out run"],
    "articles": ["articles docs.parquet --shingle stopwords:en --out run"],
    "mirrors": ["mirrors urls.txt --out run"],
    "recommend": ["recommend ratings.csv --out run"],
    "fingerprints": ["fingerprints prints.csv --out run"],
}


@pytest.fixture
def run(typed: Run, tmp_path: Path) -> Run:
    """The command line, in a folder with an input for every command."""
    chance = random.Random(1)
    texts = [" ".join(["the", *chance.choices(WORDS, k=25), "and", *chance.choices(WORDS, k=9)]) for _ in range(30)]
    texts += [text + " more" for text in texts[:9]] + texts[:3]
    pq.write_table(pa.table({"text": texts}), tmp_path / "docs.parquet")
    pq.write_table(pa.table({"text": [*texts[:5], "something new"]}), tmp_path / "more.parquet")
    lines = [json.dumps({"text": text}) for text in texts]
    (tmp_path / "broken.jsonl").write_text("\n".join([*lines[:4], "{broken", *lines[4:]]) + "\n")
    write_for_applications(tmp_path)
    return typed


def keys(value: Any) -> Iterator[str]:
    """All keys of objects, but for those that are the user's names."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from keys(list(one.values()) if key in USERS_NAMES and isinstance(one, dict) else one)
    elif isinstance(value, list):
        for one in value:
            yield from keys(one)


def faults(stats: dict[str, Any]) -> list[str]:
    """What the schema does not allow."""
    return [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(stats)]


@pytest.mark.parametrize("name", CALLS)
def test_every_command_writes_the_one_schema(run: Run, tmp_path: Path, name: str) -> None:
    for words in CALLS[name]:
        done = run(*words.split())
        assert done.returncode == 0, done.stderr
    stats = json.loads((tmp_path / "run" / "run.json").read_text())
    assert faults(stats) == []
    assert list(stats) == [*RUN_SCHEMA["required"], "checksum"]
    assert stats["likewise"] == likewise.__version__
    assert stats["schema"] == SCHEMA == RUN_SCHEMA["properties"]["schema"]["const"]
    assert stats["command"] == name.split()[0]
    assert stats["inputs"]
    assert [key for key in keys(stats) if not SNAKE.fullmatch(key)] == []
    page = (DOCS / "run-json.md").read_text()
    named = [*stats, *stats["counts"], *stats["details"], *(stats["method"] or {}), *(stats["certificate"] or {})]
    assert [key for key in named if f"`{key}`" not in page and f".{key}`" not in page] == []


@pytest.mark.parametrize("name", ["dedup", "pairs", "nearest", "recommend"])
def test_json_prints_what_is_written(run: Run, tmp_path: Path, name: str) -> None:
    printed = json.loads(run(*CALLS[name][-1].split(), "--json").stdout)
    assert printed == read_sealed(tmp_path / "run" / "run.json", "")[0]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(RUN_SCHEMA)
    assert set(RUN_SCHEMA["properties"]) == {*RUN_SCHEMA["required"], "checksum"}
    assert set(RUN_SCHEMA["properties"]["command"]["enum"]) <= set(COMMANDS)
    assert {name.split()[0] for name in CALLS} == set(RUN_SCHEMA["properties"]["command"]["enum"])


def test_long_lists_are_cut(tmp_path: Path) -> None:
    rows = ['{"text": "a b"}', *["{broken"] * 150]
    (tmp_path / "a.jsonl").write_text("\n".join(rows) + "\n")
    for number in range(120):
        (tmp_path / f"b{number}.jsonl").write_text('{"text": "a b"}\n')
    stats = likewise.dedup([str(path) for path in tmp_path.iterdir()], on_error="skip").stats
    assert (stats["counts"]["set_aside"], len(stats["set_aside"])) == (150, 100)
    assert stats["inputs"][100:] == [{"more_inputs": 21}]
    assert faults(stats) == []
