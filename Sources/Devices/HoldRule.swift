// Settle
// SPDX-License-Identifier: Apache-2.0

/// For how long a person's change of a property keeps every other source from changing it.
package struct HoldRule: Hashable, Sendable {
  /// The sources that count as a person where a property names none: the panel, `settle control`
  /// and the command line.
  package static let standardHands = ["panel", "control", "cli"]

  /// How long it holds, from a person's last change on.
  package var duration: Duration
  /// Sources of changes that count as a person's; each is a ``Pattern``.
  package var hands: [String]

  package init(duration: Duration, hands: [String] = Self.standardHands) {
    self.duration = duration
    self.hands = hands
  }

  /// Whether changes of this source count as a person's.
  package func isHand(_ source: String) -> Bool {
    hands.contains { $0 == source || Pattern($0).matches(source) }
  }
}
