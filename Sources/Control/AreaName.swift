// Settle
// SPDX-License-Identifier: Apache-2.0

/// Compares the names of areas as people type them.
package enum AreaName {
  /// The name as one word in small letters: `Living room` becomes `living-room`.
  ///
  /// Names with the same word name the same area.
  package static func word(_ name: String) -> String {
    name.lowercased().split { !$0.isLetter && !$0.isNumber }.joined(separator: "-")
  }
}
