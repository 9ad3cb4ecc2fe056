"""Exact similarity joins (MMDS §3.9). The public door is `likewise.exact`."""
