// Settle
// SPDX-License-Identifier: Apache-2.0

/// What is sent at the end of each batch of events; lives until it is cancelled.
///
/// Whoever has put together what should leave at once, such as packets, sends it here.
package final class BatchEnd {
  /// Whether more was left to do; `nil` once cancelled.
  private var handler: (() -> Bool)?

  init(_ handler: @escaping () -> Bool) {
    self.handler = handler
  }

  /// Ends it; the handler is released.
  package func cancel() { handler = nil }

  var isCancelled: Bool { handler == nil }

  func run() -> Bool { handler?() ?? false }
}
