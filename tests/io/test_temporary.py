"""Temporary files and folders go with their owner, or all at once."""

import os
import shutil
import threading

import pytest

from likewise.io import disk
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


def held_below(folder):
    """The files in a folder that this process has open."""
    targets = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if os.path.lexists(entry.path)]
    return sorted(target for target in targets if target.startswith(str(folder)))


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list open files")
def test_names_of_large_files_go_at_once_and_their_room_soon_after(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "LARGE_FILE", 10)
    folder = tmp_path / "a"
    (folder / "b").mkdir(parents=True)
    for name in ("large", "b/large"):
        (folder / name).write_bytes(bytes(100))
    (folder / "small").write_bytes(b"x")
    with disk.freed_later(folder):
        assert held_below(folder) == [f"{folder}/b/large", f"{folder}/large"]
        shutil.rmtree(folder)
    for thread in threading.enumerate():
        if thread.name == "likewise-free":
            thread.join()
    assert held_below(folder) == []
