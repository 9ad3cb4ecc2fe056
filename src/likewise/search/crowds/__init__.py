"""Crowds: so many similar documents that their pairs cannot be compared one by one."""
