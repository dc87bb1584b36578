// Settle
// SPDX-License-Identifier: Apache-2.0

import GatewayCore
import JSON

extension DurableValue {
  /// Reads what ``bytes`` wrote; `nil` for anything else.
  ///
  /// Members that a later version adds are ignored.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONParser.parse(bytes.span), let value = json["value"],
      let id = json["id"]
    else { return nil }
    self.init(value: value, id: id)
    source = json["source"]?.string
    if case .object(let members)? = json["options"] { options = members }
    responseTopic = json["reply"]?.string
    correlationData = json["correlation"]?.string.flatMap(Self.bytes(hex:))
  }

  private static func bytes(hex: String) -> [UInt8]? {
    let digits = hex.utf8.compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }
}
