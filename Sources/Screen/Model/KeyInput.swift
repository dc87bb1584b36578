// Settle
// SPDX-License-Identifier: Apache-2.0

/// Input from a terminal library: a key that it recognizes, or a character.
package enum KeyInput: Hashable, Sendable {
  case key(ScreenKey)
  case scalar(Unicode.Scalar)

  /// Decodes the inputs of one read.
  ///
  /// An escape sequence that the terminal library does not recognize counts as one key. An unknown
  /// sequence is ignored, so that its letters do not act as commands.
  package static func keys(_ inputs: [KeyInput]) -> [ScreenKey] {
    var keys: [ScreenKey] = []
    var rest = inputs[...]
    while let input = rest.popFirst() {
      switch input {
      case .key(let key): keys.append(key)
      case .scalar("\u{1B}"): if let key = sequence(&rest) { keys.append(key) }
      case .scalar(let scalar): if let key = key(scalar) { keys.append(key) }
      }
    }
    return keys
  }

  /// Consumes the rest of an escape sequence; a lone Escape is the key itself.
  private static func sequence(_ rest: inout ArraySlice<KeyInput>) -> ScreenKey? {
    guard case .scalar(let first) = rest.first, first == "[" || first == "O" else {
      return .escape
    }
    rest.removeFirst()
    var isPlain = true
    while case .scalar(let scalar) = rest.first {
      rest.removeFirst()
      // Numeric parameters precede the letter that ends the sequence.
      if (0x40...0x7E).contains(scalar.value) { return isPlain ? arrow(scalar) : nil }
      isPlain = false
    }
    return nil
  }

  private static func arrow(_ scalar: Unicode.Scalar) -> ScreenKey? {
    switch scalar {
    case "A": .up
    case "B": .down
    case "C": .right
    case "D": .left
    case "H": .home
    case "F": .end
    default: nil
    }
  }

  private static func key(_ scalar: Unicode.Scalar) -> ScreenKey? {
    switch scalar.value {
    case 0x0A, 0x0D: .enter
    case 0x08, 0x7F: .backspace
    case 0x0C: .redraw
    case 0..<0x20, 0x80..<0xA0: nil
    default: .character(Character(scalar))
    }
  }
}

/// A key press.
package enum ScreenKey: Hashable, Sendable {
  case up, down, left, right
  /// With Shift: ten steps at once.
  case farLeft, farRight
  case pageUp, pageDown, home, end
  case enter, escape, backspace
  /// Ctrl-L, which makes the program draw the whole screen again.
  case redraw
  case character(Character)
}
