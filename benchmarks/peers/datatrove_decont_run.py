"""datatrove: its n-gram decontamination, on its local executor.

    python datatrove_decont_run.py CORPUS TESTS OUT N

The corpus is a folder of Parquet files, one for each process; TESTS are JSON lines with a question each. Its indexer
needs lighteval, which fetches tests from a hub: the index is written here, of the n-grams that the indexer would make
of texts, by the functions that the filter uses. What is printed last is JSON.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]
from datatrove.pipeline.decont import NGramsDecontFilter  # type: ignore[import-not-found]
from datatrove.pipeline.decont.n_grams import NGramsDecontConfig  # type: ignore[import-not-found]
from datatrove.pipeline.readers import ParquetReader  # type: ignore[import-not-found]
from datatrove.pipeline.writers import ParquetWriter  # type: ignore[import-not-found]
from datatrove.utils.text import ngrams, simplify_text  # type: ignore[import-not-found]


def main() -> None:
    """Index the tests, and filter the corpus."""
    corpus, tests, out = map(Path, sys.argv[1:4])
    shutil.rmtree(out, ignore_errors=True)
    index = out / "index"
    index.mkdir(parents=True)
    config = NGramsDecontConfig(n_grams=int(sys.argv[4]))
    step = NGramsDecontFilter(str(index), config)
    hashes: set[int] = set()
    for line in tests.read_text(encoding="utf-8").splitlines():
        words = step.tokenizer.word_tokenize(simplify_text(json.loads(line)["question"], config.norm_config))
        hashes.update(step.hash_func(" ".join(one)) for one in ngrams(words, config.n_grams))
    np.array(list(hashes), config.hash_config.np_descr).tofile(index / "tests.index.hashes")
    steps = [ParquetReader(str(corpus), glob_pattern="*.parquet"), step, ParquetWriter(str(out / "kept"))]
    files = len(list(corpus.glob("*.parquet")))
    LocalPipelineExecutor(steps, tasks=files, workers=2, logging_dir=str(out / "logs"), start_method="fork").run()
    kept = {name for file in (out / "kept").rglob("*.parquet") for name in pq.read_table(file)["id"].to_pylist()}
    every = {name for file in corpus.glob("*.parquet") for name in pq.read_table(file)["id"].to_pylist()}
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"peak_memory_mb": round(peak / 1000), "removed": sorted(map(int, every - kept))}))


if __name__ == "__main__":
    main()
