"""How long a user waits before anything happens: help, ten documents, the first run on a machine, compiling everything.

python benchmarks/startup.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [sys.executable, "-c", "from likewise.cli import main; main()"]


def seconds(*words: str, cache: str | None = None) -> float:
    """Time one command in a fresh process."""
    environment = {**os.environ, **({"NUMBA_CACHE_DIR": cache} if cache else {})}
    begun = time.perf_counter()
    subprocess.run([*COMMAND, *words], env=environment, check=True, capture_output=True)
    return time.perf_counter() - begun


def main() -> None:
    """Print the times."""
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder) / "ten.jsonl"
        documents.write_text("".join(f'{{"text": "document number {i} of ten"}}\n' for i in range(10)))
        for method in ("exact", "lsh"):
            first = ("dedup", str(documents), "--method", method, "--out", str(Path(folder) / f"first-{method}"))
            taken = seconds(*first, cache=str(Path(folder) / f"cache-{method}"))
            print(f"first dedup, {method:<8} {taken:6.2f} s")
        print(f"compiling everything  {seconds('warmup', cache=folder):6.2f} s")
        seconds("warmup")
        print(f"likewise --help       {min(seconds('--help') for _ in range(5)):6.2f} s")
        job = ("dedup", str(documents), "--out", str(Path(folder) / "out"))
        print(f"ten documents, warm   {min(seconds(*job) for _ in range(5)):6.2f} s")


if __name__ == "__main__":
    main()
