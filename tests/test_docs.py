"""Every block of code in a docstring or on a page of docs/ is tested, by what its first line says it is.

python: a doctest session. console: commands after $, which are run, with what they print. py: code that needs what the
tests have not, another tool or a cluster; it is parsed. No language, or sh: commands; those of likewise must exist,
with their options and arguments.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import gzip
import importlib
import importlib.util
import json
import pkgutil
import re
import shlex
import textwrap
from pathlib import Path

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import consoles
import likewise
from likewise.cli import cli

ROOT = Path(__file__).parent.parent
MODULES = [module.name for module in pkgutil.walk_packages(likewise.__path__, "likewise.")]
SOURCES = {path.relative_to(ROOT / "src"): path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")}
TAUGHT = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in SOURCES if ">>>" in SOURCES[path]]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"", "sh", "python", "py", "console", "json"}
ALL_PAGES = sorted((ROOT / "docs").rglob("*.md"))
TEXTS = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *ALL_PAGES]}
PAGES = sorted(path for path in [ROOT / "README.md", *ALL_PAGES] if "```python\n" in path.read_text(encoding="utf-8"))


def commands_in(block: str) -> list[str]:
    """The commands of likewise in a block, each in one line, without what follows in the line."""
    found = []
    for line in block.replace("\\\n", " ").split("\n"):
        for part in line.removeprefix("$ ").split(" && "):
            if part.startswith("likewise ") and "[OPTIONS]" not in part:
                part = re.split(r"  +[^-\s]|\s#|\s[|>&]|\s \(", part)[0]
                found.append(part.strip())
    return found


def blocks(text: str, *languages: str) -> list[str]:
    """The blocks of a page in these languages."""
    return [textwrap.dedent(found[3]) for found in ANY_BLOCK.finditer(text) if found[2] in languages]


def test_every_module_can_be_imported() -> None:
    assert set(TAUGHT) < {"likewise", *MODULES}
    for name in MODULES:
        importlib.import_module(name)


@pytest.mark.parametrize("name", sorted(TAUGHT))
def test_docstrings(name: str) -> None:
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    """The blocks of a page are one session: later ones may use the names of earlier ones."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {}
    runner = doctest.DocTestRunner(verbose=False)
    for block in BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(1))
        test = doctest.DocTestParser().get_doctest(block[1], names, page.name, str(page), line)
        assert test.examples, f"the block at line {line} has no example"
        report: list[str] = []
        failed, _ = runner.run(test, out=report.append, clear_globs=False)
        assert failed == 0, "".join(report)
        names = test.globs
    assert text.count("```python") == len(BLOCK.findall(text)) > 0


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ALL_PAGES]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_blocks_say_what_they_are() -> None:
    for name, text in TEXTS.items():
        assert {found[2] for found in ANY_BLOCK.finditer(text)} - LANGUAGES == set(), name
        assert text.count("```") == 2 * len(ANY_BLOCK.findall(text)), name


def test_images_have_alternative_text() -> None:
    for name, page in TEXTS.items():
        text = ANY_BLOCK.sub("", page)
        for described, target in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", text):
            assert len(described) > 15, f"{name}: {target}"
        for tag in re.findall(r"<img[^>]*>", text):
            assert re.search(r'alt="[^"]{15,}"', tag), f"{name}: {tag}"


def test_code_that_cannot_run_here_is_code() -> None:
    for name, text in TEXTS.items():
        for block in blocks(text, "py"):
            ast.parse(block, name)


COMMANDS = {name: [line for block in blocks(TEXTS[name], "", "sh") for line in commands_in(block)] for name in TEXTS}


@pytest.mark.parametrize("name", [name for name in COMMANDS if COMMANDS[name]])
def test_commands_are_spelt_right(name: str) -> None:
    """A command of the docs exists, has these options, and has the arguments it needs."""
    for line in COMMANDS[name]:
        _check_spelling(line)


def _check_spelling(line: str) -> None:
    words, group, context = shlex.split(line)[1:], cli, click.Context(cli)
    while isinstance(group, click.Group):
        found, command, words = group.resolve_command(context, words)
        assert command is not None, line
        if isinstance(command, click.Group):
            group, context = command, click.Context(command)
            continue
        if "--help" not in words:
            try:
                command.make_context(found, words)
            except click.ClickException as error:
                raise AssertionError(f"{line}: {error.format_message()}") from error
        return


ON_SPARK = "docs/howto/spark.md"
"""Its session is run by tests/spark, where Java is known to be there."""
CONSOLES = [name for name in TEXTS if blocks(TEXTS[name], "console") and name != ON_SPARK]


