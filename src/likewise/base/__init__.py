"""Foundations for every package above: arrays, tokens, threads, memory, random numbers, copies, checks, run log."""
