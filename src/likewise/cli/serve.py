"""`likewise serve`: an index over HTTP."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from likewise.cli import options as shared
from likewise.cli import show


@click.command(
    epilog="""\b
Examples:
  likewise serve library/                                  (a page at http://127.0.0.1:8000/)
  openssl rand -hex 32 > token && likewise serve library/ --token-file token
  likewise serve library/ --host 0.0.0.0 --token-file token --max-body 64MB
  likewise serve library/ --host 0.0.0.0 --token-file token --certificate cert.pem --key key.pem   (HTTPS)

\b
  curl http://127.0.0.1:8000/query -H 'Content-Type: application/json' -d '{"text": "A rose is a rose is a rose!"}'
  curl http://127.0.0.1:8000/items -H 'Content-Type: application/json' -H "Authorization: Bearer $(cat token)" \\
    -d '{"ids": ["rose"], "items": ["a rose is a rose is a rose"]}'

\b
Every request is a line of JSON on standard output; with --quiet, only the start and the stop are.
SIGTERM or Ctrl-C finishes the requests that have begun.
docs/serve.md describes the service."""
)
@click.argument("path", metavar="INDEX")
@shared.word("--host", "ADDRESS", "127.0.0.1", "Address to listen on; any but loopback needs a token.")
@shared.whole("--port", 8000, "Port to listen on; 0: any free port.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A file with the token that additions and removals need, or with several, one a line, each after 'read' or "
    "'write'; it is read again when it changes.  [default: the variable LIKEWISE_TOKEN]",
)
@click.option(
    "--certificate", metavar="FILE", type=click.Path(path_type=Path), help="A certificate, in PEM: serve HTTPS."
)
@click.option("--key", metavar="FILE", type=click.Path(path_type=Path), help="The key of the certificate, in PEM.")
@click.option(
    "--private", is_flag=True, help="Require the token for queries too; always on if other machines can connect."
)
@click.option(
    "--allow-host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="Another host name of the service, such as that of a reverse proxy in front of it. Repeatable. On "
    "loopback, names other than localhost are refused without it.",
)
@shared.word("--max-body", "SIZE", "16MiB", "Largest request.")
@shared.whole("--max-batch", 1000, "Maximum number of items in a request.")
@shared.number(
    "--timeout", 30.0, "Timeout in seconds for receiving a request, answering it, and its answer being read."
)
@shared.whole("--max-waiting", 64, "Maximum number of queries waiting for a thread; more are refused with status 503.")
@shared.whole(
    "--max-writes", 8, "Maximum number of additions and removals waiting for the one in progress; more are refused."
)
@shared.whole("--max-connections", 4096, "Maximum number of open connections; a new one closes an idle or slow one.")
@click.option(
    "--max-per-client",
    metavar="N",
    type=int,
    help="Maximum number of open connections from one address, except this machine.  [default: a quarter of "
    "--max-connections]",
)
@click.option("--threads", type=int, help="Queries that run concurrently.  [default: all cores]")
@shared.quiet
def serve(
    path: str,
    host: str,
    port: int,
    token_file: Path | None,
    certificate: Path | None,
    key: Path | None,
    private: bool,
    hosts: tuple[str, ...],
    max_body: str,
    max_batch: int,
    timeout: float,
    max_waiting: int,
    max_writes: int,
    max_connections: int,
    max_per_client: int | None,
    threads: int | None,
) -> None:
    """Serve an index over HTTP, with a web page to try it. Needs pip install 'likewise[serve]'."""
    from likewise.base.extras import need

    need("the service", "serve")
    from likewise import Index
    from likewise.base import checks
    from likewise.errors import ParameterError
    from likewise.serve import ServiceSettings, make_app, server
    from likewise.serve.guard import json_lines
    from likewise.serve.service import Service
    from likewise.serve.settings import LOOPBACK, TokenRoles, token_of_environment

    checks.whole("serve", "port", port, 0, 65535)
    checks.whole("serve", "max_connections", max_connections, 1)
    if max_per_client is not None:
        checks.whole("serve", "max_per_client", max_per_client, 1)
    if (certificate is None) != (key is None):
        raise ParameterError("The 'certificate' and 'key' parameters of serve belong together.")
    pair = server.TlsFiles(certificate, key) if certificate is not None and key is not None else None
    token = None if token_file is not None else token_of_environment()
    settings = ServiceSettings(
        token, private, hosts, max_body, max_batch, timeout, max_waiting, max_writes, threads, token_file
    )
    tokens = TokenRoles(token, token_file)
    with Index.open(path, threads=1) as index, server.listen(host, port) as bound:
        public = server.check_open(bound, tokens.any)
        names = hosts if public else (*LOOPBACK, *hosts)
        settings = replace(settings, private=private or public, hosts=names)
        show.announce_compilation()
        Service(index, settings, tokens).warm()
        log = json_lines(sys.stdout)
        url = server.url_of(bound, pair is not None)
        loud, count = not show.quiet(), len(index)

        def started() -> None:
            log({"event": "start", "url": url, "items": count, "writable": tokens.writable})
            if sys.stderr.isatty() and loud:
                show.say(f"serving {index.where} on {url} (Ctrl-C to stop)", err=True)

        app = make_app(index, settings, log=log if loud else None, tokens=tokens)
        server.serve_app(app, bound, timeout, log, max_connections, max_per_client, pair, started)
        log({"event": "stop"})
