"""A service in a process of its own, and what the tests of the service share."""

import json
import os
import signal
import subprocess
import sys

import forks

TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BASE = "http://127.0.0.1:8000"
TEXTS = {
    "rose": "a rose is a rose is a rose",
    "roses": "a rose is a rose is a rose, and roses are red",
    "shelf/gift of 1999": "beware of Greeks bearing gifts",
}


OWN_SESSION = """
import os
os.setsid()
os.environ.pop("LIKEWISE_TOKEN", None)
os.environ.update({token!r})
from likewise.cli import main
main()
"""


class Served:
    """A service in a process of its own; `new` makes it one that has nothing imported, as that of a user has not."""

    def __init__(self, folder, *words, token=TOKEN, new=False):
        given = {"LIKEWISE_TOKEN": token} if token else {}
        words = ["serve", str(folder), "--port", "0", *words]
        if new:
            others = {name: value for name, value in os.environ.items() if name != "LIKEWISE_TOKEN"}
            self.process = subprocess.Popen(
                [sys.executable, "-m", "likewise", *words],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=others | given, start_new_session=True,
            )  # fmt: skip
        else:
            parts = ("stored_index", "likewise.cli.serve", "likewise.serve.server")
            self.process = forks.start(OWN_SESSION.format(token=given), *words, parts=parts)
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1])
        self.start = json.loads(line)
        self.url = self.start["url"].rstrip("/")
        self.port = int(self.url.rpartition(":")[2])

    def stop(self, number=signal.SIGTERM):
        """Tell it to stop, as a terminal does if by Ctrl-C; return its exit code and the lines it logged."""
        if number == signal.SIGINT:
            os.killpg(self.process.pid, number)  # to both processes, and the first passes it on to the second
        else:
            self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()]
