"""Run many commands quickly: one process imports and loads everything, and a copy of it runs each command.

It reads lines of JSON from standard input: the words of the command, and the folder. It answers with the exit code (a
negative one for a signal) and what was printed. The copy runs the whole command line, supervised.
"""

import json
import os
import signal
import sys
import tempfile
import time

SECONDS = 120


def run(words, folder):
    """Run a command in a copy of this process; return its exit code, output and errors."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.chdir(folder)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = ["likewise", *words]
            code = 99
            try:
                from likewise.cli import main

                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else 0
            finally:
                for stream in (sys.stdout, sys.stderr):
                    stream.flush()
                os._exit(code)
        limit = time.monotonic() + SECONDS
        done = 0
        while not done:
            done, status = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() > limit:
                os.killpg(child, signal.SIGKILL)
                limit += SECONDS
            time.sleep(0.002)
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    return {"code": os.waitstatus_to_exitcode(status), "out": texts[0], "err": texts[1]}


def main():
    """Answer until there are no more lines."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import likewise.apps.articles
    import likewise.cli.warmup
    import likewise.io.read
    import likewise.jobs.pairs  # noqa: F401
    from likewise.cli.warmup import PARTS

    for name in json.loads(sys.argv[1]):
        PARTS[name]()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(asked["words"], asked["folder"])), file=answers, flush=True)


if __name__ == "__main__":
    main()
