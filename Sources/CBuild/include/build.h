// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

/// The commit that was built; empty when it is not known.
const char *_Nonnull settle_build_commit(void);
