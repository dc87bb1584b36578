// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a private broker, or a file, folder, pipe or port that it needs, could not be had.
package struct PrivateBrokerError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
