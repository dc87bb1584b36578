// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <stddef.h>

// Records what a program that links this does to the files of one folder, in order, so that a test
// can calculate what a power cut at any moment would leave on the disk.
//
// With RECORD_FOLDER and RECORD_LOG in the environment, the functions of the C library that change
// files are replaced by ones that also append to RECORD_LOG:
//
//   W write, T truncate, S sync, C create, R rename, U unlink, F fact
//
// A record is a letter, then three 32-bit numbers in host order (length of the path, offset, length
// of the data), then the path and the data. The data of a rename is its new path.

// Appends a fact, which the program states about itself; nothing without RECORD_LOG.
void recorder_note(const void *bytes, size_t count);
