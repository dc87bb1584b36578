// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON

/// Reads the lines that most are, a value for one key, without a tree of values in between.
extension ControlRequest {
  /// A change with `key`, `set`, and perhaps `id`, `source` and `now`; `nil` for everything else and
  /// wherever something is wrong, which the ``RequestReader`` then names.
  static func usual(_ line: Span<UInt8>, keys: KeySyntax) -> ControlRequest? {
    var object = FlatObject()
    var key: String?
    var value: JSONValue?
    var id: JSONValue?
    var source: String?
    var isNow: Bool?
    while let member = object.nextMember(in: line) {
      switch (line.word(at: member.name), member.value) {
      case (Word("key"), .string(let text)) where key == nil: key = text
      case (Word("set"), let given) where value == nil: value = given
      case (Word("now"), .boolean(let flag)) where isNow == nil: isNow = flag
      case (Word("id"), .string(let text)) where id == nil:
        guard (1...256).contains(text.utf8.count) else { return nil }
        id = .string(text)
      case (Word("id"), .integer(let number)) where id == nil: id = .integer(number)
      case (Word("source"), .string(let text)) where source == nil:
        guard text.utf8.count <= 64 else { return nil }
        source = text
      default: return nil
      }
    }
    guard object.isWhole, let key, let value, keys.mistake(inKey: key) == nil else { return nil }
    var request = ControlRequest(.set(value), key: key)
    request.replyID = id
    request.source = source
    request.now = isNow ?? false
    return request
  }
}

/// A name of up to eight bytes as one number, which takes one comparison.
private struct Word: Equatable {
  var number: UInt64 = 0

  init() {}

  init(_ text: StaticString) {
    for place in 0..<text.utf8CodeUnitCount { append(unsafe text.utf8Start[place]) }
  }

  mutating func append(_ byte: UInt8) { number = number << 8 | UInt64(byte) }
}

extension Span<UInt8> {
  /// The name at `range`; none that anybody asks for where it is longer than eight bytes.
  fileprivate func word(at range: Range<Int>) -> Word {
    var word = Word()
    guard range.count <= 8 else { return word }
    for place in range { word.append(self[place]) }
    return word
  }
}
