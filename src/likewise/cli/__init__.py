"""The command line. Nothing heavy is imported until a command runs, so that --help answers at once."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import sys
import threading
import time
from typing import Any

import click

from likewise.base.clock import process_start, waiting_since
from likewise.cli.completion import COMPLETE, complete_files
from likewise.cli.supervise import supervised
from likewise.cli.wording import escaped, reword
from likewise.errors import LikewiseError, ParameterError, closest

IMPORTED = time.perf_counter()
"""When the command line was loaded."""

FAULT = "internal error, please report"
"""How the message about an error begins that likewise does not raise on purpose."""

GROUPS = {
    "Documents and sets": {
        "dedup": "Remove near-duplicates, and record for each removed document which one was kept.",
        "pairs": "List all similar pairs of documents, sets or vectors, within one collection or across two.",
        "rethreshold": "Re-cluster a finished run with a new threshold or keep rule.",
        "report": "Write an HTML report on a finished run of any command: curves, alarms, pairs side by side.",
    },
    "Index": {
        "index": "Build a persistent index, and query it for items similar to new ones.",
        "serve": "Serve an index over HTTP: queries, additions, removals, and a web page to try it.",
    },
    "Vectors": {
        "nearest": "Find the nearest neighbours of every vector; pairs lists all pairs within a distance.",
    },
    "Applications": {
        "link": "Link the records of two tables, or of one, that describe the same entity.",
        "passages": "Find text copied from sources: the passages and their positions in both documents.",
        "explain": "Explain why two documents are similar: side by side, what they share, and how the search "
        "finds them.",
        "decontaminate": "Find items of test sets in training documents, and remove the documents or the passages.",
        "articles": "Group web pages that carry the same article, ignoring the text around it.",
        "mirrors": "Find hosts that mirror each other, and fold pages along their links.",
        "recommend": "Collaborative filtering: similar customers, similar items, recommendations.",
        "fingerprints": "Find prints of the same finger by their minutiae.",
    },
    "Planning and setup": {
        "plan": "Predict time, memory and disk of a run of dedup or link, here or on a cluster.",
        "tune": "Show the S-curve: bands and rows for a threshold and a recall.",
        "demo": "Find near-duplicates among the Python files on this machine.",
        "warmup": "Compile the kernels now instead of in the first run.",
        "completion": "Print the shell completion script for bash, zsh or fish.",
    },
}
"""The commands by group, each with one line for --help; the module of a command has its name."""

CLOSE = "likewise.close"
"""Where the context of a command keeps what is called when all else is over."""

QUESTIONS = {"-h", "--help", "--version"}
"""Words with which a command line reads no files."""

COMMANDS = {name: f"likewise.cli.{name}" for group in GROUPS.values() for name in group}


def _upload() -> Any:
    """Return the module that writes results to URLs, if a command has loaded it."""
    return sys.modules.get("likewise.io.upload")


class Lazy(click.Group):
    """A group that imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of their groups."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        module: Any = __import__(COMMANDS[cmd_name], fromlist=[cmd_name])
        command: click.Command = getattr(module, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed; suggest one where there is none of that name."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = " or ".join(f"'{name}'" for name in closest(args[0], COMMANDS))
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean {near}?" if near else ""))
        if not ctx.resilient_parsing and QUESTIONS.isdisjoint(args):
            _prepare_large_files(ctx, args)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; its errors name options, not parameters, and an interrupt ends it without a blank line."""
        since = STARTED.pop() if STARTED else time.perf_counter()
        try:
            with waiting_since(since):
                done = super().invoke(ctx)
                if CLOSE in ctx.meta:  # its result is out of memory by now
                    ctx.meta[CLOSE]()
                if _upload() is not None:
                    _upload().upload_all()
                return done
        except KeyboardInterrupt:
            raise click.exceptions.Abort from None
        except LikewiseError as error:
            reword(error, self.get_command(ctx, ctx.invoked_subcommand or ""))
            if _upload() is not None:
                error.args = (_upload().named(str(error)), *error.args[1:])
            raise
        finally:
            if _upload() is not None:
                _upload().abandon()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by group, without importing them."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


def _prepare_large_files(context: click.Context, args: list[str]) -> None:
    """Let what comes by URLs and by standard input be kept where the command keeps what is large; "-" comes once."""
    named = {before: word for before, word in itertools.pairwise(args) if before in ("--spill", "--out")}
    named |= {name: value for name, equals, value in (word.partition("=") for word in args) if equals}
    if "--spill" in named and any("://" in word for word in args):
        from likewise.io import disk

        disk.keep_in(named["--spill"])
    inputs = [word for before, word in itertools.pairwise(args) if word == "-" and before not in VALUES]
    if len(inputs) > 1:
        context.fail("Standard input, -, can be read only once: name one input that is -.")
    if not inputs:
        return
    from likewise.io.stdin import keep_in
    from likewise.io.streams import spool_folder

    keep_in(spool_folder(named.get("--spill"), None if named.get("--out") == "-" else named.get("--out")))


VALUES = ("--out", "--separator")
"""Options whose value may be "-" and is no input."""


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Examples:
  likewise dedup corpus.parquet --out clean/
  likewise dedup 'crawl/*.jsonl.gz' --text body --id url --keep longest --out clean/
  likewise pairs new.csv --with old.csv --threshold 0.7 --out pairs.csv
  likewise pairs embeddings.npy --measure angle --within 15 --out pairs.parquet
  likewise index create library/ && likewise index add library/ books/
  likewise link customers.csv subscribers.csv --out linked/
  likewise passages essays/ --sources library/ --out found/
  likewise tune --threshold 0.8 --recall 0.99

\b
Exit codes:
  0    success
  1    error in the data, a file or the environment
  2    usage error: unknown command or option, value out of range, option without effect
  130  interrupted

Each command has its own --help with examples.""",
)
@click.version_option(package_name="likewise", message="likewise %(version)s")
def cli() -> None:
    """Find similar items without comparing all pairs: verified, with the recall you ask for, and explained."""


