// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import JSONParsing
import Journal

/// What the journal keeps of an accepted value: all that is needed to send it after a restart and
/// to answer for it under the same id.
///
/// The bytes are a JSON object; members that a later version adds are passed over.
struct JournalledValue: JournalValue {
  var value: JSONValue
  var id: JSONValue
  var source: String?
  var options: [JSONValue.Member] = []
  /// Where the final event goes, and what goes with it.
  var responseTopic: String?
  var correlationData: [UInt8]?

  init(_ value: Value, id: JSONValue, origin: ChangeOrigin?, options: [JSONValue.Member]?) {
    self.value = value.json
    self.id = id
    source = origin == nil ? "mqtt" : origin?.source
    self.options = options ?? []
    responseTopic = origin?.responseTopic
    correlationData = origin?.correlationData
  }

  init(_ value: Value, id: JSONValue, event: CommandEvent) {
    self.init(value, id: id, origin: event.origin, options: event.options)
  }

  /// Reads what ``bytes`` wrote; `nil` for anything else.
  init?(_ bytes: [UInt8]) {
    guard let json = try? JSONParser.parse(bytes.span), let value = json["value"],
      let id = json["id"]
    else { return nil }
    self.value = value
    self.id = id
    source = json["source"]?.string
    if case .object(let members)? = json["options"] { options = members }
    responseTopic = json["reply"]?.string
    correlationData = json["correlation"]?.string.flatMap(Self.bytes(hex:))
  }

  package var bytes: [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(80)
    output.append(contentsOf: #"{"value":"#.utf8)
    JSONWriter.append(value, to: &output)
    output.append(contentsOf: #","id":"#.utf8)
    JSONWriter.append(id, to: &output)
    if let source {
      output.append(contentsOf: #","source":"#.utf8)
      JSONWriter.appendString(source, to: &output)
    }
    if !options.isEmpty {
      output.append(contentsOf: #","options":"#.utf8)
      JSONWriter.append(.object(options), to: &output)
    }
    if let responseTopic {
      output.append(contentsOf: #","reply":"#.utf8)
      JSONWriter.appendString(responseTopic, to: &output)
    }
    if let correlationData {
      output.append(contentsOf: #","correlation":""#.utf8)
      for byte in correlationData {
        output.append(Self.digits[Int(byte >> 4)])
        output.append(Self.digits[Int(byte & 15)])
      }
      output.append(UInt8(ascii: "\""))
    }
    output.append(UInt8(ascii: "}"))
    return output
  }

  /// Who asked, as far as that outlives a process: nobody waits at a socket any more.
  var origin: ChangeOrigin {
    ChangeOrigin(
      id: id,
      source: source,
      responseTopic: responseTopic,
      correlationData: correlationData
    )
  }

  private static let digits = Array("0123456789abcdef".utf8)

  private static func bytes(hex: String) -> [UInt8]? {
    let digits = hex.utf8.compactMap { digit in self.digits.firstIndex(of: digit) }
    guard digits.count == hex.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }
}
