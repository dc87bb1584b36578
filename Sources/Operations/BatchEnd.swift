// Settle
// SPDX-License-Identifier: Apache-2.0

/// A handler for the end of each batch of events, such as one that sends packets; active until it
/// is cancelled.
package final class BatchEnd {
  /// Returns whether work is left; `nil` once cancelled.
  private var handler: (() -> Bool)?

  init(_ handler: @escaping () -> Bool) {
    self.handler = handler
  }

  /// Cancels and releases the handler.
  package func cancel() { handler = nil }

  var isCancelled: Bool { handler == nil }

  func run() -> Bool { handler?() ?? false }
}
