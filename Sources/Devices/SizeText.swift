// Settle
// SPDX-License-Identifier: Apache-2.0

/// Sizes in bytes as people write them: `64KiB`, `1MiB`, or a plain number.
package enum SizeText {
  /// What to write, for messages.
  package static let forms = "a size such as 64KiB, 1MiB or 65536"

  /// Reads a size; `nil` for anything else.
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

  /// What was probably meant by a text that is no size.
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
