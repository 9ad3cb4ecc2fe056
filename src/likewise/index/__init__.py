"""The persistent index: items on disk, asked for what is similar to a new one."""

from likewise.index.index import Index

__all__ = ["Index"]
