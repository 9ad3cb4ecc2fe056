"""Locality-sensitive families, one file each, and the curves that say what they find.

explicit    minhashing by the book: permutations written out, hash functions given, every step shown
banding     b bands of r rows: the S-curve, its thresholds, its areas
"""
