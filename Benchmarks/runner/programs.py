# Settle
# SPDX-License-Identifier: Apache-2.0
"""The measured programs, and every process that a run starts."""

import atexit
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OUT = os.path.join(FOLDER, "out")
RELEASE = os.path.join(FOLDER, "..", ".build", "release")
BENCH = os.path.join(RELEASE, "bench")
# SETTLED names another build of the gateway, such as that of another checkout.
SETTLED = os.environ.get("SETTLED") or os.path.join(RELEASE, "settled")
SETTLE = os.path.join(RELEASE, "settle")

# The references: their sources and libraries.
REFERENCES = {
    "reference": (["main.c", "queue.c"], []),
    "lateness": (["lateness.c", "queue.c"], []),
    "subscriber": (["subscriber.c", "queue.c"], ["-lmosquitto"]),
    "publisher": (["publisher.c"], ["-lmosquitto"]),
    "relay": (["relay.c"], ["-lmosquitto"]),
    "latency": (["latency.c"], ["-lmosquitto"]),
    "flood": (["flood.c"], []),
    "slowclock.so": (["slowclock.c"], ["-shared", "-fPIC"]),
    "allocations.so": (["allocations.c"], ["-shared", "-fPIC"]),
}

_children = []
_folders = []


def reference(name):
    """The path of a C program, built if it is older than its sources."""
    sources, flags = REFERENCES[name]
    folder = os.path.join(FOLDER, "Reference")
    sources = [os.path.join(folder, source) for source in sources]
    path = os.path.join(OUT, name)
    headers = [os.path.join(folder, file) for file in os.listdir(folder) if file.endswith(".h")]
    if not os.path.exists(path) or os.path.getmtime(path) < max(
        os.path.getmtime(source) for source in sources + headers
    ):
        os.makedirs(OUT, exist_ok=True)
        compiler = shutil.which("clang") or shutil.which("cc") or sys.exit("bench: no C compiler")
        command = [compiler, "-O3", "-std=gnu17", "-Wall", "-Wextra", "-o", path]
        subprocess.run(command + sources + flags, check=True)
    return path


def installed(program):
    """A copy, as `make install` makes one: without debug information, which valgrind may not read.

    The kernel maps a file that was written in one go in larger pieces than one that a linker has put
    together, which is worth a fifth of a start.
    """
    path = os.path.join(OUT, "bin", os.path.basename(program))
    built = os.stat(program).st_mtime_ns
    if os.path.exists(path) and os.stat(path).st_mtime_ns == built:
        return path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    stripped = path + ".new"
    subprocess.run(["objcopy", "--strip-all", program, stripped], check=True)
    if os.path.exists(path):
        os.unlink(path)
    shutil.copy(stripped, path)
    os.utime(path, ns=(built, built))
    os.unlink(stripped)
    return path


def _die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def start(command, **options):
    """Starts a process that ends with this one, however this one ends."""
    child = subprocess.Popen(command, preexec_fn=_die_with_parent, **options)
    _children.append(child)
    return child


def end(child, sent=signal.SIGKILL, patience=60):
    """Ends a process that was started here and waits for it."""
    if child.poll() is None:
        child.send_signal(sent)
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child in _children:
        _children.remove(child)


def wait(child, patience):
    """Waits for a process's end; CPU nanoseconds of its whole life."""
    for _ in range(int(patience * 1000)):
        info = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if info is not None:
            break
        time.sleep(0.001)
    else:
        sys.exit(f"bench: {child.args} does not end")
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    end(child)
    return int((usage.ru_utime + usage.ru_stime) * 1e9)


def folder():
    """A folder for sockets and files, gone at the end of the run."""
    path = tempfile.mkdtemp(prefix="settle-bench-")
    _folders.append(path)
    return path


def forget(path):
    shutil.rmtree(path, ignore_errors=True)
    if path in _folders:
        _folders.remove(path)


@atexit.register
def end_all():
    for child in list(_children):
        end(child)
    for path in list(_folders):
        forget(path)


def on_signals_leave():
    """Exits through `end_all` on Ctrl-C and on SIGTERM, without a traceback."""

    def leave(number, frame):
        print(file=sys.stderr)
        sys.exit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, leave)


def output(command, timeout=300, **options):
    """The output of a program, as JSON."""
    child = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    try:
        text, errors = child.communicate(timeout=timeout)
    finally:
        end(child)
    if child.returncode:
        sys.exit(f"bench: {' '.join(command)} ended with {child.returncode}: {errors.decode()}")
    return json.loads(text)


def cpu_of(process):
    """CPU nanoseconds of a process so far, ended threads included."""
    return time.clock_gettime_ns((~process.pid << 3) | 2)


def resident_of(process):
    """Resident memory of a process in bytes: in total, and the part that is not of a file."""
    sizes = {}
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(("VmRSS", "RssAnon")):
                name, value = line.split(":")
                sizes[name] = int(value.split()[0]) * 1024
    return sizes["VmRSS"], sizes["RssAnon"]


def ready(child):
    """Waits until a reference or bridge says `ready` on its standard output."""
    line = child.stdout.readline()
    if line.strip() != b"ready":
        sys.exit(f"bench: {child.args} said {line!r} instead of ready")
