// Settle
// SPDX-License-Identifier: Apache-2.0

/// Sizes in bytes as text: `64KiB`, `1MiB`, or a plain number.
package enum SizeText {
  /// The accepted forms, for error messages.
  package static let forms = "a size such as 64KiB, 1MiB or 65536"

  /// Reads a size in bytes; `nil` for a malformed text or an overflow.
  package static func parse(_ text: some StringProtocol) -> Int? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let amount = Int(digits) else { return nil }
    let factor: Int
    switch text[digits.endIndex...] {
    case "", "B": factor = 1
    case "KiB": factor = 1 << 10
    case "MiB": factor = 1 << 20
    case "GiB": factor = 1 << 30
    default: return nil
    }
    let (product, overflow) = amount.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }

  /// The size that a malformed text most likely means.
  package static func suggestion(for text: String) -> String? {
    let compact = text.lowercased().filter { $0 != " " }
    let digits = compact.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty else { return nil }
    let unit: String
    switch compact[digits.endIndex...] {
    case "k", "kb", "kib": unit = "KiB"
    case "m", "mb", "mib": unit = "MiB"
    case "g", "gb", "gib": unit = "GiB"
    default: return nil
    }
    return digits + unit
  }
}
