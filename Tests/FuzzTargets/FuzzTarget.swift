// Settle
// SPDX-License-Identifier: Apache-2.0

/// What can be fuzzed: each target hands bytes to functions that ship.
package enum FuzzTarget {
  package static let all: [String: @Sendable ([UInt8]) -> Void] = [
    "control": ControlTarget.run,
    "frames": FramesTarget.run,
    "http": HTTPTarget.run,
    "import": ImportTarget.run,
    "journal": JournalTarget.run,
    "mqtt": MQTTTarget.run,
    "peers": PeersTarget.run,
    "records": RecordsTarget.run,
    "yaml": YAMLTarget.run,
  ]
}

/// Splits an input into parts, at the byte that ASCII has for that.
enum Parts {
  static let separator: UInt8 = 0x1E

  static func of(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.split(separator: separator, omittingEmptySubsequences: false).map(Array.init)
  }

  /// The first line, and the rest after it.
  static func head(_ bytes: [UInt8]) -> (head: [UInt8], rest: [UInt8]) {
    guard let end = bytes.firstIndex(of: 0x0A) else { return (bytes, []) }
    return (Array(bytes[..<end]), Array(bytes[(end + 1)...]))
  }
}
