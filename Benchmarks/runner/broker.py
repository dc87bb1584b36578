# Settle
# SPDX-License-Identifier: Apache-2.0
"""A private mosquitto on a free loopback port."""

import os
import shutil
import socket
import subprocess
import sys
import time

from . import programs

sys.path.append(os.path.join(programs.FOLDER, "..", ".ci"))
from loopback import reserve_port  # noqa: E402

MOSQUITTO = shutil.which("mosquitto", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Broker:
    """A context manager. Its queues are unbounded, so that nothing is dropped."""

    def __init__(self):
        self.folder = programs.folder()
        self.holder, self.port = reserve_port()
        path = f"{self.folder}/mosquitto.conf"
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f"listener {self.port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n"
                "max_queued_messages 0\nmax_queued_bytes 0\nlog_type error\n"
            )
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = programs.start([MOSQUITTO, "-c", path], **quiet)
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.01)
        sys.exit("bench: mosquitto does not start")

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        programs.end(self.process)
        self.holder.close()
        programs.forget(self.folder)
