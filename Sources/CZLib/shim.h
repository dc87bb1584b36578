// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <zlib.h>

// deflateInit2 is a macro, which Swift does not import. 15 + 16 is the largest window, in the format of gzip.
static inline int settle_gzip_start(z_stream *stream, int level) {
  return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}
