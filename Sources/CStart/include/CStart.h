// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

// Nothing to call: see start.c.
