// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <libfyaml.h>

// The events' data sit in an anonymous union; these give the one token that is of interest.

/// The value of a scalar event.
static inline struct fy_token *_Nullable settle_scalar_token(struct fy_event *_Nonnull event) {
  return event->scalar.value;
}

/// The name that an alias event refers to.
static inline struct fy_token *_Nullable settle_alias_token(struct fy_event *_Nonnull event) {
  return event->alias.anchor;
}

/// The name that a scalar, sequence or mapping gives itself, if it does.
static inline struct fy_token *_Nullable settle_anchor_token(struct fy_event *_Nonnull event) {
  switch (event->type) {
  case FYET_SCALAR: return event->scalar.anchor;
  case FYET_SEQUENCE_START: return event->sequence_start.anchor;
  case FYET_MAPPING_START: return event->mapping_start.anchor;
  default: return NULL;
  }
}

/// The tag of a scalar, sequence or mapping, if it has one.
static inline struct fy_token *_Nullable settle_tag_token(struct fy_event *_Nonnull event) {
  switch (event->type) {
  case FYET_SCALAR: return event->scalar.tag;
  case FYET_SEQUENCE_START: return event->sequence_start.tag;
  case FYET_MAPPING_START: return event->mapping_start.tag;
  default: return NULL;
  }
}
