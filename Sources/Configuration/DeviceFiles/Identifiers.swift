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

  /// An identifier as words: `target_temperature` becomes `Target temperature`.
  package static func title(of id: String) -> String {
    let words = id.split { $0 == "_" || $0 == "-" }.joined(separator: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }

  private static func isDeviceByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  /// Whether a byte is a letter, a digit or `_`.
  static func isPropertyByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default: false
    }
  }
}

/// Converts display names to device identifiers.
package enum DeviceSlug {
  /// `Küche/Decke links` becomes `kueche-decke-links`; empty if no letter or digit remains.
  package static func slug(_ name: String) -> String {
    // Hyphens become spaces first, so that `a - b` gets only one hyphen.
    let words = letters(of: name).split(separator: "-").joined(separator: " ")
    let slug = String(Identifiers.slug(words).prefix(60))
    let trimmed = String(slug.reversed().drop { $0 == "-" || $0 == "_" }.reversed())
    // Only a reserved word is left that is not allowed.
    return Identifiers.reservedDevices.contains(trimmed) ? "\(trimmed)-device" : trimmed
  }

  /// Transliterates a text to ASCII, in lowercase unless `keepingCase`.
  ///
  /// A character without a transliteration becomes `-`.
  package static func letters(of text: String, keepingCase: Bool = false) -> String {
    var result = ""
    for character in text {
      for scalar in (keepingCase ? String(character) : character.lowercased()).unicodeScalars {
        if scalar.isASCII {
          result.unicodeScalars.append(scalar)
        } else if let letters = table[scalar] {
          result += letters
        } else if let letters = scalar.properties.lowercaseMapping.unicodeScalars.first
          .flatMap({ table[$0] })
        {
          result += letters.uppercased()
        } else if !scalar.properties.isDiacritic,
          scalar.properties.generalCategory != .nonspacingMark
        {
          result += "-"
        }
      }
    }
    return result
  }

  /// Transliterations of lowercase letters.
  private static let table: [Unicode.Scalar: String] = {
    let rows: [(letters: String, ascii: String)] = [
      ("àáâãāăąǎ", "a"), ("äæ", "ae"), ("å", "a"), ("çćĉċč", "c"), ("ďđð", "d"),
      ("èéêëēĕėęěẽ", "e"), ("ĝğġģ", "g"), ("ĥħ", "h"), ("ìíîïĩīĭįı", "i"), ("ĵ", "j"), ("ķ", "k"),
      ("ĺļľŀł", "l"), ("ñńņňŋ", "n"), ("òóôõōŏőǒ", "o"), ("öøœ", "oe"), ("ŕŗř", "r"),
      ("śŝşšș", "s"),
      ("ß", "ss"), ("ţťŧț", "t"), ("þ", "th"), ("ùúûũūŭůűųǔ", "u"), ("ü", "ue"), ("ŵ", "w"),
      ("ýÿŷ", "y"), ("źżž", "z"),
      ("а", "a"), ("б", "b"), ("в", "v"), ("гґ", "g"), ("д", "d"), ("еэє", "e"), ("ё", "yo"),
      ("ж", "zh"), ("з", "z"), ("иіы", "i"), ("їй", "y"), ("к", "k"), ("л", "l"), ("м", "m"),
      ("н", "n"), ("о", "o"), ("п", "p"), ("р", "r"), ("с", "s"), ("т", "t"), ("у", "u"),
      ("ф", "f"),
      ("х", "kh"), ("ц", "ts"), ("ч", "ch"), ("ш", "sh"), ("щ", "shch"), ("ъь", ""), ("ю", "yu"),
      ("я", "ya"),
      ("αά", "a"), ("β", "v"), ("γ", "g"), ("δ", "d"), ("εέ", "e"), ("ζ", "z"), ("ηήιίϊ", "i"),
      ("θ", "th"), ("κ", "k"), ("λ", "l"), ("μ", "m"), ("ν", "n"), ("ξ", "x"), ("οόωώ", "o"),
      ("π", "p"), ("ρ", "r"), ("σς", "s"), ("τ", "t"), ("υύ", "y"), ("φ", "f"), ("χ", "ch"),
      ("ψ", "ps"),
    ]
    var table: [Unicode.Scalar: String] = [:]
    for row in rows {
      for scalar in row.letters.unicodeScalars { table[scalar] = row.ascii }
    }
    return table
  }()
}
