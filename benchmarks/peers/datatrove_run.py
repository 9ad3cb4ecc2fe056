"""datatrove: its four stages of MinHash deduplication, signatures, buckets, clusters and filter, on its local executor.

The corpus is a folder of Parquet files: datatrove shares out whole files, so there must be one for each process. It
answers with clusters, and with one survivor of each; no pair is verified.

By default it is set up to be as fast as it can be with our words (lower case, no punctuation). It takes a word
tokenizer of one's own: its normaliser leaves words with one blank between them, so `str.split` is enough. It need
not look for numerals and diacritics. It reads each file of signatures at once and not five lines at a time, as an
example of its developers does. Its processes are forked, which saves importing everything for each stage.

`--plain` is the way of its documentation: English words by spaCy (which needs no model, hence no download), all of its
normaliser, everything else as it is by default.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from common import Arguments, Phases, parser, write_clusters
from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]
from datatrove.pipeline.dedup import (  # type: ignore[import-not-found]
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig  # type: ignore[import-not-found]
from datatrove.pipeline.readers import ParquetReader  # type: ignore[import-not-found]
from datatrove.pipeline.writers import ParquetWriter  # type: ignore[import-not-found]
from datatrove.utils.hashing import HashConfig  # type: ignore[import-not-found]
from datatrove.utils.text import TextNormConfig  # type: ignore[import-not-found]
from datatrove.utils.word_tokenizers import WordTokenizer  # type: ignore[import-not-found]

Integers = npt.NDArray[np.int64]


class DatatroveArguments(Arguments):
    """The arguments only this runner takes."""

    plain: bool


class Blanks(WordTokenizer):  # type: ignore[misc]
    """Words are what stands between blanks."""

    def word_tokenize(self, text: str) -> list[str]:
        """The words."""
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        """Not needed here."""
        raise NotImplementedError

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Not needed here."""
        raise NotImplementedError


class Stages:
    """The four stages, their folders and their settings."""

    def __init__(self, run: DatatroveArguments) -> None:
        self._run = run
        self._files = sorted(run.corpus.glob("*.parquet"))
        self._work = run.out / "work"
        shutil.rmtree(self._work, ignore_errors=True)
        norm = TextNormConfig() if run.plain else TextNormConfig(norm_unicode_diacritics=False, norm_numbers=False)
        hashes = HashConfig(precision=64, hash_fc="xxhash")
        self._config = MinhashConfig(
            n_grams=run.k,
            num_buckets=run.bands,
            hashes_per_bucket=run.rows,
            seed=run.seed,
            norm_config=norm,
            hash_config=hashes,
        )
        self._buffer = {} if run.plain else {"lines_to_buffer": -1}

    def signatures(self) -> None:
        """Stage 1: a signature of each document, one task for each file."""
        words = "eng" if self._run.plain else Blanks()
        step = MinhashDedupSignature(self._folder("signatures"), config=self._config, language=words)
        self._execute("signatures", [self._reader(), step], len(self._files))

    def buckets(self) -> None:
        """Stage 2: documents that follow each other in a bucket, one task for each bucket."""
        step = MinhashDedupBuckets(
            self._folder("signatures"), self._folder("buckets"), config=self._config, **self._buffer
        )
        self._execute("buckets", [step], self._run.bands)

    def clusters(self) -> None:
        """Stage 3: connected components, one task."""
        step = MinhashDedupCluster(
            self._folder("buckets"), self._folder("clusters"), self._config, save_cluster_id=True, **self._buffer
        )
        self._execute("clusters", [step], 1)

    def filter(self) -> None:
        """Stage 4: write what is kept."""
        steps = [self._reader(), MinhashDedupFilter(self._folder("clusters")), ParquetWriter(self._folder("kept"))]
        self._execute("filter", steps, len(self._files))

    def answer(self) -> tuple[Integers, Integers, Integers]:
        """Rows that have company, their clusters, and the rows removed."""
        starts = np.cumsum([0, *(pq.ParquetFile(file).metadata.num_rows for file in self._files)])
        members = [np.empty((0, 2), np.int64)]
        removed = [np.empty(0, np.int64)]
        for number, start in enumerate(starts[:-1].tolist()):
            name = f"{self._folder('clusters')}/{number:06d}"
            if Path(f"{name}.clusters").exists():
                found = np.fromfile(f"{name}.clusters", "<u4").reshape(-1, 2).astype(np.int64)
                members.append(found + np.array([start, 0]))
            if Path(f"{name}.remove").exists():
                removed.append(np.fromfile(f"{name}.remove", "<u4").astype(np.int64) + start)
        rows, clusters = np.concatenate(members).T
        return rows, clusters, np.concatenate(removed)

    def _reader(self) -> ParquetReader:
        return ParquetReader(str(self._run.corpus), text_key=self._run.text, glob_pattern="*.parquet")

    def _folder(self, name: str) -> str:
        return str(self._work / name)

    def _execute(self, name: str, pipeline: list[object], tasks: int) -> None:
        method = {} if self._run.plain else {"start_method": "fork"}
        workers = min(self._run.processes, tasks)
        LocalPipelineExecutor(pipeline, tasks, workers, logging_dir=self._folder(f"logs/{name}"), **method).run()


def main() -> None:
    """Run once."""
    options = parser()
    options.add_argument("--plain", action="store_true")
    run, phase = options.parse_args(namespace=DatatroveArguments()), Phases()
    stages = Stages(run)
    for stage in (stages.signatures, stages.buckets, stages.clusters, stages.filter):
        with phase(stage.__name__):
            stage()
    rows, clusters, removed = stages.answer()
    write_clusters(run.out, pa.array(rows), pa.array(clusters))
    pq.write_table(pa.table({"row": removed}), run.out / "removed.parquet")
    phase.report()


if __name__ == "__main__":
    main()
