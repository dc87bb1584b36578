# Settle
# SPDX-License-Identifier: Apache-2.0
"""What a demo prints: permanent lines, and on a terminal a status line below them, and colors."""

import os
import shutil
import sys
import threading
import time

CYAN, GREEN, RED, FAINT, BOLD = "36", "32", "31", "2", "1"
BARS = "▁▂▃▄▅▆▇█"
NAME = 26  # columns


def sparkline(moments, cell=0.1, limit=12):
    """A bar for each tenth of a second between the first and the last moment, wider if there are too many."""
    if not moments:
        return ""
    first, last = moments[0], moments[-1]
    width = max(cell, (last - first) / limit + 1e-9)
    counts = [0] * (int((last - first) / width) + 1)
    for moment in moments:
        counts[int((moment - first) / width)] += 1
    return "".join(" " if not count else BARS[-(-count * len(BARS) // max(counts)) - 1] for count in counts)


class Screen:
    """May be used by several threads."""

    def __init__(self, file=sys.stdout):
        self.file, self.lock, self.has_status, self.start = file, threading.Lock(), False, time.monotonic()
        self.is_terminal = file.isatty() and os.environ.get("TERM") != "dumb"
        self.has_color = self.is_terminal and not os.environ.get("NO_COLOR")

    def restart(self):
        """Times count from now on."""
        self.start = time.monotonic()

    def time(self):
        return f"{time.monotonic() - self.start:6.2f} s  ", FAINT

    def line(self, *pieces):
        """Prints a line; a piece is a text, or a text and its color."""
        with self.lock:
            self.write(self.render(pieces) + "\n")

    def event(self, *pieces):
        self.line(self.time(), *pieces)

    def row(self, name, *pieces):
        self.event(f"{name:{NAME}}", *pieces)

    def status(self, *pieces):
        """Shows a line that the next one replaces; nothing without a terminal."""
        if self.is_terminal:
            with self.lock:
                self.write(self.render(pieces))
                self.has_status = True

    def clear(self):
        with self.lock:
            self.write("")

    def write(self, text):
        erase = "\r\x1b[K" if self.has_status else ""
        self.has_status = False
        self.file.write(erase + text)
        self.file.flush()

    def render(self, pieces):
        room = shutil.get_terminal_size().columns - 1 if self.is_terminal else 1 << 16
        result = ""
        for piece in pieces:
            text, color = (piece, None) if isinstance(piece, str) else piece
            if len(text) > room:
                text = text[:max(0, room - 1)] + "…" if room else ""
            room -= len(text)
            result += f"\x1b[{color}m{text}\x1b[0m" if color and self.has_color and text else text
        return result
