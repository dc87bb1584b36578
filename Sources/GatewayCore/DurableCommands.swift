// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
import Durability
package import JSON
import LastOut
import Values

/// A command whose value a restart would send again.
///
/// The absence of a command is ``sequence`` 0 rather than an optional: a key has three of these,
/// and each change moves two.
struct DurableCommand {
  /// The command's number in the state machine.
  var number: UInt64 = 0
  /// Its value's number in the journal; 0 where there is no command.
  var sequence: UInt64 = 0
  var isUrgent = false
  /// Whether the journal has the value already; then the fields below have no meaning.
  var isWritten = true
  var value = Value.boolean(false)
  var acceptedAt = Moment.zero
  var expiresAt = Moment.zero
  var origin: ChangeOrigin?
  var options: [JSONValue.Member]?

  var isNone: Bool { sequence == 0 }

  func isNumber(_ number: UInt64) -> Bool { self.number == number && !isNone }
}

/// The commands of one key that a restart would send again.
struct DurableCommands {
  /// The newest that has not been sent.
  var newest = DurableCommand()
  /// An older one that has not been sent either, and still may be.
  var earlier = DurableCommand()
  /// Handed to the broker, which has not acknowledged it.
  var inFlight = DurableCommand()

  /// The number in the state machine of the newest that was handed to the broker.
  var lastSent: UInt64 = 0
  /// Its sequence number, also once it is acknowledged: the device may still have to confirm it.
  private var lastSentSequence: UInt64 = 0

  /// The sequence number of the newest that has not been sent.
  var waiting: UInt64? {
    if !newest.isNone { return newest.sequence }
    if !earlier.isNone { return earlier.sequence }
    return nil
  }

  /// The sequence number of the newest that waits or was sent; 0 when there is none.
  var newestSequence: UInt64 { max(newest.sequence, earlier.sequence, lastSentSequence) }

  /// Makes room for the newest command.
  mutating func push(_ command: DurableCommand) {
    if earlier.isNone { swap(&earlier, &newest) }
    newest = command
  }

  /// Records that a command was handed to the broker.
  ///
  /// - Returns: Its sequence number; `nil` for an unknown command.
  mutating func sending(_ number: UInt64) -> UInt64? {
    if newest.isNumber(number) {
      inFlight = exchange(&newest, with: DurableCommand())
      earlier = DurableCommand()  // Nothing older may follow.
    } else if earlier.isNumber(number) {
      inFlight = exchange(&earlier, with: DurableCommand())
    } else {
      return nil
    }
    lastSent = number
    lastSentSequence = inFlight.sequence
    return inFlight.sequence
  }

  /// Removes a command that has ended.
  ///
  /// - Returns: Its sequence number; `nil` for an unknown command.
  mutating func remove(_ number: UInt64) -> UInt64? {
    let none = DurableCommand()
    if earlier.isNumber(number) { return exchange(&earlier, with: none).sequence }
    if newest.isNumber(number) { return exchange(&newest, with: none).sequence }
    if inFlight.isNumber(number) { return exchange(&inFlight, with: none).sequence }
    return nil
  }

  /// Whether one of them up to this sequence number is urgent.
  func hasUrgent(through sequence: UInt64) -> Bool {
    newest.isUrgent && newest.sequence <= sequence
      || earlier.isUrgent && earlier.sequence <= sequence
      || inFlight.isUrgent && inFlight.sequence <= sequence
  }

  /// The newest that has not been sent; any other than an urgent one only if that is asked for.
  func replaceable(evenIfNotUrgent isAny: Bool) -> DurableCommand? {
    if !newest.isNone { return newest.isUrgent || isAny ? newest : nil }
    return !earlier.isNone && (earlier.isUrgent || isAny) ? earlier : nil
  }

  /// The command with this sequence number, if the journal does not have its value yet.
  func unwritten(_ sequence: UInt64) -> DurableCommand? {
    for command in [newest, earlier, inFlight]
    where command.sequence == sequence && !command.isWritten { return command }
    return nil
  }
}

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
