// Settle
// SPDX-License-Identifier: Apache-2.0

/// The rules for device and property identifiers, which become parts of topics.
package enum Identifiers {
  static let reservedDevices = ["status", "info", "reply", "scene", "groups", "scenes"]
  static let reservedProperties = [
    "set", "get", "event", "step", "toggle", "flush", "cancel", "info",
  ]

  /// Why a device identifier is invalid and a valid alternative; `nil` if it is valid.
  ///
  /// `role` is what the message calls it.
  package static func problem(
    inDevice id: String,
    called role: String = "device identifier"
  ) -> (message: String, suggestion: String?)? {
    if reservedDevices.contains(id) {
      return ("the \(role) '\(id)' is reserved", nil)
    }
    let bytes = Array(id.utf8)
    let isGood =
      (1...64).contains(bytes.count) && bytes.allSatisfy(isDeviceByte)
      && bytes[0] != UInt8(ascii: "-") && bytes[0] != UInt8(ascii: "_")
    if isGood { return nil }
    let slug = DeviceSlug.slug(id)
    return (
      "'\(id.prefix(80))' is not a \(role); allowed: small letters, digits, '-' and '_', "
        + "beginning with a letter or digit, 64 at most",
      slug == id || slug.isEmpty ? nil : slug
    )
  }

  /// Why a property identifier or alias is invalid; `nil` if it is valid.
  package static func problem(inProperty id: String) -> (message: String, suggestion: String?)? {
    if reservedProperties.contains(id) {
      return ("the property identifier '\(id)' is reserved", "\(id)_value")
    }
    let bytes = Array(id.utf8)
    if (1...64).contains(bytes.count), bytes.allSatisfy(isPropertyByte) { return nil }
    let fixed = String(
      DeviceSlug.letters(of: id, keepingCase: true).unicodeScalars.prefix(64).map { scalar in
        let isGood = scalar.isASCII && isPropertyByte(UInt8(truncatingIfNeeded: scalar.value))
        return isGood ? Character(scalar) : "_"
      }
    )
    return (
      "'\(id.prefix(80))' is not a property identifier; allowed: letters, digits and '_', 64 at most",
      fixed.isEmpty ? nil : fixed
    )
  }

  /// Converts a text to a device identifier: lowercase, with `-` for runs of other characters.
  ///
  /// The result has at most 64 characters and is empty when no character of `text` is allowed.
  package static func slug(_ text: String) -> String {
    var slug = ""
    for scalar in text.lowercased().unicodeScalars {
      if scalar.isASCII, isDeviceByte(UInt8(truncatingIfNeeded: scalar.value)) {
        slug.unicodeScalars.append(scalar)
      } else if slug.last != "-", !slug.isEmpty {
        slug += "-"
      }
    }
    while let last = slug.last, last == "-" || last == "_" { slug.removeLast() }
    return String(slug.drop { $0 == "-" || $0 == "_" }.prefix(64))
  }

  private static func isDeviceByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  private static func isPropertyByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}
