// Settle
// SPDX-License-Identifier: Apache-2.0

/// The appearance of a cell's character.
package struct Style: Hashable, Sendable {
  /// A color of the terminal's palette; `plain` is its default color.
  package enum Color: UInt8, Hashable, Sendable, CaseIterable {
    case plain, red, green, yellow, blue, magenta, cyan
  }

  package var color: Color
  package var isBold: Bool
  package var isFaint: Bool
  package var isReverse: Bool

  package init(
    _ color: Color = .plain,
    isBold: Bool = false,
    isFaint: Bool = false,
    isReverse: Bool = false
  ) {
    self.color = color
    self.isBold = isBold
    self.isFaint = isFaint
    self.isReverse = isReverse
  }

  static let plain = Style()
  static let bold = Style(isBold: true)
  static let faint = Style(isFaint: true)
  static let heading = Style(.cyan, isReverse: true)
}
