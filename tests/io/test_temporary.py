"""Temporary files and folders go with their owner, or all at once."""

import os

from likewise.io.disk import remove_temporary, temporary_file
from likewise.io.workspace import Workspace


class Owner:
    """Something that can be referred to weakly."""


def test_a_file_goes_with_its_owner(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    owner = Owner()
    handle, path = temporary_file(owner)
    os.close(handle)
    assert path.parent == tmp_path
    del owner
    assert list(tmp_path.iterdir()) == []


def test_everything_goes_when_the_process_is_about_to_end(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    owner, space = Owner(), Workspace.temporary()
    handle, _ = temporary_file(owner)
    os.close(handle)
    (space.large / "column").write_bytes(b"1")
    assert len(list(tmp_path.iterdir())) == 2
    remove_temporary()
    assert list(tmp_path.iterdir()) == []
    del owner, space
    remove_temporary()
