# Settle
# SPDX-License-Identifier: Apache-2.0
"""Debian roots below .build/roots, for programs that this machine's release does not have."""

import os
import re
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INSTALLED = f"{ROOT}/.build/roots"


class Missing(Exception):
    """Something cannot be installed here, and why."""


def run(*command):
    """The output of a command; `Missing` with its last line if it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    except OSError as problem:
        raise Missing(f"{command[0]}: {problem.strerror}") from problem
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise Missing(f"{command[0]}: {lines[-1] if lines else done.returncode}")
    return done.stdout


def debian_root(suite, package):
    """A Debian root with this package, made the first time."""
    path = f"{INSTALLED}/{package}-{suite}"
    if not os.path.exists(f"{path}/.complete"):
        run(f"{ROOT}/.ci/install-deps", "--only", "mmdebstrap")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(INSTALLED, exist_ok=True)
        mirror = re.search(r"https?://\S+?/debian\b", run("apt-get", "indextargets"))
        # A mirror that stands still is good enough.
        run("mmdebstrap", "--quiet", '--aptopt=Acquire::Check-Valid-Until "false"', "--variant=minbase",
            f"--include={package}", suite, path, mirror[0] if mirror else "http://deb.debian.org/debian")
        with open(f"{path}/etc/hosts", "w", encoding="ascii") as file:
            file.write("127.0.0.1\tlocalhost\n")
        open(f"{path}/.complete", "w", encoding="ascii").close()
    return path


def needed(package):
    """The packages that a package depends on; of several that would do, one without a daemon."""
    text = subprocess.run(
        ["dpkg-deb", "--field", package, "Depends"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    names = [re.findall(r"[a-z][a-z0-9.+-]+", re.sub(r"\(.*?\)", "", one)) for one in text.split(",")]
    return [next((name for name in any_of if "standalone" in name), any_of[0]) for any_of in names]
