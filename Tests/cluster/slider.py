# Settle
# SPDX-License-Identifier: Apache-2.0
"""A slider that moves: changes of one key on a gateway's control socket, some twenty a second."""

import json
import random
import socket
import threading
import time

STEPS = 20  # a second


class Slider(threading.Thread):
    """Sends 1, 2, 3 and so on, so that the values only rise; `answered(value, answer)` hears each answer."""

    def __init__(self, path, key, answered):
        super().__init__(daemon=True)
        self.key, self.answered = key, answered
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        # When each change was sent; its value is its place, and the first is not sent.
        self.sent, self.answers, self.stopped = [0.0], {}, threading.Event()
        threading.Thread(target=self.listen, daemon=True).start()

    def run(self):
        while not self.stopped.is_set():
            self.send()
            # A hand is not even.
            self.stopped.wait(random.uniform(0.6, 1.4) / STEPS)

    def send(self):
        value = len(self.sent)
        self.sent.append(time.monotonic())
        self.socket.sendall(json.dumps({"key": self.key, "set": value, "id": f"slider-{value}"}).encode() + b"\n")

    def stop(self):
        """Stops where it is; the last value."""
        self.stopped.set()
        self.join()
        return len(self.sent) - 1

    def accepted(self):
        """The values that were accepted so far."""
        return [value for value, answer in list(self.answers.items()) if answer.get("phase") == "accepted"]

    def listen(self):
        try:
            for line in self.socket.makefile("rb"):
                answer = json.loads(line)
                value = int(str(answer.get("id")).removeprefix("slider-"))
                self.answers[value] = answer
                self.answered(value, answer)
        except OSError:
            pass  # Closed.

    def close(self):
        self.socket.close()
