// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

enum TemplateToken: Hashable {
  case name(String)
  case integer(Int64)
  case number(Double)
  case text(String)
  case sign(String)
}

/// What is outside and inside of a template's braces.
enum TemplatePiece {
  case text(String)
  /// What is between `{{` and `}}`.
  case expression([TemplateToken])
  /// What is between `{%` and `%}`.
  case statement([TemplateToken])
}

/// Cuts a template into pieces and tokens.
struct TemplateLexer {
  private let bytes: [UInt8]
  private var position = 0
  private var pieces: [TemplatePiece] = []
  private static let doubles: Set = ["==", "!=", "<=", ">=", "**", "//"]
  private static let singles = Set("+-*/%~<>()[]{}.,:|=".utf8)

  private init(_ text: String) { bytes = Array(text.utf8) }

  static func pieces(of template: String) throws -> [TemplatePiece] {
    var lexer = TemplateLexer(template)
    try lexer.read()
    return lexer.pieces
  }

  private mutating func read() throws {
    var start = 0
    var trimsStart = false
    while position < bytes.count {
      let mark = at(0) == "{" ? at(1) : " "
      guard "{%#".contains(mark) else {
        position += 1
        continue
      }
      let trimsEnd = at(2) == "-"
      add(start..<position, trimsStart, trimsEnd)
      position += trimsEnd || at(2) == "+" ? 3 : 2
      if mark == "#" {
        while position < bytes.count, !(at(0) == "#" && at(1) == "}") { position += 1 }
        trimsStart = bytes[position - 1] == UInt8(ascii: "-")
        position += 2
      } else {
        let close = mark == "{" ? "}}" : "%}"
        let tokens = try tokens(until: close)
        trimsStart = at(0) == "-"
        position += trimsStart ? 3 : 2
        pieces.append(mark == "{" ? .expression(tokens) : .statement(tokens))
      }
      start = position
    }
    guard start <= bytes.count else { throw TemplateFailure.unsupported }
    add(start..<bytes.count, trimsStart, false)
  }

  private mutating func add(_ range: Range<Int>, _ trimsStart: Bool, _ trimsEnd: Bool) {
    var text = String(decoding: bytes[range], as: UTF8.self)[...]
    if trimsStart { text = text.drop(while: \.isWhitespace) }
    if trimsEnd { while text.last?.isWhitespace == true { text.removeLast() } }
    if !text.isEmpty { pieces.append(.text(String(text))) }
  }

  /// The character at a distance from the position; a space behind the end.
  private func at(_ distance: Int) -> Character {
    let index = position + distance
    return index < bytes.count ? Character(Unicode.Scalar(bytes[index])) : " "
  }

  private mutating func tokens(until close: String) throws -> [TemplateToken] {
    var tokens: [TemplateToken] = []
    var depth = 0
    while position < bytes.count {
      let pair = String([at(0), at(1)])
      if depth == 0, pair == close || at(0) == "-" && String([at(1), at(2)]) == close {
        return tokens
      }
      let byte = bytes[position]
      switch at(0) {
      case " ", "\n", "\t", "\r": position += 1
      case "'", "\"": tokens.append(.text(try quoted(byte)))
      case "0"..."9": tokens.append(try number())
      case "a"..."z", "A"..."Z", "_": tokens.append(.name(word { $0.isLetter || $0.isNumber }))
      case _ where Self.doubles.contains(pair):
        tokens.append(.sign(pair))
        position += 2
      case let sign where Self.singles.contains(byte):
        if "([{".contains(sign) { depth += 1 }
        if ")]}".contains(sign) { depth -= 1 }
        tokens.append(.sign(String(sign)))
        position += 1
      default: throw TemplateFailure.unsupported
      }
    }
    throw TemplateFailure.unsupported
  }

  private mutating func word(_ isPart: (Character) -> Bool) -> String {
    let start = position
    while bytes.indices.contains(position), at(0) == "_" || bytes[position] < 128 && isPart(at(0)) {
      position += 1
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func number() throws -> TemplateToken {
    var text = word(\.isNumber)
    if at(0) == ".", at(1).isNumber {
      position += 1
      text += "." + word(\.isNumber)
    }
    if let integer = Int64(text) { return .integer(integer) }
    guard let number = NumberText.parse(text) else { throw TemplateFailure.unsupported }
    return .number(number)
  }

  private mutating func quoted(_ quote: UInt8) throws -> String {
    var content: [UInt8] = []
    position += 1
    while position < bytes.count, bytes[position] != quote {
      if at(0) == "\\" {
        let escapes: [Character: UInt8] = ["n": 10, "t": 9, "r": 13, "\\": 92, "'": 39, "\"": 34]
        guard let byte = escapes[at(1)] else { throw TemplateFailure.unsupported }
        content.append(byte)
        position += 2
      } else {
        content.append(bytes[position])
        position += 1
      }
    }
    guard position < bytes.count else { throw TemplateFailure.unsupported }
    position += 1
    return String(decoding: content, as: UTF8.self)
  }
}
