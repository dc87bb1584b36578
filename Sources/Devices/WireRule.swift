// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// How a property's values become wire values and back.
package struct WireRule: Hashable, Sendable {
  /// What `true` and `false` leave as; `nil`: JSON booleans.
  package var on: JSONValue?
  package var off: JSONValue?
  /// How numbers are converted; `nil`: not at all.
  package var scale: Scale?
  /// How colors leave.
  package var encoding = ColorEncoding.hex
  /// What words leave as, where that is not the word itself.
  package var words: [String: JSONValue] = [:]

  package init() {}
}
