// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// The payloads with which a property opens, closes and stops a cover.
struct CoverPayloads {
  private let open: String
  private let close: String
  private let stop: String?

  /// `nil` unless the property has words that open and close a cover.
  init?(_ property: Property) {
    let words: [String]
    switch property.kind {
    case .action(let all), .choice(let all): words = all
    case .number, .integer, .boolean, .text, .color: return nil
    }
    func word(_ names: String...) -> String? {
      words.first { names.contains($0.lowercased()) }
    }
    guard let open = word("open", "up"), let close = word("close", "down") else { return nil }
    self.open = open
    self.close = close
    stop = word("stop", "halt")
  }

  /// The payloads as fields of a cover's announcement.
  var fields: [JSONValue.Member] {
    [
      .init("payload_open", .string(open)), .init("payload_close", .string(close)),
      .init("payload_stop", stop.map { .string($0) } ?? .null),
    ]
  }
}
