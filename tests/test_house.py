"""The order of the house: one name for one thing, no circles, no files that differ by an ending, none too long."""

import ast
import gc
import importlib.util
import re
import tomllib
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "likewise"
FILES = sorted(SOURCE.rglob("*.py"))
ENDINGS = ("ing", "ed", "er", "or", "es", "s", "ion")
DOTTED = re.compile(r"likewise(\.\w+)+\.?")
LONGEST = 450
"""Lines of a file: beyond about 400 it is time to look for a seam."""

spec = importlib.util.spec_from_file_location("rooms", ROOT / "tools" / "rooms.py")
rooms = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rooms)


def name_of(path):
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in FILES}


@cache
def tree_of(path):
    gc.disable()  # it would look at all nodes again and again
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


def imported(path):
    """The modules of likewise that a module imports, wherever in it; a package counts where a name comes from it."""
    for name in rooms.imports_of(tree_of(path)):
        while name and name not in MODULES:
            name = name.rpartition(".")[0]
        if name:
            yield name


def test_modules_do_not_import_each_other_in_circles():
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}
    graph = {
        name: {other for other in imported(path) if other not in (name, "likewise", "likewise.apps")}
        for name, path in MODULES.items()
        if name != "likewise"
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as circle:
        raise AssertionError(" → ".join(circle.args[1])) from None
    assert len(order) >= len(graph) - len(packages)


def test_no_string_names_a_room_above():
    """A module that is loaded by its name, or known by it, is below as well: layers are not passed by in strings."""
    layers = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]["layers"]
    floors = {room.strip(): -place for place, layer in enumerate(layers) for room in layer.split("|")}

    def room(name):
        return ".".join(name.split(".")[:2])

    upward = [
        f"{name}: {node.value!r}"
        for name, path in MODULES.items()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and DOTTED.fullmatch(node.value)
        if floors.get(room(node.value), -99) > floors.get(room(name), 0)
    ]
    assert upward == []


def test_a_class_name_means_one_thing():
    homes = defaultdict(list)
    for name, path in MODULES.items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert {name: where for name, where in homes.items() if len(where) > 1} == {}


def stem(name):
    """A word without the ending that makes another word of it."""
    for ending in ENDINGS:
        if name.endswith(ending) and len(name) - len(ending) >= 3:
            name = name.removesuffix(ending)
            break
    return name.removesuffix("e")


def test_no_two_files_of_a_folder_differ_by_an_ending():
    for folder in {path.parent for path in FILES}:
        stems = defaultdict(set)
        for path in [*folder.glob("*.py"), *(one for one in folder.iterdir() if one.is_dir())]:
            if not path.name.startswith("__"):
                stems[stem(path.stem)].add(path.stem)
        assert [names for names in stems.values() if len(names) > 1] == [], folder


def test_no_file_is_too_long():
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_every_room_is_in_the_layers():
    """A new folder below src/likewise must say where it stands: the contract in pyproject.toml has a line for it."""
    layers = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in FILES} - {"__init__", "__main__"}
    assert [room for room in sorted(found) if f"likewise.{room}" not in layers] == []


def test_no_two_files_of_tests_have_one_name():
    """They are imported by name, so that the one that comes first would be taken for the other."""
    names = [path.name for path in Path(__file__).parent.rglob("*.py") if path.name != "conftest.py"]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_tests_of_spark_are_in_its_folder():
    """`make test` looks for them there alone."""
    tests = ROOT / "tests"
    marked = {path.relative_to(tests).parts[0] for path in tests.rglob("*.py") if "mark.spark" in path.read_text()}
    assert marked - {"test_house.py"} == {"spark"}
