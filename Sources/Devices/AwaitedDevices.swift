// Settle
// SPDX-License-Identifier: Apache-2.0

/// The keys of devices that do not exist yet, and may appear with their first message.
package struct AwaitedDevices: Sendable {
  private struct Pattern: Sendable {
    /// The bytes before, between and after the placeholders of the identifier.
    let pieces: [[UInt8]]
    let properties: Set<String>
  }

  private var patterns: [Pattern] = []

  /// No device.
  package init() {}

  /// The devices of some templates.
  package init(_ templates: [DeviceTemplate]) {
    patterns = templates.map { template in
      Pattern(
        pieces: TemplateMark.pieces(of: template.pattern.id),
        properties: Set(template.pattern.properties.map(\.id))
      )
    }
  }

  /// Whether `key`, as `device/property`, may be one of theirs.
  package func awaits(_ key: String) -> Bool {
    guard !patterns.isEmpty, let slash = key.utf8.firstIndex(of: UInt8(ascii: "/")) else {
      return false
    }
    let id = Array(key.utf8[..<slash])
    let property = String(key[key.utf8.index(after: slash)...])
    return patterns.contains { $0.properties.contains(property) && Self.matches(id, $0.pieces) }
  }

  /// Whether every placeholder stands for one byte at least.
  private static func matches(_ id: [UInt8], _ pieces: [[UInt8]]) -> Bool {
    guard let first = pieces.first, let last = pieces.last, id.starts(with: first) else {
      return false
    }
    var place = first.count
    for piece in pieces.dropFirst().dropLast() {
      place += 1
      while place + piece.count <= id.count, !id[place...].starts(with: piece) { place += 1 }
      place += piece.count
    }
    return place + 1 + last.count <= id.count && id.reversed().starts(with: last.reversed())
  }
}
