"""An index as a web service: queries, additions and removals over HTTP, and a page to try it with."""

from likewise.base.extras import installed, missing

if not installed("serve"):
    raise missing("the service", "serve")

from likewise.serve.app import make_app
from likewise.serve.settings import ServiceSettings

__all__ = ["ServiceSettings", "make_app"]
