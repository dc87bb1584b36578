// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

// A SQLite file system named "faulty": the standard one, whose syncs and writes fail on request.

// Registers it; returns 0 or SQLite's code.
int faulty_install(void);

// From now on syncs and writes of files in the folder of `path` return these codes of SQLite's; 0 lets
// them through.
void faulty_fail(const char *path, int sync_code, int write_code);
