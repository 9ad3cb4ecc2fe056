"""Locality-sensitive families, one file per kind of item; how they are combined, and what they find.

From the ground up; each file imports only files listed above it:

curves      AND- and OR-constructions: probability, fixed point, steepest point
functions   what a family provides: numbered hash functions, collision probabilities, buckets next to a query's own
buckets     keys of several hash values, and sorted tables of them
signatures  signatures that know how they were made, in memory and in files; merged, or of b bits
banding     b bands of r rows: the S-curve, its thresholds and areas
running     families at work: candidate pairs of a collection or its signatures, and an index for queries
near        (c, r)-near neighbours
algebra     the base class of families; AND, OR and cascades of them, and plots of their curves
projections tables of vectors, projected on many directions, random or given, and measured pair by pair
explicit    minhashing by the book: explicit permutations, given hash functions, every step visible
minhash     sets: minhash signatures of any length from a seed
weighted    bags and weighted sets: consistent weighted sampling; text as vectors of terms: SimHash
vectors     points and directions: hyperplanes, lines, sampled bits, unary code
stripes     points, with one bit per function
grids       fingerprints as sets of grid squares, three squares at a time
fields      records: identical field values
tuning      bands and rows for a threshold, a recall, and a corpus
"""
