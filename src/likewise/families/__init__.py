"""Locality-sensitive families, one file per kind of item; how they are combined, and what they find.

From the ground up; each file imports only files listed above it:

curves      AND- and OR-constructions: probability, fixed point, steepest point
probing     multi-probe search: the buckets next to a query's own
functions   what a family provides: numbered hash functions and collision probabilities
buckets     keys of several hash values, and sorted tables of them
running     composed families at work: candidate pairs of a collection, and an index for queries
near        (c, r)-near neighbours
plotting    plots of curves
algebra     the base class of families; AND, OR and cascades of them
projections tables of vectors, projected on many directions, and measured pair by pair
given_directions directions that the user gives, and the angle that two sketches tell
explicit    minhashing by the book: explicit permutations, given hash functions, every step visible
signatures  signatures that know how they were made, in memory and in files
first_cut   all pairs of signatures that agree somewhere, counted
sketches    merging the signatures of parts; b-bit signatures
minhash     sets: minhash signatures of any length from a seed
weighted    bags and weighted sets: consistent weighted sampling
simhash     text as vectors of terms: SimHash
vectors     points and directions: hyperplanes, lines, sampled bits, unary code
stripes     points, with one bit per function
grids       fingerprints as sets of grid squares, three squares at a time
fields      records: identical field values
banding     b bands of r rows: the S-curve, its thresholds and areas
candidates  from a table of signatures to candidate pairs
tuning      bands and rows for a threshold, a recall, and a corpus
"""
