// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a subscriber, a certificate authority or a proxy could not be made.
package struct TestBrokerError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
