# Settle
# SPDX-License-Identifier: Apache-2.0
"""Checks the checker, by all tests beside this file."""

import os
import unittest


def main():
    suite = unittest.defaultTestLoader.discover(os.path.dirname(os.path.abspath(__file__)), "*_test.py")
    return 0 if unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful() else 1
