# Settle
# SPDX-License-Identifier: Apache-2.0
"""Home Assistant's ingress: what a browser asks of Home Assistant passes two hops to an app, in a frame beside the sidebar."""

import http.client
import http.server
import os
import socket
import ssl
import subprocess
import threading

PATH = "/api/hassio_ingress/c2V0dGxl"
#: The name in the browser's address. That of Home Assistant's cloud is over TLS; others are no secure context.
HOST = os.environ.get("HOST") or "127.0.0.1"
IS_ENCRYPTED = HOST.endswith(".ui.nabu.casa")


# This program finds the name, and believes its certificate, as the browser does.
if HOST != "127.0.0.1":
    resolve = socket.getaddrinfo
    socket.getaddrinfo = lambda host, *rest, **more: resolve("127.0.0.1" if host == HOST else host, *rest, **more)
    ssl._create_default_https_context = ssl._create_unverified_context


def page(width):
    """Home Assistant's page: a sidebar of this width, and the app, which gets the address' query and fragment."""
    return f"""<!doctype html><title>Home Assistant</title><meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,"><body style="margin:0;display:flex;height:100vh">
<nav style="flex:0 0 {width}px"></nav><iframe style="flex:1;border:0"></iframe>
<script>document.querySelector("iframe").src = "{PATH}/" + location.search + location.hash;</script>"""


class Hop(http.server.ThreadingHTTPServer):
    """Passes requests on, with their host and origin, and each answer as it comes."""

    daemon_threads = True

    def __init__(self, address, target, source=None):
        super().__init__(address, Handler)
        self.target, self.source = target, source
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A browser that leaves is no error."""

    def path(self, request):
        return request.path

    def headers(self, request):
        """What this hop says of a request, by name."""
        return {}

    def answer(self, request):
        """Its own answer to a request: the status, the type, the body; None passes the request on."""
        return None


class Core(Hop):
    """Home Assistant, with the page that has the sidebar."""

    width = 56

    def encrypt(self, folder):
        """Serves TLS, with a certificate of its own."""
        certificate, key = f"{folder}/core.pem", f"{folder}/core.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", certificate],
                       check=True, stderr=subprocess.DEVNULL)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        # Each connection shakes hands on its own thread.
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    def headers(self, request):
        return {"X-Ingress-Path": PATH, "X-Forwarded-For": request.client_address[0],
                "X-Forwarded-Host": request.headers["Host"], "X-Forwarded-Proto": "https" if IS_ENCRYPTED else "http"}

    def answer(self, request):
        if request.path.startswith(PATH):
            return None
        return (200, "text/html", page(self.width).encode()) if request.path.partition("?")[0] == "/" else (404, "text/plain", b"")


class Supervisor(Hop):
    """The Supervisor, which knows the user."""

    def path(self, request):
        return request.path.removeprefix(PATH)

    def headers(self, request):
        return {"X-Remote-User-Id": "1234", "X-Remote-User-Name": "anna", "X-Remote-User-Display-Name": "Anna",
                "X-Forwarded-For": f"{request.headers['X-Forwarded-For']}, {request.client_address[0]}"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A part of an answer waits for no other.
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        own = self.server.answer(self)
        if own is None:
            return self.forward()
        status, kind, body = own
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        return self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_HEAD = do_GET

    def forward(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        more = {**self.server.headers(self), "Content-Length": str(len(body))}
        hidden = {name.lower() for name in more} | {"transfer-encoding", "connection"}
        kept = [(name, value) for name, value in self.headers.items() if name.lower() not in hidden]
        upstream = http.client.HTTPConnection(*self.server.target, source_address=self.server.source)
        # The end of the answer is that of the connection.
        self.close_connection = True
        try:
            upstream.putrequest(self.command, self.server.path(self) or "/", skip_host=True, skip_accept_encoding=True)
            for name, value in [*kept, *more.items()]:
                upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(part)
        except OSError:
            pass
        finally:
            upstream.close()
