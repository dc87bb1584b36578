// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <jansson.h>

// json_typeof is a cast-like macro, which Swift does not import.
static inline int settle_json_type(const json_t *json) { return (int)json_typeof(json); }

// json_error_code names a function and an enum; Swift sees only one of them.
static inline int settle_json_error_code(const json_error_t *error) {
  return (int)json_error_code(error);
}

// The text is a char array, which Swift imports as a tuple of 160 members.
static inline const char *settle_json_error_text(const json_error_t *error) {
  return error->text;
}
