# Settle
# SPDX-License-Identifier: Apache-2.0
"""Entries that two owners have written must be found in a log."""

import unittest

from frames import Frame, LogCheck
from house import partition, probe_devices


def leb128(number):
    result = b""
    while number >= 0x80:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])


def frame(kind, epoch, number, *rest):
    return bytes([1, kind]) + leb128(epoch) + leb128(number) + b"\0" + b"".join(rest) + b"\0\0"


def claim(epoch, number, member):
    return frame(1, epoch, number, bytes([len(member)]), member.encode())


class FrameTests(unittest.TestCase):
    def test_frames_are_read(self):
        read = Frame(claim(300, 200, "a"))
        self.assertEqual((read.epoch, read.number, read.member), (300, 200, "a"))
        read = Frame(frame(2, 1 << 40, 1 << 50))
        self.assertEqual((read.kind, read.epoch, read.number), ("changes", 1 << 40, 1 << 50))

    def test_an_owner_that_writes_after_the_next_one_is_found(self):
        check = LogCheck()
        for data in (claim(1, 1, "a"), frame(2, 1, 2), claim(2, 3, "b"), frame(2, 2, 4), b"x"):
            check.append(1, "p", data)
        check.append(1, "q", claim(1, 1, "b"))
        self.assertEqual((check.violations, check.unreadable), ([], 1))
        check.append(1, "p", frame(2, 1, 5))
        self.assertEqual(len(check.violations), 1)

    def test_two_entries_that_follow_the_same_one_are_found(self):
        check = LogCheck()
        for data in (claim(1, 1, "a"), frame(2, 1, 2), frame(2, 1, 3), frame(3, 1, 2, b"\0\1")):
            check.append(1, "p", data)
        self.assertEqual(len(check.violations), 1)

    def test_an_entry_may_be_read_again(self):
        check = LogCheck()
        for data in (claim(1, 1, "a"), claim(2, 2, "b"), claim(1, 1, "a"), frame(2, 2, 3)):
            check.append(1, "p", data)
        self.assertEqual(check.violations, [])

    def test_two_owners_of_one_epoch_are_found(self):
        check = LogCheck()
        check.append(1, "p", claim(1, 1, "a"))
        check.append(2, "p", claim(1, 2, "b"))
        self.assertEqual(len(check.violations), 1)

    def test_probes_cover_each_partition(self):
        self.assertEqual([partition(f"probe-{n}") for n in probe_devices()], list(range(64)))
        self.assertEqual(partition("a", 1 << 64), 0xAF63DC4C8601EC8C)  # of the reference
