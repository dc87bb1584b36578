// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a terminal's reader hands over: a key that it knows, or a character.
package enum KeyInput: Hashable, Sendable {
  case key(ScreenKey)
  case scalar(Unicode.Scalar)

  /// The keys that were meant by what came together.
  ///
  /// A sequence that begins with Escape and that the reader does not know is one key, known here or
  /// passed over: its letters are no commands.
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

  /// Takes what follows an Escape: nothing where it was the key itself.
  private static func sequence(_ rest: inout ArraySlice<KeyInput>) -> ScreenKey? {
    guard case .scalar(let first) = rest.first, first == "[" || first == "O" else {
      return .escape
    }
    rest.removeFirst()
    var isPlain = true
    while case .scalar(let scalar) = rest.first {
      rest.removeFirst()
      // Numbers and their separators come before the letter that ends it.
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
