// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a witness, an authority or a faulty connection could not be had.
package struct TestBrokerError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}
