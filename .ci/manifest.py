# Settle
# SPDX-License-Identifier: Apache-2.0
"""The targets of Package.swift, for the checks that compare them with something."""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def targets():
    # The targets of the benchmarks and of fuzzing are in the manifest only on request.
    requests = ("SETTLE_BENCHMARKS", "SETTLE_FUZZING")
    environment = {name: value for name, value in os.environ.items() if name not in requests}
    # A scratch folder of its own: a build that is running does not delay it.
    with tempfile.TemporaryDirectory() as scratch:
        command = ["swift", "package", "--package-path", ROOT, "--scratch-path", scratch]
        child = subprocess.run(
            [*command, "dump-package"], stdout=subprocess.PIPE, env=environment, check=False
        )
    if child.returncode:
        sys.exit(f"{os.path.basename(sys.argv[0])}: swift package dump-package failed")
    return json.loads(child.stdout)["targets"]


def dependencies(target):
    """The names in items such as `{"byName": ["JSON", null]}`."""
    return {next(iter(item.values()))[0] for item in target["dependencies"]}
