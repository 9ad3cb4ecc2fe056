"""The order of the files of families: each imports only those that its list names before it, inside functions too."""

import ast
from pathlib import Path

import likewise.families

FOLDER = Path(likewise.families.__file__).parent
PREFIX = "likewise.families"


def imported(path):
    """The files of families that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[2] for name in names if name.startswith(PREFIX + "."))


def test_each_file_imports_only_files_listed_before_it():
    listed = [line.split()[0] for line in likewise.families.__doc__.splitlines() if line[:1].islower()]
    files = {path.stem: path for path in FOLDER.glob("*.py") if path.stem != "__init__"}
    assert sorted(listed) == sorted(files)
    place = {name: number for number, name in enumerate(listed)}
    above = {(name, other) for name, path in files.items() for other in imported(path) if place[other] >= place[name]}
    assert above == set()
