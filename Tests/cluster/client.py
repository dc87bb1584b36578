# Settle
# SPDX-License-Identifier: Apache-2.0
"""A connection to one gateway's control socket."""

STALLED = 1.0  # a client that is silent for so long gets next to no more changes


class SocketClient:
    """A connection to one gateway's control socket; it connects again when it is lost."""

    def __init__(self, path):
        self.path, self.socket, self.retry_at = path, None, 0
        self.reset()

    def reset(self):
        self.lines, self.output, self.input = [], b"", b""
        # (key, value) -> when it was sent, oldest first.
        self.waiting = {}
        self.heard_at = self.trial_at = 0

    def is_usable(self, now):
        if not self.socket or len(self.output) > 1 << 18:
            return False
        if not self.waiting or now - self.heard_at < STALLED or now - next(iter(self.waiting.values())) < STALLED:
            return True
        if now < self.trial_at:
            return False
        self.trial_at = now + 0.5
        return True
