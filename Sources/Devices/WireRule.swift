// Settle
// SPDX-License-Identifier: Apache-2.0

/// How a property's values become wire values and back.
package struct WireRule: Hashable, Sendable {
  package init() {}
}
