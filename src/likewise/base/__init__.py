"""What every room builds on: arrays, tokens, threads, memory, random numbers, copies, checks and the run log."""
