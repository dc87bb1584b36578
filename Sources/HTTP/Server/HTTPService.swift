// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// The handler of requests.
package protocol HTTPService: AnyObject {
  /// Called with the head of a request: respond at once to refuse it, or later in ``complete(_:)``.
  ///
  /// To receive the body in parts, set ``HTTPExchange/onBody``.
  func begin(_ exchange: HTTPExchange)

  /// Called with the complete request; respond now or later.
  func complete(_ exchange: HTTPExchange)

  /// Called when a client is refused before its request.
  func connectionRefused(reason: String, at now: Moment)
}