GRACE = 0.5
"""Seconds an interrupted command has to put things away. A kernel at work cannot be stopped, so it is left behind."""
TRIES = 3
"""How often the command is interrupted in this time, if it goes on."""

INTERRUPTED = threading.Event()
"""Set when the command has been interrupted: what fails from then on fails because of it."""


STARTED: list[float] = []
"""When the process began whose command line this is, as a moment of time.perf_counter."""


def main() -> None:
    """Run the command line, supervised; --help lists the exit codes."""
    STARTED[:] = [process_start(IMPORTED)]
    for stream in (sys.stdout, sys.stderr):  # a terminal without a language knows ASCII only
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="backslashreplace")
    if QUESTIONS.isdisjoint(sys.argv[1:]):
        supervised(run)
    else:
        run()


def run() -> None:
    """Run the command line in this process.

    The command runs in a thread of its own: Python handles an interrupt in the first one only, and not while that one
    is in compiled code.
    """
    logging.getLogger().addHandler(logging.NullHandler())  # a command says in one line what is wrong, libraries in many
    if sys.argv[1:2] == [SERVICE]:
        sys.exit(_run())
    codes: list[int] = []
    ended = threading.Event()

    def work() -> None:
        try:
            codes.append(_run())
        finally:
            ended.set()

    before = threading.stack_size(STACK)
    command = threading.Thread(target=work, name="likewise-command", daemon=True)
    command.start()
    threading.stack_size(before)
    try:
        while not ended.wait(1):
            pass
    except KeyboardInterrupt:
        INTERRUPTED.set()
        _stop(command, ended, codes)
    sys.exit(codes[0] if codes else 1)


SERVICE = "serve"
"""The command that runs in the first thread: it handles signals itself, and finishes what it has begun."""
STACK = 16 << 20
"""Bytes of stack of the command's thread; some systems give a second thread little."""


def _stop(command: threading.Thread, ended: threading.Event, codes: list[int]) -> None:
    """End an interrupted command, at once if it does not end by itself, say so, and leave no temporary files."""
    import ctypes

    # A thread that the command is just starting has its number for a moment, and may get the interrupt in its place.
    sys.unraisablehook = lambda unraisable: None
    threading.excepthook = lambda failed: None
    thread, error = ctypes.c_ulong(command.ident or 0), ctypes.py_object(KeyboardInterrupt)
    with contextlib.suppress(KeyboardInterrupt):
        for _ in range(TRIES):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, error)
            if ended.wait(GRACE / TRIES):
                break
    temporary = sys.modules.get("likewise.io.disk")
    if temporary is not None:
        temporary.remove_temporary()
    if not ended.is_set() and sys.stderr.isatty():
        print(SHOW_CURSOR, end="", file=sys.stderr)
    code = codes[0] if codes in ([0], [130]) else _say("interrupted", 130)  # done before the interrupt came, or said
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


SHOW_CURSOR = "\r\x1b[K\x1b[?25h"
"""Clears a progress bar that was left behind, and makes the cursor visible again."""


def _run() -> int:
    """Run the command that was typed; return its exit code."""
    try:
        code = _called()
        if sys.stdout:
            sys.stdout.flush()
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _say("interrupted", 130)
    except click.ClickException as error:
        if isinstance(error, click.NoSuchOption):
            near = closest(error.option_name, error.possibilities or [])
            error = click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx)
        error.show()
        return error.exit_code
    except ParameterError as error:
        return _say(str(error), 2)
    except LikewiseError as error:
        return _say(str(error), 1)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = "cannot write to standard output" if error.filename is None else f"{error.filename}: cannot be used"
        return _say(f"{where}: {error.strerror or error}", 1)
    except MemoryError:
        return _say("out of memory: process fewer documents at a time", 1)
    except Exception as error:
        if sys.flags.dev_mode:
            import traceback

            traceback.print_exc()
            return 1
        return _say(f"{FAULT} ({_place(error)}); include the command, and the traceback that python -X dev prints", 1)
    return code if isinstance(code, int) else 0


def _called() -> Any:
    """Call the command; an interrupt that arrives within a library may come out of it as another error."""
    if COMPLETE in os.environ:
        complete_files()
    try:
        return cli.main(standalone_mode=False)
    except Exception as error:
        if INTERRUPTED.is_set():
            raise KeyboardInterrupt from error
        raise


def _say(message: str, code: int = 1) -> int:
    """Print one line; return the exit code."""
    print("likewise: " + escaped(" ".join(message.split())), file=sys.stderr)
    return code


def _place(error: Exception) -> str:
    """Say what went wrong, and in which line of likewise."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "likewise" in frame.filename]
    place = f" in {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}: {str(error)[:200]}"
