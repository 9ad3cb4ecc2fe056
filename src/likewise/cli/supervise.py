"""The command in a process of its own: if it crashes or is killed, the process that waits for it says so in one line.

Libraries that read damaged files can bring down the process they run in. The process that the user started forks before
anything heavy is imported, passes signals on, and ends with the exit code of the other one, which ends with it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from types import FrameType

from likewise.base import openfiles
from likewise.cli.wording import escaped

PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP")
CRASHES = {
    "SIGSEGV": "segmentation fault",
    "SIGABRT": "aborted",
    "SIGBUS": "bus error",
    "SIGILL": "illegal instruction",
    "SIGFPE": "arithmetic error",
    "SIGTRAP": "trap",
    "SIGSYS": "bad system call",
}
ONCE = 1.0
"""Seconds in which a second interrupt is taken for the first: a terminal sends it to both processes."""

PR_SET_PDEATHSIG = 1
"""An operation of Linux's prctl: the signal that a process gets when its parent ends."""

SHOW_CURSOR = "\x1b[?25h"
"""Progress bars hide the cursor, and a crash leaves them no time to show it again."""


def supervised(work: Callable[[], None]) -> None:
    """Do the work, which ends with SystemExit, in a process of its own; here if this one cannot be forked."""
    if not hasattr(os, "fork") or threading.active_count() > 1:
        work()
        return
    openfiles.share()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    numbers = {getattr(signal, name) for name in PASSED_ON}
    parent, (end, held) = os.getpid(), os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    child = os.fork()
    if child == 0:
        os.close(held)
        _die_with(parent, end)
        _interrupt_once()
        _be_quiet()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        _end_with(work)
        return
    os.close(end)

    def pass_on(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)

    handled = [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
    for number in handled:
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
    _, status = os.waitpid(child, 0)
    for number in handled:
        signal.signal(number, signal.SIG_DFL)
    sys.exit(_exit_code(status))


def _end_with(work: Callable[[], None]) -> None:
    """Do the work, and end this process as soon as it is done.

    The user waits for the prompt while Python takes apart what it has loaded, which the system does at once. What was
    to be done at the exit is done, and what was printed is on its way.
    """
    try:
        work()
    except SystemExit as done:
        if sys.flags.dev_mode or not (done.code is None or isinstance(done.code, int)):
            raise
        threading._shutdown()  # type: ignore[attr-defined]  # what Python itself calls first at the end
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(done.code or 0)


def _die_with(parent: int, end: int) -> None:
    """End this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) == 0:
                os.close(end)
                if os.getppid() != parent:
                    os._exit(1)
                return

    def wait() -> None:
        os.read(end, 1)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="likewise-parent", daemon=True).start()


def _interrupt_once() -> None:
    """Take two interrupts that come together for one."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return
    last = -ONCE

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= ONCE:
            last = now
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)


def _be_quiet() -> None:
    """Keep what libraries say off the terminal: their warnings, and what they print before they crash.

    `python -W` and `python -X dev` show the warnings and the rest.
    """
    if sys.flags.dev_mode:
        return
    if not sys.warnoptions:
        warnings.showwarning = lambda *args, **kwargs: None
    if sys.stderr is None:
        return
    with contextlib.suppress(OSError, ValueError):
        screen = os.dup(sys.stderr.fileno())
        nowhere = os.open(os.devnull, os.O_WRONLY)
        sys.stderr = open(  # noqa: SIM115 - open to the end of the process
            screen, "w", buffering=1, encoding=sys.stderr.encoding, errors="backslashreplace"
        )
        os.dup2(nowhere, 2)
        os.close(nowhere)


def _exit_code(status: int) -> int:
    """Return the exit code of the other process; if a signal ended it, say so or end by the same one."""
    if not os.WIFSIGNALED(status):
        return os.waitstatus_to_exitcode(status)
    name = signal.Signals(os.WTERMSIG(status)).name
    if name != "SIGKILL" and name not in CRASHES:
        os.kill(os.getpid(), os.WTERMSIG(status))
        return 128 + os.WTERMSIG(status)  # only if the signal is ignored
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print((SHOW_CURSOR if sys.stderr.isatty() else "") + _message(name), file=sys.stderr, flush=True)
    return 1


def _message(name: str) -> str:
    files = escaped(" or ".join(openfiles.names()))
    if name == "SIGKILL":
        where = f" while {files} was read" if files else ""
        return (
            f"likewise: killed by the system{where}, most likely because memory ran out; use a smaller "
            "--memory, or process less at a time"
        )
    if files:
        return f"likewise: {files}: reading it crashed ({CRASHES[name]}); it may be damaged: download it again"
    return f"likewise: crashed ({CRASHES[name]}); internal error, please report it with the command"
