// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Who answers requests.
package protocol HTTPService: AnyObject {
  /// The head of a request has come: answer at once to refuse it, or leave it to
  /// ``complete(_:)``; for a body that is to be taken as it comes, set ``HTTPExchange/onBody``.
  func begin(_ exchange: HTTPExchange)

  /// The whole request has come; it may be answered now or later.
  func complete(_ exchange: HTTPExchange)

  /// A client was turned away before it said anything.
  func connectionRefused(reason: String, at now: Moment)
}
