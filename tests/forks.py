"""Processes that start at once: each is a copy of one that has imported likewise and loaded its kernels.

A new process takes two seconds of a core to come so far, and many tests need one only to kill it. The copies are
processes in every other respect: of their own memory, killed by signals, with output in pipes.
"""

import atexit
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

COMMAND = "from likewise.cli import main; main()"
PARENT = """
import sys
sys.path.insert(0, sys.argv[2])
import forks
forks.serve(int(sys.argv[1]))
"""
AT_IMPORT = ("LIKEWISE_PATIENCE",)
"""Variables that likewise reads when it is imported: a process cannot be given another value later."""
_known = {}


class Forked:
    """A process as subprocess.Popen has it, with the methods that tests use."""

    def __init__(self, parent, pid, stdout, stderr):
        self._parent = parent
        self.pid = pid
        self.stdout, self.stderr = stdout, stderr
        self.returncode = None

    def poll(self):
        """Return the exit code, or None while the process runs."""
        if self.returncode is None:
            self.returncode = self._parent.asked({"poll": self.pid})["code"]
        return self.returncode

    def wait(self, timeout=None):
        """Wait for the end of the process; raise if that takes too long."""
        limit = None if timeout is None else time.monotonic() + timeout
        while self.poll() is None:
            if limit is not None and time.monotonic() > limit:
                raise subprocess.TimeoutExpired(["fork"], timeout)
            time.sleep(0.002)
        return self.returncode

    def communicate(self, timeout=None):
        """Return what was printed, when the process has ended."""
        with ThreadPoolExecutor(2) as pool, self.stdout, self.stderr:
            said = [pool.submit(stream.read) for stream in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            return said[0].result(), said[1].result()

    def send_signal(self, number):
        """Send a signal, if the process still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self):
        """End the process as the system does when there is no memory left."""
        self.send_signal(signal.SIGKILL)


class Parent:
    """The process that is copied. It waits for its children, and tells how they ended."""

    def __init__(self, environment):
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            words = [sys.executable, "-c", PARENT, str(there.fileno()), os.path.dirname(__file__)]
            own = [there.fileno()]
            self._process = subprocess.Popen(words, pass_fds=own, start_new_session=True, env=environment)
        atexit.register(self.close)

    def asked(self, question, handles=()):
        """Ask for something, with open files; return the answer."""
        socket.send_fds(self._here, [json.dumps(question).encode()], list(handles))
        return json.loads(self._here.recv(1 << 16))

    def start(self, **question):
        """Start a process that runs Python code."""
        ends = [os.pipe(), os.pipe()]
        pid = self.asked(question, [write for _, write in ends])["pid"]
        for _, write in ends:
            os.close(write)
        return Forked(self, pid, *(os.fdopen(read, encoding="utf-8", errors="replace") for read, _ in ends))

    def close(self):
        """End the process; its children are left alone."""
        self._here.close()
        self._process.wait(30)


def start(code, *words, parts=("words", "bands", "join", "clusters"), folder=".", **environment):
    """Start a process that runs Python code with these words in sys.argv.

    parts: what is loaded before, by its name in likewise.cli.warmup, or a module; the first call takes a while.
    environment: more of it than this process has.
    """
    key = tuple((name, environment[name]) for name in AT_IMPORT if name in environment)
    if key not in _known:
        _known[key] = Parent({**os.environ, **dict(key)})
    words = list(map(str, words))
    return _known[key].start(code=code, words=words, folder=os.path.abspath(folder), parts=parts, more=environment)


def command(*words, **more):
    """Start a command of likewise."""
    return start(COMMAND, *words, **more)


def serve(handle):
    """Start processes, and tell how they ended, until nobody asks."""
    import likewise.cli.warmup
    import likewise.io.read
    import likewise.jobs.pairs

    ended, loaded = {}, set()
    with socket.socket(fileno=handle) as there:
        while True:
            data, handles, *_ = socket.recv_fds(there, 1 << 20, 2)
            if not data:
                return
            question = json.loads(data)
            if "poll" in question:
                pid = question["poll"]
                done, status = os.waitpid(pid, os.WNOHANG) if pid not in ended else (0, 0)
                if done:
                    ended[pid] = os.waitstatus_to_exitcode(status)
                there.send(json.dumps({"code": ended.get(pid)}).encode())
                continue
            for part in question["parts"]:
                if part not in loaded:
                    importlib.import_module(part) if "." in part else likewise.cli.warmup.PARTS[part]()
                    loaded.add(part)
            pid = os.fork()
            if pid == 0:
                there.close()
                _become(question, handles)
            ended.pop(pid, None)  # numbers come round again: that of a child which ended long ago
            for one in handles:
                os.close(one)
            there.send(json.dumps({"pid": pid}).encode())


def _become(question, handles):
    """Be the process that was asked for."""
    code = 1
    try:
        os.chdir(question["folder"])
        os.environ.update(question["more"])
        for place, one in enumerate(handles, 1):
            os.dup2(one, place)
            os.close(one)
        sys.argv = ["-c", *question["words"]]
        exec(compile(question["code"], "<string>", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
