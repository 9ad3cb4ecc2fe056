"""The Spark engine: the search of the local engine as map and shuffle steps over a cluster, and the same answer.

Kernels run over Arrow batches (`mapInArrow`), one thread a task. Each step leaves its result in the folder of the run:

1. read      The input, all columns, with the place of each row in its partition. Rows are numbered from the sizes of
             the partitions, as the local engine numbers them; no row moves.
2. copies    Rows with equal 128-bit digests. The driver compares them; of a large corpus they are shuffled, once per
             task and digest.
3. (driver)  The same sample, tuning and choice of a method as local; its documents are the only ones that travel here.
4. sketch    Text to band keys in one map, copies left out; the certificate's sample is shown each document.
5. groups    Documents with equal sets, by the fingerprints of these: on the driver or, of a large corpus, shuffled.
             The driver also pairs what shares a bucket if it has the memory for the band keys; else, two steps more:
6. buckets   The sizes of the first band's buckets, from which follows which are heavy; and the buckets of so many
             documents that a task could not hold them.
7. candidates  (band, key, row) is shuffled, eight bytes of key and eight of row; a bucket's pairs are written where it
             meets. A pair of several bands is written several times and counted once where pairs meet: that moves fewer
             bytes than the keys of all bands, which a task would need to see that a pair is not new.
8. verify    Documents that are connected by candidates travel to one task, each once, and are compared there.
9. (driver)  Crowds, keepers and components, by the code of the local engine over the rows that have a copy or a pair.
             Of a large corpus, keepers and components are found in rounds of shuffles; such rows stay where they are.
10. write    kept/ and the tables, as partitioned Parquet; run.json last.

Other jobs share the steps of reading and writing: `units` (lines and paragraphs), `decontaminate`, `contained` (what
the driver joins by containment), `grouped_rows` (`--group`), `vectors` and `vector_dedup`.

Of a large corpus the driver holds what is proportional to duplicates and pairs, a bit for each row; of a smaller one
also digests, fingerprints and band keys. docs/spark.md has the numbers.
"""
