"""Vectors: all pairs within a distance, and the nearest neighbours of every vector.

load     arrays, .npy files, columns of lists → one table of numbers or bits, and ids
spaces   the four distances: angle, L2, L1, Hamming; exact for a pair, fast for a block
plan     vectors → bits; how many, in which groups, in how many tables: the cheapest that keep the recall
operands vectors ready for blocks of scores in single or double precision, with bounds on what rounding does
scan     the k nearest of some vectors among all, block by block, by their heads first; exact whatever the precision
cells    the k nearest of some vectors among those in the same part of the space
pairs    all pairs within a distance: those that share a bucket of a table, or all, verified
nearest  the k nearest neighbours of every vector

cell_tables  cells that are kept, and asked by queries that come later: those of the index
"""
