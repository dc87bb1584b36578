// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value that is written out only when it goes to the disk, on the writer's thread.
///
/// Of all the changes of a knob that is turned, the last of a commit is written.
package protocol JournalValue: Sendable {
  /// What the owner needs to send it again.
  var bytes: [UInt8] { get }
}

/// What a journal keeps of a value, written out or not.
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
