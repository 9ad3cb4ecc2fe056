"""The console sessions of the docs: commands after $, lines of a command that go on after >, then what they print.

What a machine decides is written as ... before its unit: "... s, peak memory ... MB". Nothing else can be left out: any
other ... is compared as it is.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forks
from service_process import Served

ROOT = Path(__file__).parent.parent
MEASURED = re.compile(r"\.\.\.(?= s\b| [kMG]?B\b)")
"""What may differ from machine to machine: seconds and bytes."""
SECONDS = 300
"""How long a command may take; one that starts Spark on a busy machine takes a minute."""
ADDRESS = "http://127.0.0.1:8000"
COMMAND = "import sys; sys.argv[0] = 'likewise'; from likewise.cli import main; main()"
PLAIN = re.compile(r"likewise [^|<>&;$`*?~{}\n]+")
"""A command that needs no shell."""


def steps(block):
    """Return the commands of a block and what each prints: [(command, output), ...]."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.rstrip("\n").split("\n")
        more = next((i for i, line in enumerate(lines[1:], 1) if not line.startswith("> ")), len(lines))
        found.append(("\n".join([lines[0], *(line[2:] for line in lines[1:more])]), "\n".join(lines[more:])))
    return found


def is_printed(wanted, said):
    """Return whether a command printed what a page says, but for measurements and blanks at the end of lines."""
    lines = [wanted.rstrip() for wanted in wanted.rstrip().split("\n")]
    pattern = "\n".join(r"[\d.,]+".join(map(re.escape, MEASURED.split(line))) for line in lines)
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in said.rstrip().split("\n"))) is not None


class Session:
    """Runs commands one after the other in one folder; a service started with & answers until the session ends."""

    def __init__(self, folder):
        self.folder = folder
        self._served = None
        self._more = {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._served:
            assert self._served.stop()[0] == 0

    def run(self, command):
        """Run a command; return what it prints, errors too if it fails."""
        if command.startswith("likewise serve ") and command.endswith(" &"):
            there = self.folder
            words = [str(there / word) if (there / word).exists() else word for word in command.split()[2:-1]]
            self._served = Served(*words, token=None)
            return ""
        if PLAIN.fullmatch(command):
            done = forks.start(COMMAND, *shlex.split(command)[1:], folder=self.folder, **self._more)
            output, errors = done.communicate(SECONDS)
        else:
            if command.startswith("curl") and shutil.which("curl") is None:
                pytest.skip("curl is not installed (apt-get install curl)")
            if self._served:
                command = command.replace(ADDRESS, self._served.url)
            python = shlex.quote(sys.executable)
            known = f'likewise() {{ {python} -c {shlex.quote(COMMAND)} "$@"; }}\npython() {{ {python} "$@"; }}\n'
            words, pipe = ["bash", "-c", known + command], subprocess.PIPE
            own = os.environ | self._more
            with subprocess.Popen(words, cwd=self.folder, env=own, stdout=pipe, stderr=pipe, text=True) as done:
                output, errors = done.communicate(SECONDS)
        return output if done.returncode == 0 else output + errors


def check(page, blocks, folder):
    """Run all blocks of a page in a folder, and fail at the first command that prints something else."""
    with Session(folder) as session:
        for command, wanted in (step for block in blocks for step in steps(block)):
            said = session.run(command)
            assert is_printed(wanted, said), f"{page}: $ {command}\n{said}"
