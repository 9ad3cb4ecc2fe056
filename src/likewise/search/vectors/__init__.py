"""Vectors: all pairs within a distance, and the nearest neighbours of every vector (A9).

given       arrays, .npy files, columns of lists → one table of numbers or bits, and ids
spaces      the four distances: angle, L2, L1, Hamming; exact for a pair, quick for a block
sketching   vectors → bits that agree the more often the nearer two vectors are
planning    how many bits, in which groups, in how many tables: the cheapest that keep the recall
meeting     bits → pairs that meet in a table
joining     `likewise.pairs` for vectors
neighbours  `likewise.nearest`
"""