@pytest.mark.parametrize("name", CONSOLES)
def test_console_sessions(name: str, tmp_path: Path) -> None:
    """The commands of a page, one after the other in one folder, print what the page says."""
    consoles.check(name, blocks(TEXTS[name], "console"), tmp_path)


def test_rows_of_the_readme(tmp_path: Path) -> None:
    """What the table says at the prompt and in Python is run, and leaves the same result."""
    rows = re.findall(r"^\| [^|]+ \| `(likewise [^`]+)` \| `(likewise\.[^`]+)` \|$", TEXTS["README.md"], re.MULTILINE)
    assert len(rows) == 9
    for folder in (tmp_path / "prompt", tmp_path / "python"):
        made_for_the_readme(folder)
    names = {"likewise": likewise, "ids": ["library/a.txt"], "texts": [COPIED]}
    with consoles.Session(tmp_path / "prompt") as session:
        for command, code in rows:
            said = session.run(command)
            assert "likewise:" not in said, said
            with contextlib.chdir(tmp_path / "python"):
                exec(code, names)
    for name in (
        "clean/removed.parquet",
        "kept/removed.parquet",
        "pairs.parquet",
        "linked/matches.parquet",
        "found/passages.parquet",
        "untested/hits.parquet",
    ):
        here, there = (pq.read_table(tmp_path / side / name) for side in ("prompt", "python"))
        assert here.num_rows > 0, name
        assert here.equals(there), name
    for side in ("prompt", "python"):
        with likewise.Index.open(tmp_path / side / "seen") as index:
            assert index.query(COPIED).column("id_b").to_pylist() == ["library/a.txt"]


COPIED = "the cat that the dog had chased up the old oak tree would not come down again"


def made_for_the_readme(folder: Path) -> None:
    """Make the inputs that the table names."""
    for name in ("crawl", "essays", "library", "quizzes"):
        (folder / name).mkdir(parents=True)
    pq.write_table(pa.table({"text": [COPIED, COPIED + "!", "something else"]}), folder / "corpus.parquet")
    (folder / "quizzes" / "cats.csv").write_text(f"question\n{COPIED}\n", encoding="utf-8")
    with gzip.open(folder / "crawl" / "a.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps({"url": f"u{n}", "body": COPIED}) + "\n" for n in range(2))
    np.save(folder / "embeddings.npy", np.array([[1, 0], [1, 0.1], [0, 1]], np.float32))
    (folder / "customers.csv").write_text("id,name,phone\nc1,William Jones,650-555-0100\nc2,Ana Souza,212-376-4411\n")
    (folder / "subscribers.csv").write_text("id,name,phone\ns1,Bill Jones,650-555-0100\ns2,Zoe Quist,917-202-7799\n")
    (folder / "essays" / "b.txt").write_text(f"It is told: {COPIED}.")
    (folder / "library" / "a.txt").write_text(COPIED)


def test_a_million_people_are_the_same_everywhere() -> None:
    """The pages that tell of them give the figures of the benchmark's own table."""
    table = json.loads((ROOT / "benchmarks" / "results" / "link.json").read_text())["table"]
    of = {
        row["tool"]: row for row in table if (row["collection"], row["size"]) == ("people, typing errors", "1,000,000")
    }
    ours, splink = of["likewise"], of["splink"]
    said = f"{ours['seconds']:.0f} s( with|,) recall {ours['recall']:.4f}( and|,) precision {ours['precision']:.4f}"
    theirs = f"{splink['seconds']:.0f} s( with|,) {splink['recall']:.3f}( and|,) {splink['precision']:.3f}"
    for name in ("README.md", "docs/peers.md"):
        assert re.search(said, TEXTS[name]), name
        assert re.search(theirs, TEXTS[name]), name
    assert f"| {ours['precision']:.4f} | {ours['recall']:.4f} |" in TEXTS["docs/link.md"]


def test_every_public_name_is_in_the_reference() -> None:
    reference = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    described = {line.split(".")[-1] for line in re.findall(r"^::: (\S+)", reference, re.MULTILINE)}
    modules = {"apps", "exact", "measures", "theory", "__version__"}
    assert set(likewise.__all__) - described - modules == set()


@pytest.mark.parametrize("tool", ["cli_reference", "benchmark_page"])
def test_pages_made_from_the_code_are_current(tool: str) -> None:
    """If not: python tools/TOOL.py."""
    spec = importlib.util.spec_from_file_location(tool, ROOT / "tools" / f"{tool}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), f"run python tools/{tool}.py"
