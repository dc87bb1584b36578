// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import LastOut

/// What outlives a restart of the gateway: it stands between the command machine and whoever is
/// told, and between the machine and the broker.
///
/// Every event of the machine goes in; what may be told comes out as ``MemoryNews``. After any call
/// the owner takes the news.
package protocol RestartMemory: Sendable {
  /// Whether it promises anything.
  var isJournal: Bool { get }
  /// When ``advance(to:)`` has something to do next; `nil` when nothing waits for time.
  var nextDeadline: Moment? { get }
  /// Nothing is being written, and nothing waits to be.
  var isIdle: Bool { get }
  /// What a start would find, were the power cut or the process killed now: all that is possible.
  var images: [[Survivor]] { get }

  /// Why a change of the key must be refused now; `nil` when it may be accepted.
  func refusal(of key: KeyIndex, at now: Moment) -> String?
  /// Takes an event of the machine; `survivor` of an accepted value that is to survive.
  mutating func take(_ event: CommandEvent, _ survivor: Survivor?)
  /// The keys of which nothing may be handed to the broker now.
  var withheld: Set<KeyIndex> { get }
  /// Whether whatever has to leave the disk leaves it without delay.
  func isPrompt(at now: Moment) -> Bool
  mutating func advance(to now: Moment)
  /// What happened since the last call, in order.
  mutating func takeNews() -> [MemoryNews]

  /// A value of an earlier process is in the machine again, under this number.
  mutating func resumed(_ survivor: Survivor, as number: UInt64)

  /// The gateway ends now, and the next one starts; what it finds.
  mutating func restart(after end: GatewayEnd, at now: Moment, start: Moment) -> [Survivor]
  /// The disk has the trouble from now until `end`.
  mutating func disturb(_ trouble: DiskTrouble, until end: Moment)
  /// The disk is well again.
  mutating func heal()
  /// The whole machine slept: only the clocks that count sleep have moved.
  mutating func sleep(for duration: Duration)
  /// Everything that waits is to be written at once: the way out.
  mutating func flush(at now: Moment)
}

extension RestartMemory {
  package var isJournal: Bool { true }
  package var nextDeadline: Moment? { nil }
  package var isIdle: Bool { true }
  package func refusal(of key: KeyIndex, at now: Moment) -> String? { nil }
  package var withheld: Set<KeyIndex> { [] }
  package func isPrompt(at now: Moment) -> Bool { true }
  package mutating func advance(to now: Moment) {}
  package mutating func resumed(_ survivor: Survivor, as number: UInt64) {}
  package mutating func disturb(_ trouble: DiskTrouble, until end: Moment) {}
  package mutating func heal() {}
  package mutating func sleep(for duration: Duration) {}
  package mutating func flush(at now: Moment) {}
}
