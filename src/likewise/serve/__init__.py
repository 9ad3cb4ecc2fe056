"""An index as a web service: queries, additions and removals over HTTP, and a page to try it with."""

from likewise.serve.app import make_app
from likewise.serve.settings import ServiceSettings

__all__ = ["ServiceSettings", "make_app"]
