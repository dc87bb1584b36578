// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a run knows of its value.
public struct LastOutRunInfo: Hashable, Sendable {
  /// Changes that the value replaced since the key's last run or cancel.
  public let collapsed: Int

  /// The time from the moment at which the value was due to its start.
  public let lateness: Duration

  @inlinable
  init(collapsed: Int, lateness: Duration) {
    self.collapsed = collapsed
    self.lateness = lateness
  }
}
