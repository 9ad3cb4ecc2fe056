"""How Java is started where all of Spark runs in one process: quickly, for runs of a few minutes.

Half of the processor time of a short run is spent on loading the classes of Spark. Java can keep them ready for use in
an archive, which the first session writes when it ends and later ones map into memory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from likewise.kernels import cache_directory

USUAL = ("-XX:TieredStopAtLevel=1", "-XX:+UseParallelGC", "-XX:+ExitOnOutOfMemoryError")
"""The optimising compiler of Java takes more time than the rest of a run of a few minutes, and speeds up little: the
work is done by kernels. A collector that works beside the tasks takes cores from them. If a thread of Spark that
collects results runs out of memory, Spark waits for ever: better that it ends."""
SILENT = ("-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable", "-Xlog:all=error:stderr")
"""An archive that does not fit, of other Java archives on the path for instance, is passed over without a word."""
SETTLED = 5.0
"""Seconds after which an archive that was not written to is taken for complete."""


def java_options(folder: Path | None = None) -> str:
    """Return the options: among them, to use the archive of classes or, if there is none, to write one at the end."""
    place = cache_directory() if folder is None else folder
    java = _java()
    if place is None or java is None:
        return " ".join(USUAL)
    archive = place / f"spark-{_key(java)}.jsa"
    for written in sorted(place.glob(f"{archive.name}.*")):
        with suppress(OSError):
            if time.time() - written.stat().st_mtime > SETTLED and not archive.exists():
                os.replace(written, archive)
    if archive.exists():
        return " ".join([*USUAL, *SILENT, f"-XX:SharedArchiveFile={archive}"])
    if " " in str(archive):
        return " ".join(USUAL)
    return " ".join([*USUAL, *SILENT, f"-XX:ArchiveClassesAtExit={archive}.{os.getpid()}"])


def _java() -> Path | None:
    """Return the program that Spark will start."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return Path(found).resolve() if found and os.path.exists(found) else None


def _key(java: Path) -> str:
    """Return what tells this version of Java and of Spark from others: an archive is of one of them."""
    import pyspark

    known = f"{java} {java.stat().st_mtime_ns} {pyspark.__version__} {pyspark.__file__}"
    return hashlib.sha256(known.encode()).hexdigest()[:16]
