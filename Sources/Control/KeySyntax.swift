// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// The syntax of keys, independent of whether a key exists.
package enum KeySyntax: Hashable, Sendable {
  /// `device/property`, as in the gateway.
  case deviceProperty
  /// Any text, as `simulate` allows without devices.
  case any

  /// The longest key or pattern, in bytes.
  package static let longest = 512

  /// Why `key` is not a valid key; `nil` if it is.
  package func mistake(inKey key: String) -> String? {
    if isPlain(key) { return nil }
    if let mistake = commonMistake(in: key, called: "key") { return mistake }
    if key.utf8.contains(where: { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") }) {
      return #"a key names one property, and "\#(Excerpt.of(key))" is a pattern;"#
        + " patterns are allowed in get, pending, watch, flush and cancel"
    }
    guard self == .deviceProperty else { return nil }
    let parts = key.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty }) else {
      return "a key is device/property, such as desk-lamp/brightness;"
        + #" found "\#(Excerpt.of(key))""#
    }
    return nil
  }

  /// Why `name` cannot name a device; `nil` when it can.
  package func mistake(inDevice name: String) -> String? {
    if let mistake = commonMistake(in: name, called: "device") { return mistake }
    guard self == .deviceProperty, !name.contains(where: { "*?/".contains($0) }) else {
      return "a device is named without a slash or wildcards"
    }
    return nil
  }

  /// Why `pattern` cannot match keys; `nil` when it can.
  package func mistake(inPattern pattern: String) -> String? {
    commonMistake(in: pattern, called: "pattern")
  }

  /// The fast path: whether a key is obviously valid, that is printable ASCII with one slash.
  private func isPlain(_ key: String) -> Bool {
    let bytes = key.utf8.span
    guard (1...Self.longest).contains(bytes.count) else { return false }
    var slashes = 0
    for index in bytes.indices {
      switch bytes[index] {
      case UInt8(ascii: "/"): slashes += 1
      case UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "+"), UInt8(ascii: "#"): return false
      case 0x20..<0x7F: break
      default: return false
      }
    }
    guard self == .deviceProperty else { return true }
    return slashes == 1 && bytes[0] != UInt8(ascii: "/")
      && bytes[bytes.count - 1] != UInt8(ascii: "/")
  }

  private func commonMistake(in text: String, called name: String) -> String? {
    if text.isEmpty { return "a \(name) must not be empty" }
    if text.utf8.count > Self.longest {
      return "a \(name) has at most \(Self.longest) bytes; found \(text.utf8.count)"
    }
    if let scalar = text.unicodeScalars.first(where: Self.isControl) {
      return "a \(name) must not contain control characters; found \(scalar.escaped(asASCII: true))"
    }
    if let wildcard = text.first(where: { $0 == "+" || $0 == "#" }) {
      return #"a \#(name) must not contain "\#(wildcard)"; the wildcards of patterns are * and ?"#
    }
    return nil
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value)
  }
}
