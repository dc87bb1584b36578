// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// An accepted value that survives a crash.
package struct JournalEntry: Hashable, Sendable {
  /// When the value was accepted.
  package enum Origin: Hashable, Sendable {
    /// By this process.
    case accepted(at: Moment)
    /// By an earlier process, according to its file.
    case stored(JournalStamps)
  }

  package var key: String
  /// Grows with every accepted value, over all keys.
  package var sequence: UInt64
  package var content: JournalContent
  package var origin: Origin
  /// How long after its acceptance the value may still be sent.
  package var ttl: Duration

  init(key: String, sequence: UInt64, content: JournalContent, origin: Origin, ttl: Duration) {
    self.key = key
    self.sequence = sequence
    self.content = content
    self.origin = origin
    self.ttl = ttl
  }

  package init(key: String, sequence: UInt64, value: [UInt8], origin: Origin, ttl: Duration) {
    self.init(key: key, sequence: sequence, content: .bytes(value), origin: origin, ttl: ttl)
  }

  /// A value that another process of a cluster accepted, at `stamps` of this machine's clocks; its
  /// place among others is the order in which it is taken over.
  package init(key: String, content: JournalContent, stamps: JournalStamps, ttl: Duration) {
    self.init(key: key, sequence: 0, content: content, origin: .stored(stamps), ttl: ttl)
  }

  /// What the owner needs to send the value; opaque here.
  package var value: [UInt8] { content.bytes }

  /// The moment from which a restart no longer sends the value; `nil` for a stored value, whose age
  /// only the file's stamps give.
  var expiresAt: Moment? {
    switch origin {
    case .accepted(let moment): moment.advanced(by: ttl)
    case .stored: nil
    }
  }
}

/// The moment of an acceptance, in the two clocks that outlive a process.
package struct JournalStamps: Hashable, Sendable {
  /// The kernel's random number of the boot.
  package var boot: BootIdentifier
  /// Milliseconds since that boot, suspends included.
  package var bootMilliseconds: Int64
  /// Milliseconds since 1970-01-01 00:00 UTC by the wall clock, which may have been wrong.
  package var wallMilliseconds: Int64

  package init(boot: BootIdentifier, bootMilliseconds: Int64, wallMilliseconds: Int64) {
    self.boot = boot
    self.bootMilliseconds = bootMilliseconds
    self.wallMilliseconds = wallMilliseconds
  }
}

/// The kernel's random number of one boot, 128 bits.
package struct BootIdentifier: Hashable, Sendable {
  package var high: UInt64
  package var low: UInt64

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }
}

/// A value that is encoded on the writer's thread, when it is written.
///
/// Only the last of a key's changes between two commits is encoded.
package protocol JournalValue: Sendable {
  /// What the owner needs to send the value after a restart.
  var bytes: [UInt8] { get }
}

/// The value of an entry, encoded or not.
package enum JournalContent: Sendable {
  case bytes([UInt8])
  case unwritten(any JournalValue)

  package var bytes: [UInt8] {
    switch self {
    case .bytes(let bytes): bytes
    case .unwritten(let value): value.bytes
    }
  }

  /// The value itself, where it was not read from a file or was decoded since.
  package var decoded: (any JournalValue)? {
    switch self {
    case .bytes: nil
    case .unwritten(let value): value
    }
  }
}

extension JournalContent: Hashable {
  package static func == (left: JournalContent, right: JournalContent) -> Bool {
    left.bytes == right.bytes
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// One reading of every clock that the journal needs.
package struct JournalClock: Hashable, Sendable {
  /// The monotonic clock.
  package var moment: Moment
  /// The boot clock and the wall clock.
  package var stamps: JournalStamps
  /// Whether the kernel reports that a time source disciplines the wall clock.
  ///
  /// Only then can the age of a value of an earlier boot be calculated.
  package var isSynchronised: Bool

  package init(moment: Moment, stamps: JournalStamps, isSynchronised: Bool = true) {
    self.moment = moment
    self.stamps = stamps
    self.isSynchronised = isSynchronised
  }

  /// The stamps of `earlier`, calculated from this reading.
  package func stamps(at earlier: Moment) -> JournalStamps {
    let age = earlier.duration(to: moment).wholeMilliseconds
    var result = stamps
    result.bootMilliseconds -= age
    result.wallMilliseconds -= age
    return result
  }
}

extension Duration {
  /// The duration in milliseconds, rounded toward zero and clamped to 64 bits.
  package var wholeMilliseconds: Int64 { wholeNanoseconds / 1_000_000 }
}
