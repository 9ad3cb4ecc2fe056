"""A release agrees with itself: one version everywhere, valid workflow files, actions pinned to a version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
FILES = sorted((ROOT / ".github").rglob("*.yml"))


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


def test_the_workflow_pins_its_actions_and_publishes_without_a_token() -> None:
    workflow = loaded(ROOT / ".github" / "workflows" / "release.yml")
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@v\d+\.\d+\.\d+", action) for action in actions)
    publish = workflow["jobs"]["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert set(publish["needs"]) == {"build", "test"}
    assert "secrets." not in (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")


def test_the_citation_is_complete() -> None:
    known = loaded(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "version", "authors", "license"} <= set(known)
