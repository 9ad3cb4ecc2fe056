"""Crowds: groups of items so large and so similar that their pairs cannot be compared one by one."""
