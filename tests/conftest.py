"""What all tests share: how much hypothesis tries, which tests begin, and the command line in this process."""

import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

KERNEL_MODE = os.environ.get("LIKEWISE_KERNEL_MODE", "compiled")  # see tests/kernels/test_kernel_modes.py
DEEP = os.environ.get("LIKEWISE_EXAMPLES") == "deep"
EXAMPLES = {"compiled": 600 if DEEP else 15, "checked": 10, "interpreted": 5}
"""How many examples hypothesis tries of every property: one number for `make test`, another for `make soak`."""

settings.register_profile(
    "likewise",
    max_examples=EXAMPLES[KERNEL_MODE],
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("likewise")


MEMORY, ROOM = Path("/dev/shm"), 8 << 30
"""Where files of tests go if there is this much room: on a disk, most of their time is waiting for it to be written."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: reads the clock; `make test` runs nothing else beside it")
    config.addinivalue_line(
        "markers",
        "each_value: `make test` has every value of two parameters, every pair of values of three; `make soak` has all",
    )
    if config.option.basetemp is None and os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        folder = tempfile.mkdtemp(prefix="likewise-tests-", dir=MEMORY)
        config.option.basetemp = os.path.join(folder, "base")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


LONGEST = ("test_kernel_modes.py", "test_resume.py")
"""Files with tests that each take as long as hundreds of others."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests: of two workers, none is left with one when the other has nothing more to do.

    Combinations of parameters whose values are all in other ones are slow truth, if the test says so (each_value).
    Of combinations with as much that is new, the one is chosen whose values have been chosen least.
    """
    combined: dict[str, list[tuple[pytest.Item, set[tuple[object, ...]]]]] = {}
    for item in items:
        if not DEEP and item.get_closest_marker("each_value") and not item.get_closest_marker("soak"):
            combined.setdefault(item.nodeid.partition("[")[0], []).append((item, _values(item)))
    for rest in combined.values():
        missing, times = set[object]().union(*(_together(values) for _, values in rest)), Counter[object]()
        while missing:
            chosen = max(rest, key=lambda entry: (len(_together(entry[1]) & missing), -sum(times[v] for v in entry[1])))
            rest.remove(chosen)
            missing -= _together(chosen[1])
            times.update(chosen[1])
        for item, _ in rest:
            item.add_marker(pytest.mark.soak)
    items.sort(key=lambda item: LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST))


def _together(values: set[tuple[object, ...]]) -> set[frozenset[object]]:
    """Return what is to be tried of a combination: all but one of its values together, or its only value."""
    return {frozenset(values - {value} or values) for value in values}


def _values(item: pytest.Item) -> set[tuple[object, ...]]:
    """Return the rows of each table of parameters, and of each fixture with parameters, from which a test is made."""
    given = item.callspec.params
    tables = [mark.args[0] for mark in item.iter_markers("parametrize")]
    named = [tuple(re.split(r", *", names)) if isinstance(names, str) else tuple(names) for names in tables]
    fixtures = [(name,) for name in given.keys() - {name for names in named for name in names}]
    return {(names, *(id(given[name]) for name in names)) for names in (*named, *fixtures)}


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for garbage only among what tests make: ten thousand tests and their modules last to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def fetched(tmp_path_factory) -> Iterator[None]:
    """What is fetched from URLs is kept in a folder of the tests: a process that ends at once leaves it there."""
    from likewise.io import disk, mirror

    folder = tmp_path_factory.mktemp("fetched")
    with pytest.MonkeyPatch.context() as patch:
        for module in (disk, mirror):
            patch.setattr(module, "cache_folder", lambda: folder)
        yield


@pytest.fixture
def one_core(monkeypatch) -> None:
    """Runs that are not told otherwise take one thread: more take longer to start than a few documents to compare."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)


@pytest.fixture
def no_drawing(monkeypatch) -> None:
    """Commands in this process write a line in the place of a page or a plot, which take longer to draw than the rest.

    That every command writes its page is tested in tests/report, where all is drawn.
    """
    from likewise.cli import show as page

    def written(where, wanted, progress=None, held=None):
        if not page.wanted(where, wanted):
            return None, ""
        (where / "report.html").write_text("a page")
        return where / "report.html", ""

    monkeypatch.setattr(page, "write_page", written)
    monkeypatch.setattr("likewise.apps.link.result.plotted_weights", lambda table, path: path.write_text("a plot"))


@pytest.fixture
def typed(tmp_path, monkeypatch, capfd, no_drawing) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run what a user types, in a fresh folder: in this process, as a new one takes a second to import everything.

    A test in test_cli.py makes sure that a process of its own says the same.
    """
    from likewise.cli import run

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["likewise", *words])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            run()
        output, errors = capfd.readouterr()
        return subprocess.CompletedProcess(words, ended.value.code, output, errors)

    return call
