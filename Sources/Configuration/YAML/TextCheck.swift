// Settle
// SPDX-License-Identifier: Apache-2.0

/// Checks that a file is UTF-8 text, which the YAML parser does not report.
enum TextCheck {
  /// The first invalid byte or control character; `nil` for valid text.
  static func problem(in bytes: [UInt8], file: String) -> ConfigurationProblem? {
    var index = 0
    var line = 1
    var column = 1
    while index < bytes.count {
      let byte = bytes[index]
      let length = length(at: index, in: bytes)
      if length == 0 {
        return ConfigurationProblem(
          file: file,
          line: line,
          column: column,
          message: "byte \(hex(byte)) is not UTF-8; the file must be text in UTF-8"
        )
      }
      if (byte < 0x20 && byte != 0x09 && byte != 0x0A && byte != 0x0D) || byte == 0x7F {
        return ConfigurationProblem(
          file: file,
          line: line,
          column: column,
          message: "control character \(hex(byte)) is not allowed in a text file"
        )
      }
      index += length
      column += 1
      if byte == 0x0A {
        line += 1
        column = 1
      }
    }
    return nil
  }

  /// The length of the UTF-8 sequence at `index`; 0 when it is invalid.
  private static func length(at index: Int, in bytes: [UInt8]) -> Int {
    let first = bytes[index]
    if first < 0x80 { return 1 }
    let (length, lowest, highest): (Int, UInt8, UInt8) =
      switch first {
      case 0xC2...0xDF: (2, 0x80, 0xBF)
      case 0xE0: (3, 0xA0, 0xBF)
      case 0xED: (3, 0x80, 0x9F)
      case 0xE1...0xEF: (3, 0x80, 0xBF)
      case 0xF0: (4, 0x90, 0xBF)
      case 0xF1...0xF3: (4, 0x80, 0xBF)
      case 0xF4: (4, 0x80, 0x8F)
      default: (0, 0, 0)
      }
    guard length > 0, index + length <= bytes.count,
      (lowest...highest).contains(bytes[index + 1])
    else { return 0 }
    for offset in 2..<max(length, 2) where bytes[index + offset] & 0xC0 != 0x80 { return 0 }
    return length
  }

  private static func hex(_ byte: UInt8) -> String {
    (byte < 16 ? "0x0" : "0x") + String(byte, radix: 16, uppercase: true)
  }
}
