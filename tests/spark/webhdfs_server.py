"""An HDFS that speaks WebHDFS, with a folder behind it: what Spark's own client needs, and HDFS's rules for names.

A file is written and read in two steps, as from a cluster: the first answer names the machine that has the data.
"""

import json
import shutil
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

PREFIX = "/webhdfs/v1"
BLOCK = 128 << 20


class Handler(BaseHTTPRequestHandler):
    """One request of a client."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, *_):
        """Say nothing."""

    def do_GET(self):
        self._do()

    do_PUT = do_POST = do_DELETE = do_GET

    def _do(self):
        parts = urlsplit(self.path)
        self.given = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        self.name = unquote(parts.path.removeprefix(PREFIX)).rstrip("/") or "/"
        self.place = self.server.place(self.name)
        operation = self.given["op"].upper()
        self.server.seen.append((operation, self.name))
        if operation in ("OPEN", "CREATE", "APPEND") and "from" not in self.given:
            if operation != "CREATE" and not self.place.is_file():
                return self._missing()
            host, port = self.server.server_address
            return self._answer(307, b"", Location=f"http://{host}:{port}{parts.path}?{parts.query}&from=node")
        try:
            return getattr(self, f"_{operation.lower()}")()
        except FileNotFoundError:
            return self._missing()
        except AttributeError:
            return self._fail(400, "UnsupportedOperationException", f"{operation} is not supported")

    def _answer(self, code, body, **headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _tell(self, value, code=200):
        """Answer in JSON, without a word about its type: the client in PySpark has no parser for that."""
        self._answer(code, json.dumps(value).encode())

    def _fail(self, code, name, message):
        package = "java.io" if name.startswith("File") else "java.lang"
        told = {"exception": name, "javaClassName": f"{package}.{name}", "message": message}
        self._tell({"RemoteException": told}, code)

    def _missing(self):
        self._fail(404, "FileNotFoundException", f"File does not exist: {self.name}")

    def _body(self):
        """The content of a request, whole or in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            found += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return found

    def _status(self, path, suffix=""):
        facts, folder = path.stat(), path.is_dir()
        return {
            "accessTime": 0, "blockSize": 0 if folder else BLOCK, "childrenNum": 0, "fileId": facts.st_ino,
            "group": "users", "length": 0 if folder else facts.st_size,
            "modificationTime": int(facts.st_mtime * 1000), "owner": "user", "pathSuffix": suffix,
            "permission": "755", "replication": 0 if folder else 1, "storagePolicy": 0,
            "type": "DIRECTORY" if folder else "FILE",
        }  # fmt: skip

    def _getfilestatus(self):
        self._tell({"FileStatus": self._status(self.place)})

    def _liststatus(self):
        if self.place.is_dir():
            found = [self._status(path, path.name) for path in sorted(self.place.iterdir())]
        else:
            found = [self._status(self.place)]
        self._tell({"FileStatuses": {"FileStatus": found}})

    def _getcontentsummary(self):
        files = [path for path in self.place.rglob("*") if path.is_file()]
        length = sum(path.stat().st_size for path in files)
        told = {"directoryCount": 1, "fileCount": len(files), "length": length, "quota": -1, "spaceConsumed": length}
        self._tell({"ContentSummary": {**told, "spaceQuota": -1, "typeQuota": {}}})

    def _getfileblocklocations(self):
        host, port = self.server.server_address
        told = {"cachedHosts": [], "corrupt": False, "hosts": [host], "length": self.place.stat().st_size, "offset": 0}
        told |= {"names": [f"{host}:{port}"], "storageTypes": ["DISK"], "topologyPaths": [f"/rack/{host}:{port}"]}
        self._tell({"BlockLocations": {"BlockLocation": [told]}})

    def _gethomedirectory(self):
        self._tell({"Path": "/user"})

    def _mkdirs(self):
        self.place.mkdir(parents=True, exist_ok=True)
        self._tell({"boolean": True})

    def _setpermission(self):
        self._answer(200, b"")

    def _settimes(self):
        self._answer(200, b"")

    def _delete(self):
        there = self.place.exists()
        if self.place.is_dir():
            shutil.rmtree(self.place)
        elif there:
            self.place.unlink()
        self._tell({"boolean": there})

    def _rename(self):
        """Nothing is replaced; a name that is a folder means a place in it; the folder above must be there."""
        target = self.server.place(self.given["destination"])
        if target.is_dir():
            target = target / self.place.name
        possible = self.place.exists() and not target.exists() and target.parent.is_dir()
        if possible:
            self.place.rename(target)
        self._tell({"boolean": possible})

    def _create(self):
        content = self._body()
        if self.place.exists() and self.given.get("overwrite") != "true":
            return self._fail(403, "FileAlreadyExistsException", f"{self.name} is there already")
        self.place.parent.mkdir(parents=True, exist_ok=True)
        self.place.write_bytes(content)
        return self._answer(201, b"")

    def _open(self):
        begin = int(self.given.get("offset", 0))
        end = begin + int(self.given["length"]) if "length" in self.given else None
        self._answer(200, self.place.read_bytes()[begin:end])


class WebHdfs(ThreadingHTTPServer):
    """The server. seen: what was asked of it, operation and path."""

    daemon_threads = True

    def __init__(self, root):
        super().__init__(("127.0.0.1", 0), Handler)
        self.root = Path(root)
        self.seen = []

    def place(self, name):
        """The local file behind a path."""
        return self.root / name.lstrip("/")

    @property
    def url(self):
        """The address of its root, for Spark."""
        host, port = self.server_address
        return f"webhdfs://{host}:{port}"


@contextmanager
def served(root):
    """Serve a folder until the block ends."""
    server = WebHdfs(root)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
