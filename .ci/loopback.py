# Settle
# SPDX-License-Identifier: Apache-2.0
"""Ports of 127.0.0.1 for the servers that a check starts."""

import socket


def reserve_port():
    """A socket that holds a port of 127.0.0.1, and that port.

    A server that sets SO_REUSEADDR may listen there; the kernel gives the port to nobody else as
    long as the socket is open.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    return holder, holder.getsockname()[1]
