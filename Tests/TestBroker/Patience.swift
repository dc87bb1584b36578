// Settle
// SPDX-License-Identifier: Apache-2.0

extension Duration {
  /// How long a test waits for an event.
  ///
  /// A busy machine needs long, and nothing is asserted about the time. Only a test that fails waits
  /// to the end.
  package static var patience: Duration { .seconds(60) }
}
