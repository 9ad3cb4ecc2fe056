"""Run semhash on given vectors: `python semhash_run.py VECTORS.npy FOLDER DEGREES`, in its environment.

The records are numbers, which no model encodes. The rows that were removed go to FOLDER/semhash.npy; the last line is
JSON: seconds, seconds of processor time, and memory.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from pathlib import Path

import numpy as np
from semhash import SemHash  # type: ignore[import-not-found]


def main() -> None:
    """Measure."""
    table = np.load(sys.argv[1])
    least = math.cos(math.radians(float(sys.argv[3])))
    records = [str(row) for row in range(len(table))]
    begun, worked = time.perf_counter(), time.process_time()
    found = SemHash.from_embeddings(table, records, model=None).self_deduplicate(threshold=least)
    seconds, worked = time.perf_counter() - begun, time.process_time() - worked
    np.save(Path(sys.argv[2]) / "semhash.npy", np.array([int(one.record) for one in found.filtered], np.int64))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    numbers = {"seconds": round(seconds, 2), "cpu_seconds": round(worked, 2), "peak_memory_mb": round(peak)}
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
