# Settle
# SPDX-License-Identifier: Apache-2.0
"""Serves the panel's files from the source tree and forwards all other requests to a gateway, so that a change of a file
shows after a reload of the page, without a build.

    python3 Tests/panel/serve.py http://127.0.0.1:8484 [PORT]"""

import http.client
import mimetypes
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FILES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../Sources/Panel/Resources")
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".webmanifest": "application/manifest+json"}
KEPT = {"content-type", "content-security-policy", "retry-after", "etag", "content-encoding", "x-content-type-options", "referrer-policy"}


def with_scripts(page):
    """The page with the links to all scripts, as the gateway serves it."""
    names = sorted(name for name in os.listdir(FILES) if name.endswith(".js"))
    links = "".join(f'<link rel="modulepreload" href="panel/{name}">\n' for name in names)
    return page.replace(b"<script", links.encode() + b"<script", 1)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def own_file(self):
        path = urlsplit(self.path).path
        if path == "/":
            return "index.html"
        name = path.removeprefix("/panel/")
        return name if name != path and os.path.isfile(os.path.join(FILES, os.path.basename(name))) else None

    def answer(self):
        name = self.own_file()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)) or None
        gateway = http.client.HTTPConnection(self.server.gateway, timeout=60)
        try:
            headers = {key: value for key, value in self.headers.items() if key.lower() not in ("connection", "if-none-match", "accept-encoding" if name else "")}
            gateway.request(self.command, "/" if name else self.path, body, headers)
            found = gateway.getresponse()
            self.send_response(found.status)
            for key, value in found.getheaders():
                if key.lower() == "content-security-policy" and "manifest-src" not in value:
                    value = value.replace("base-uri", "manifest-src 'self'; base-uri")
                if key.lower() in KEPT - ({"content-type"} if name == "index.html" else {"content-type", "etag"} if name else set()):
                    self.send_header(key, value)
            if name:
                self.send_header("Content-Type", TYPES.get(os.path.splitext(name)[1]) or mimetypes.guess_type(name)[0])
            self.end_headers()
            if name and self.command != "HEAD":
                with open(os.path.join(FILES, name), "rb") as file:
                    self.wfile.write(with_scripts(file.read()) if name == "index.html" else file.read())
            if name:
                return
            while part := found.read1(65536):
                self.wfile.write(part)
        except (OSError, http.client.HTTPException):
            # The gateway is gone: the browser sees a lost connection.
            pass
        finally:
            gateway.close()

    do_GET = do_POST = do_PUT = do_HEAD = answer


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, gateway, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.gateway = gateway


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    server = Server(urlsplit(sys.argv[1]).netloc, int(sys.argv[2]) if len(sys.argv) > 2 else 8485)
    print(f"http://127.0.0.1:{server.server_port}/")
    server.serve_forever()
