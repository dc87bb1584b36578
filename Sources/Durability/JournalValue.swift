// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value that is encoded on the writer's thread, when it is written.
///
/// Of all the changes of one key between two commits only the last is encoded.
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
