"""Vectors: all pairs within a distance, and the nearest neighbours of every vector.

load     arrays, .npy files, columns of lists → one table of numbers or bits, and ids
spaces   the four distances: angle, L2, L1, Hamming; exact for a pair, fast for a block
sketch   vectors → bits that agree the more often, the closer two vectors are
plan     how many bits, in which groups, in how many tables: the cheapest that keep the recall
operands vectors ready for blocks of scores in single or double precision, with bounds on what rounding does
heads    the part of a vector that says most, compared before the rest
scan     the k nearest of some vectors among all, block by block, exact whatever the precision
cells    the k nearest of some vectors among those in the same part of the space
tables   bits → pairs that share a bucket of a table, verified
pairs    all pairs within a distance
nearest  the k nearest neighbours of every vector
"""
