# Settle
# SPDX-License-Identifier: Apache-2.0
"""Three nats-servers on loopback, the engine of a cluster."""

import os
import shutil
import subprocess
import sys

from . import programs
from .broker import reserve_port

sys.path.append(os.path.join(programs.FOLDER, "..", "Tests", "cluster"))
import engine as administration  # noqa: E402
from processes import ENGINES, reachable, wait_until  # noqa: E402

NATS_SERVER = shutil.which("nats-server", path=os.environ.get("PATH", "") + ":/usr/sbin")


class Engine:
    """A context manager. The stores are empty and on disk, in the settings' defaults."""

    def __init__(self):
        self.folder = programs.folder()
        reserved = [reserve_port() for _ in range(2 * len(ENGINES))]
        self.holders = [holder for holder, _ in reserved]
        ports = [port for _, port in reserved]
        self.ports, route_ports = ports[::2], ports[1::2]
        routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in route_ports)
        self.processes = []
        for name, port, route_port in zip(ENGINES, self.ports, route_ports):
            path = f"{self.folder}/{name}.conf"
            with open(path, "w", encoding="utf-8") as file:
                file.write(
                    f"server_name: {name}\nlisten: 127.0.0.1:{port}\n"
                    f'jetstream {{store_dir: "{self.folder}/{name}", max_file_store: 4294967296}}\n'
                    f"cluster {{name: bench, listen: 127.0.0.1:{route_port}, routes: [{routes}]}}\n"
                )
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            self.processes.append(programs.start([NATS_SERVER, "-c", path], **quiet))
        for port in self.ports:
            wait_until(lambda port=port: reachable(port), 10, "a nats-server")
        self.elect()

    def elect(self):
        """Waits until the servers have a leader: the time that it takes is not a gateway's."""
        administrator = administration.Engine(self.ports)
        administrator.create("bench", "bench")
        administrator.client.call("STREAM.DELETE.bench", timeout=5)
        administrator.client.close()

    @property
    def urls(self):
        return ", ".join(f"nats://127.0.0.1:{port}" for port in self.ports)

    def __enter__(self):
        return self

    def __exit__(self, *rest):
        for process in self.processes:
            programs.end(process)
        for holder in self.holders:
            holder.close()
        programs.forget(self.folder)
