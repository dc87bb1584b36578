// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Durability
package import JSON
internal import Values

/// What the journal stores of an accepted value: enough to send it after a restart and to report
/// its outcome under the same id.
///
/// The bytes are a JSON object.
package struct DurableValue: JournalValue {
  package var value: JSONValue
  package var id: JSONValue
  package var source: String?
  package var options: [JSONValue.Member] = []
  /// MQTT 5: where the final event goes, and its correlation data.
  package var responseTopic: String?
  package var correlationData: [UInt8]?

  package init(value: JSONValue, id: JSONValue) {
    self.value = value
    self.id = id
  }

  init(_ value: Value, id: JSONValue, origin: ChangeOrigin?, options: [JSONValue.Member]?) {
    self.value = value.json
    self.id = id
    source = origin == nil ? "mqtt" : origin?.source
    self.options = options ?? []
    responseTopic = origin?.responseTopic
    correlationData = origin?.correlationData
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

  /// The requester, as far as it outlives a process: a client of a socket does not.
  package var origin: ChangeOrigin {
    ChangeOrigin(
      id: id,
      source: source,
      responseTopic: responseTopic,
      correlationData: correlationData
    )
  }

  private static let digits = Array("0123456789abcdef".utf8)
}
