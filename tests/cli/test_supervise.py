"""A command that crashes, is killed or interrupted: one line, the right exit code, and no process left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from likewise.cli.supervise import supervised
from likewise.cli.wording import escaped

START = """
import os, signal, sys, time, warnings
from likewise.base import openfiles
from likewise.cli.supervise import supervised

signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup would have it ignored

def work():
    print(os.getpid(), flush=True)
{}

supervised(work)
"""


def start(body: str) -> subprocess.Popen[str]:
    """Start a supervised process that does this and prints its number first."""
    lines = "\n".join("    " + line for line in body.splitlines())
    command = [sys.executable, "-c", START.format(lines)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def number(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def gone(pid: int, seconds: float = 10) -> bool:
    """Tell whether a process ends within some seconds; a zombie that nobody waits for has ended."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGKILL"])
def test_a_crash_names_the_file(name: str) -> None:
    body = f'with openfiles.reading("b\\x1bad.arrow"): os.kill(os.getpid(), signal.{name})'
    _, errors = (process := start(body)).communicate(timeout=30)
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1
    assert errors.startswith("likewise: ")
    assert "b\\x1bad.arrow" in errors


def test_a_crash_outside_files() -> None:
    _, errors = (process := start("os.abort()")).communicate(timeout=30)
    assert process.returncode == 1
    assert errors.startswith("likewise: crashed (aborted)")


def test_exit_codes_and_output_pass() -> None:
    for code in (0, 1, 2, 130):
        out, errors = (process := start(f"sys.exit({code})")).communicate(timeout=30)
        assert (process.returncode, errors, len(out.split())) == (code, "", 1)


def test_what_libraries_say_is_not_shown() -> None:
    body = 'warnings.warn("old")\nos.write(2, b"Check failed")\nprint("ours", file=sys.stderr)\nsys.exit(0)'
    _, errors = (process := start(body)).communicate(timeout=30)
    assert (process.returncode, errors) == (0, "ours\n")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_killed_with_the_command() -> None:
    process = start("time.sleep(60)")
    worker = number(process)
    process.kill()
    assert gone(worker)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_are_passed_on(name: str) -> None:
    process = start("time.sleep(60)")
    worker = number(process)
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=30)
    assert process.returncode == -getattr(signal, name)
    assert gone(worker)


def test_two_interrupts_at_once_are_one() -> None:
    """A terminal interrupts both processes, and the one that waits passes its interrupt on."""
    body = (
        "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    pass\n"
        'time.sleep(0.5)\nprint("cleaned")\nsys.exit(130)'
    )
    process = start(body)
    worker = number(process)
    time.sleep(0.1)
    os.kill(worker, signal.SIGINT)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out, errors) == (130, "cleaned\n", "")


def test_a_process_with_threads_is_not_forked() -> None:
    wait = threading.Event()
    thread = threading.Thread(target=wait.wait)
    thread.start()
    try:
        with pytest.raises(SystemExit) as ended:
            supervised(lambda: sys.exit(os.getpid()))
        assert ended.value.code == os.getpid()
    finally:
        wait.set()
        thread.join()


def test_escaped_text_has_no_control_characters() -> None:
    every = "".join(map(chr, range(0x3000))) + "\ud800"
    shown = escaped(every)
    assert not any(ord(char) < 32 or 127 <= ord(char) < 160 or 0x202A <= ord(char) <= 0x202E for char in shown)
    assert escaped("Zoë 東京 😀") == "Zoë 東京 😀"
    shown.encode()
