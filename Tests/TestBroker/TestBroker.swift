// Settle
// SPDX-License-Identifier: Apache-2.0

package import Operations

/// The broker that tests use: the private one of the demo.
package typealias TestBroker = PrivateBroker

/// Why a subscriber, a certificate authority or a proxy could not be made.
package struct TestBrokerError: Error, Hashable, Sendable, CustomStringConvertible {
  package let description: String
  init(_ description: String) { self.description = description }
}

extension Duration {
  /// How long a test waits for an event while nothing progresses, see ``Wait``.
  ///
  /// Nothing is asserted about the time. Only a test that fails waits to the end, and only once.
  package static var patience: Duration { .seconds(60) }
}
