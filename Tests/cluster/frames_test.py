# Settle
# SPDX-License-Identifier: Apache-2.0
"""Entries that two owners have written must be found in a log."""

import unittest

from frames import Frame, LogCheck
from house import partition, probe_devices


def frame(kind, epoch, *rest):
    result = bytes([1, kind])
    while epoch >= 0x80:
        result += bytes([epoch & 0x7F | 0x80])
        epoch >>= 7
    return result + bytes([epoch, 0]) + b"".join(rest) + b"\0\0"


def claim(epoch, member):
    return frame(1, epoch, bytes([len(member)]), member.encode())



class FrameTests(unittest.TestCase):
    def test_frames_are_read(self):
        self.assertEqual((Frame(claim(300, "a")).epoch, Frame(claim(300, "a")).member), (300, "a"))
        self.assertEqual((Frame(frame(2, 1 << 40)).kind, Frame(frame(2, 1 << 40)).epoch), ("changes", 1 << 40))

    def test_an_owner_that_writes_after_the_next_one_is_found(self):
        check = LogCheck()
        for data in (claim(1, "a"), frame(2, 1), claim(2, "b"), frame(2, 2), b"x"):
            check.append(1, "p", data)
        check.append(1, "q", claim(1, "b"))
        self.assertEqual((check.violations, check.unreadable), ([], 1))
        check.append(1, "p", frame(2, 1))
        self.assertEqual(len(check.violations), 1)

    def test_two_owners_of_one_epoch_are_found(self):
        check = LogCheck()
        check.append(1, "p", claim(1, "a"))
        check.append(2, "p", claim(1, "b"))
        self.assertEqual(len(check.violations), 1)

    def test_probes_cover_each_partition(self):
        self.assertEqual([partition(f"probe-{n}") for n in probe_devices()], list(range(64)))
        self.assertEqual(partition("a", 1 << 64), 0xAF63DC4C8601EC8C)  # of the reference
