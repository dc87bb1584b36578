// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// The width of characters in terminal cells.
enum CellWidth {
  /// Scalars of two cells: East Asian wide and full-width forms, and emoji.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x231A...0x231B, 0x23E9...0x23EC, 0x2E80...0x303E, 0x3041...0x33FF,
    0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
    0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F,
    0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
  ]

  /// The width of one character: 0, 1 or 2.
  static func of(_ character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first else { return 0 }
    if scalar.value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }
  }

  static func of(_ text: String) -> Int { text.reduce(0) { $0 + of($1) } }

  /// The escape sequence for a character that controls the terminal; `nil` for any other.
  static func escape(_ scalar: Unicode.Scalar) -> String? { Excerpt.escape(scalar) }
}
