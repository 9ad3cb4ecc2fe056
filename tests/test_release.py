"""A release agrees with itself: one version everywhere, valid workflow files, actions pinned to a version."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from likewise.base.extras import EXTRAS

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
FILES = sorted((ROOT / ".github").rglob("*.yml"))
WORKFLOWS = [path.name for path in FILES if path.parent.name == "workflows"]


def loaded(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_one_version() -> None:
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[0] == VERSION


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_valid(path: Path) -> None:
    known = loaded(path)
    if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
        assert {"name", "description", "body"} <= set(known)
        ids = [part["id"] for part in known["body"]]
        assert len(ids) == len(set(ids)) > 0
        assert all(part["attributes"]["label"] for part in known["body"])


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_pins_its_actions_and_needs_no_secret(name: str) -> None:
    workflow = loaded(ROOT / ".github" / "workflows" / name)
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", [])]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+\.\d+\.\d+", action) for action in actions)
    assert workflow["permissions"] == {"contents": "read"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / name).read_text(encoding="utf-8")
    needed = [(job, needs) for job, given in workflow["jobs"].items() for needs in _list(given.get("needs"))]
    assert all(needs in workflow["jobs"] for _, needs in needed)


def _list(given: Any) -> list[str]:
    return [given] if isinstance(given, str) else given or []


def test_what_is_published_has_passed_the_tests_of_every_push() -> None:
    release = loaded(ROOT / ".github" / "workflows" / "release.yml")
    publish = release["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert set(publish["needs"]) == {"version", "test"}
    assert release["jobs"]["test"]["uses"] == "./.github/workflows/test.yml"
    tests = loaded(ROOT / ".github" / "workflows" / "test.yml")
    assert {"push", "pull_request", "workflow_call"} == set(tests[True])  # YAML reads `on` as true
    uploaded = {step["with"]["name"].split("$")[0] for step in _steps(tests, "upload-artifact")}
    assert uploaded == {"dist", "wheel-"}, "the sources, the wheel for all platforms, and those for one"
    (fetched,) = _steps(release, "download-artifact")
    assert fetched["with"] == {"path": "dist/", "merge-multiple": True}, "all that was uploaded"


def _steps(workflow: Any, action: str) -> list[Any]:
    steps = [step for job in workflow["jobs"].values() for step in job.get("steps", [])]
    return [step for step in steps if action in step.get("uses", "")]


def test_every_python_and_every_extra_is_tried() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    jobs = loaded(ROOT / ".github" / "workflows" / "test.yml")["jobs"]
    assert jobs["test"]["strategy"]["matrix"] == {"python": versions}
    assert jobs["install"]["strategy"]["matrix"] == {
        "python": versions,
        "extra": ["plain", *project["optional-dependencies"]],
    }
    assert set(re.findall(r"\w+", ",".join(project["optional-dependencies"]["all"]))) == {
        "likewise",
        *project["optional-dependencies"],
    } - {"all"}


def test_the_image_has_what_it_copies_and_imports() -> None:
    """What Docker is given of this folder, and what is installed before a line of the Dockerfile uses it."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    sent = [line[1:] for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split() if line[0] == "!"]
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    assert copied
    assert set(copied) == set(sent)
    assert all((ROOT / name).exists() for name in copied)
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", "\n".join(lines))
    known = {module for extra in extras.split(",") for module in EXTRAS[extra]} | set(sys.stdlib_module_names)
    for code in re.findall(r'python -c "(.+?)"', "\n".join(lines)):
        assert set(re.findall(r"import (\w+)", code)) <= known, code


def test_the_citation_is_complete() -> None:
    known = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "version", "authors", "license"} <= set(known)
