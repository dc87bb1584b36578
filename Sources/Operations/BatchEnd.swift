// Settle
// SPDX-License-Identifier: Apache-2.0

/// A handler for the end of each batch of events, such as one that sends packets; lives until it is
/// cancelled.
package final class BatchEnd {
  /// Returns whether more is left to do; `nil` once cancelled.
  private var handler: (() -> Bool)?

  init(_ handler: @escaping () -> Bool) {
    self.handler = handler
  }

  /// Ends it; the handler is released.
  package func cancel() { handler = nil }

  var isCancelled: Bool { handler == nil }

  func run() -> Bool { handler?() ?? false }
}
