// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why the demo cannot be shown.
package struct DemoError: Error, Hashable, Sendable {
  package let description: String
  /// The script is to blame, not the machine.
  package let isBadInput: Bool

  init(_ description: String, isBadInput: Bool = false) {
    self.description = description
    self.isBadInput = isBadInput
  }
}
