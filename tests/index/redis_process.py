"""A Redis server of the tests' own, on a free port of this machine, with its files in a folder."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAM = shutil.which("redis-server")


class RedisProcess:
    """A server that can be stopped, killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.options = options
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        words = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        self.process = subprocess.Popen([*words, *self.options], stdout=subprocess.DEVNULL)
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as asked:
                asked.sendall(b"PING\r\n")
                if asked.recv(100)[:5] in (b"+PONG", b"-NOAU"):
                    return
            time.sleep(0.01)
        raise TimeoutError("redis-server does not answer")

    def stop(self, how: int = signal.SIGKILL) -> None:
        """End it."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait()
            self.process = None

    def url(self, name: str, more: str = "", user: str = "") -> str:
        """The URL of an index."""
        return f"redis://{user}127.0.0.1:{self.port}/0?name={name}{more}"
