// Settle
// SPDX-License-Identifier: Apache-2.0

#include "build.h"

// C, because the manifest can pass it a text; `make build` does. See Package.swift.
const char *settle_build_commit(void) { return SETTLE_COMMIT; }
