// Settle
// SPDX-License-Identifier: Apache-2.0

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
