// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// What outlives a restart of the gateway; a journal takes this place.
package protocol RestartMemory: Sendable {
  /// Whether it promises to keep every accepted value that was neither sent nor ended.
  var keepsAll: Bool { get }
  /// A value was accepted; it replaces what is known of its key.
  mutating func accepted(_ survivor: Survivor)
  /// The command with this number was sent, or ended otherwise.
  mutating func ended(_ number: UInt64, of key: KeyIndex)
  /// What is sent again by the gateway that starts at `now`; nothing is known any more after that.
  mutating func takeSurvivors(at now: Moment) -> [Survivor]
}

/// One accepted value that was not sent yet.
package struct Survivor: Hashable, Sendable {
  package var key: KeyIndex
  package var value: Value
  package var number: UInt64
  package var expiresAt: Moment
}

/// Remembers nothing: a gateway without a journal.
package struct Forgetful: RestartMemory {
  package init() {}
  package var keepsAll: Bool { false }
  package mutating func accepted(_ survivor: Survivor) {}
  package mutating func ended(_ number: UInt64, of key: KeyIndex) {}
  package mutating func takeSurvivors(at now: Moment) -> [Survivor] { [] }
}

/// Remembers the newest unsent value of every key: what a journal promises.
package struct Faithful: RestartMemory {
  private var survivors: [Survivor] = []

  package init() {}

  package var keepsAll: Bool { true }

  package mutating func accepted(_ survivor: Survivor) {
    survivors.removeAll { $0.key == survivor.key }
    survivors.append(survivor)
  }

  package mutating func ended(_ number: UInt64, of key: KeyIndex) {
    survivors.removeAll { $0.key == key && $0.number == number }
  }

  package mutating func takeSurvivors(at now: Moment) -> [Survivor] {
    defer { survivors = [] }
    return survivors.filter { now < $0.expiresAt }
  }
}
