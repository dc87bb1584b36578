# Settle
# SPDX-License-Identifier: Apache-2.0
"""Checks the HTTP API of a gateway with programs that were not made for it.

Starts a private broker and a gateway on ports of their own, and ends both whatever happens.
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import metrics
from metrics import Mistake

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))
from loopback import reserve_port  # noqa: E402

TESTER = os.path.join(os.path.dirname(sys.executable), "schemathesis")
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
# Of one run of the tester, in seconds; usually it is a tenth.
TIME_LIMIT = 300
libc = ctypes.CDLL(None)


def accepts(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_until(what, holds, process, log):
    """Waits for `holds()`, as long as the process lives."""
    end = time.monotonic() + 20
    while not holds():
        if process.poll() is not None or time.monotonic() > end:
            raise Mistake(f"{what}: {open(log).read()[-2000:]}")
        time.sleep(0.05)


@contextlib.contextmanager
def running(arguments, log=None, **options):
    """A process that ends with this block, and with this process; it writes into `log`, if given."""
    with open(log, "w") if log else contextlib.nullcontext() as output:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: libc.prctl(DIE_WITH_PARENT, signal.SIGKILL),
            **options,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextlib.contextmanager
def broker(folder):
    """A broker on a port of its own, which is returned."""
    holder, port = reserve_port()
    configuration = os.path.join(folder, "mosquitto.conf")
    with open(configuration, "w") as file:
        file.write(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        if os.getuid() == 0:
            file.write("user root\n")
    path = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    program = shutil.which("mosquitto", path=path)
    if program is None:
        raise Mistake("mosquitto is not installed")
    log = os.path.join(folder, "mosquitto.log")
    with holder, running([program, "-c", configuration], log) as process:
        wait_until("the broker does not listen", lambda: accepts(port), process, log)
        yield port


class Gateway:
    """A gateway that is connected and serves HTTP."""

    def __init__(self, process, port, token):
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.token = token

    def ask(self, method, path, body=None):
        """The status and the text of an answer; the token goes along."""
        request = urllib.request.Request(self.url + path, method=method)
        if self.token:
            request.add_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.read().decode()

    def is_ready(self):
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False


@contextlib.contextmanager
def gateway(program, broker_port, folder, token=None):
    settings = {
        "mqtt": {"url": f"mqtt://127.0.0.1:{broker_port}"},
        "socket": os.path.join(folder, "settle.sock"),
        "devices": folder,
        "http": {"listen": ["127.0.0.1:0"]},
        "journal": {"path": os.path.join(folder, "journal.db")},
        # Over a connection of its own each device does at once what it is told.
        "brokers": {"devices": {"url": f"mqtt://127.0.0.1:{broker_port}"}},
        "routes": [
            {
                "from": {"broker": "devices", "topic": f"{name}/set/+"},
                "to": {"broker": "devices", "topic": f"{name}/+"},
                "policy": {"delay": 0},
            }
            for name in ("lamp", "boiler")
        ],
        "policy": {
            kind: {"delay": "5ms"}
            for kind in ("number", "integer", "boolean", "choice", "text", "color", "action")
        },
    }
    os.mkdir(folder)
    shutil.copy(os.path.join(HERE, "devices.yaml"), folder)
    if token:
        settings["http"]["token_file"] = os.path.join(folder, "token")
        with open(settings["http"]["token_file"], "w", opener=private) as file:
            file.write(token)
    configuration = os.path.join(folder, "settle.conf")
    with open(configuration, "w") as file:
        json.dump(settings, file)
    log = os.path.join(folder, "gateway.log")
    with running([program, "run", "--config", configuration], log) as process:
        wait_until("the gateway does not serve HTTP", lambda: http_port(log), process, log)
        fresh = Gateway(process, http_port(log), token)
        wait_until("the gateway is not ready", fresh.is_ready, process, log)
        try:
            yield fresh
        except Mistake:
            print(open(log).read()[-2000:], file=sys.stderr)
            raise
        process.terminate()
        if process.wait(20) != 0:
            raise Mistake(f"the gateway ended badly: {open(log).read()[-2000:]}")


def http_port(log):
    """Where the gateway listens, as its log says; `None` before it does."""
    found = re.search(r"HTTP listens address=127\.0\.0\.1:(\d+)", open(log).read())
    return found and int(found[1])


def private(path, flags):
    return os.open(path, flags, 0o600)


@contextlib.contextmanager
def pulse(gateway):
    """Changes one value all the time, so that something happens in the event streams."""
    stopped = threading.Event()

    def beat():
        value = 0
        while not stopped.wait(0.02):
            value += 1
            try:
                gateway.ask("PUT", "/v1/devices/pulse/level", value % 100)
            except OSError:
                return

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def fixed(examples):
    """The same requests each time, at most so many for each operation in each phase."""
    return "--generation-deterministic", "--max-examples", str(examples)


def test_requests(gateway, folder, *options):
    """Lets the tester make requests up from the document that the gateway serves."""
    environment = dict(os.environ, SCHEMATHESIS_HOOKS="hooks", PYTHONPATH=HERE)
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    arguments = [TESTER, "--config-file", os.path.join(HERE, "schemathesis.toml"), "run"]
    arguments += [gateway.url + "/v1/openapi.json", *options]
    if gateway.token:
        arguments += ["--header", f"Authorization: Bearer {gateway.token}"]
    with running(arguments, cwd=folder, env=environment) as tester, pulse(gateway):
        try:
            code = tester.wait(None if "--max-time" in options else TIME_LIMIT)
        except subprocess.TimeoutExpired:
            raise Mistake(f"the tester was not ready after {TIME_LIMIT} s") from None
        if code != 0:
            raise Mistake("the tester found something")
    if not gateway.is_ready():
        raise Mistake("the gateway is not ready any more")


def main():
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    program = os.path.abspath(sys.argv[1])
    # With a time: other requests each time, until it is over.
    long = ("--max-time", sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(prefix="settle-api-") as folder:
        with broker(folder) as port:
            with gateway(program, port, os.path.join(folder, "open")) as open_gateway:
                metrics.check_values(open_gateway)
                test_requests(open_gateway, folder, *(long or fixed(25)))
                metrics.check_run(open_gateway, {200: 100, 202: 100, 404: 20, 422: 50})
            token = "0123456789abcdef0123456789abcdef"
            with gateway(program, port, os.path.join(folder, "guarded"), token) as guarded:
                test_requests(guarded, folder, *fixed(5), "--phases", "examples,coverage")
                metrics.check_run(guarded, {200: 20, 202: 10, 401: 20})


if __name__ == "__main__":
    try:
        main()
    except Mistake as mistake:
        sys.exit(f"The API check failed: {mistake}")
