"""datatrove: its three stages of sentence deduplication, with lines for sentences, on its local executor.

    python datatrove_lines_run.py CORPUS OUT

The corpus is a folder of Parquet files, one for each process. One line at a time is compared (n_sentences=1), lines of
fewer than five words stay, and no document is removed for being short. Words are not looked for, numerals and
diacritics stay as they are: the normaliser leaves lower case without punctuation. What is printed last is JSON.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]
from datatrove.pipeline.dedup import (  # type: ignore[import-not-found]
    SentenceDedupFilter,
    SentenceDedupSignature,
    SentenceFindDedups,
)
from datatrove.pipeline.dedup.sentence_dedup import SentDedupConfig  # type: ignore[import-not-found]
from datatrove.pipeline.readers import ParquetReader  # type: ignore[import-not-found]
from datatrove.pipeline.writers import ParquetWriter  # type: ignore[import-not-found]
from datatrove.utils.hashing import HashConfig  # type: ignore[import-not-found]
from datatrove.utils.text import TextNormConfig  # type: ignore[import-not-found]


def lines_of(folder: Path) -> int:
    """How many lines with a letter the documents of a folder have."""
    texts = (text for file in sorted(folder.rglob("*.parquet")) for text in pq.read_table(file)["text"].to_pylist())
    return sum(bool(line.strip()) for text in texts for line in text.splitlines())


def main() -> None:
    """Run the three stages."""
    corpus, out = map(Path, sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    files = len(list(corpus.glob("*.parquet")))
    config = SentDedupConfig(
        n_sentences=1,
        split_sentences=False,
        only_dedup_in_index=False,
        min_doc_words=0,
        min_num_sentences=0,
        min_words_to_remove_span=5,
        norm_config=TextNormConfig(norm_unicode_diacritics=False, norm_numbers=False),
        hash_config=HashConfig(precision=64, hash_fc="xxhash"),
    )

    def execute(name: str, steps: list[Any], tasks: int) -> None:
        logs = str(out / "logs" / name)
        LocalPipelineExecutor(steps, tasks=tasks, workers=2, logging_dir=logs, start_method="fork").run()

    def reader() -> Any:
        return ParquetReader(str(corpus), glob_pattern="*.parquet")

    signatures, found, kept = (str(out / name) for name in ("signatures", "found", "kept"))
    execute("signatures", [reader(), SentenceDedupSignature(signatures, finder_workers=2, config=config)], files)
    execute("found", [SentenceFindDedups(signatures, found, config=config, lines_to_buffer=-1)], 2)
    execute("kept", [reader(), SentenceDedupFilter(found, config=config), ParquetWriter(kept)], files)
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(json.dumps({"peak_memory_mb": round(peak / 1000), "cuts": lines_of(corpus) - lines_of(Path(kept))}))


if __name__ == "__main__":
    main()
