"""Locality-sensitive families, one file for each kind of item, their algebra, and the curves that say what they find.

algebra     what a family is; AND, OR and cascades of them: probability, sensitivity, fixed point, steepest point
running     composed families at work: candidates of a collection, and an index to ask
near        near neighbours within a distance, with a promise
probing     the buckets next to that of a query
plotting    curves drawn
minhash     sets: the real minhash, signatures of any length from a seed
weighted    bags and weighted sets: consistent weighted sampling
vectors     points and directions: hyperplanes, lines, sampled bits, unary code
stripes     points with one bit a function
terms       text as vectors of terms: SimHash
grids       fingerprints as sets of grid squares: three squares at a time
fields      records: identical field values
sketches    signatures of unions from those of parts; signatures of a few bits a slot
explicit    minhashing by the book: permutations written out, hash functions given, every step shown
banding     b bands of r rows: the S-curve, its thresholds, its areas
tuning      bands and rows for a threshold, a recall, and a corpus
randomness  random numbers that depend on a seed and a place alone
"""
