// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import HTTP
import HomeAssistant
import JSON
import LastOut
import Operations
import Values

/// Builds the JSON objects of devices and properties.
final class DeviceDocuments {
  private let context: GatewayContext
  /// How the newest command of a key failed, where it did; one for each key at most.
  private var failures: [String: EventObject] = [:]

  init(_ context: GatewayContext) { self.context = context }

  /// Remembers how a command failed, until the next one of its key ends.
  func record(_ event: EventObject) {
    switch event.phase {
    case .failed, .expired: failures[event.key] = event
    case .confirmed, .unchanged, .sent, .cancelled: failures[event.key] = nil
    case .accepted, .superseded, .rejected, .sending: break
    }
  }

  /// A device with its properties.
  func deviceObject(_ number: Int, at now: Moment) -> JSONValue {
    let registry = context.registry
    let device = registry.devices[number]
    let properties = registry.indices(ofDevice: number).map { raw in
      let key = KeyIndex(raw)
      return JSONValue.Member(
        registry.definition(of: key).property.id,
        propertyObject(key, at: now)
      )
    }
    var members: [JSONValue.Member] = [
      .init("id", .string(device.id)), .init("name", .string(device.name)),
      .init("area", device.area.map { .string($0) } ?? .null),
      .init("panel", .boolean(device.isOnPanel)),
      .init("members", device.group.map { .array($0.members.map { .string($0) }) } ?? .null),
      .init("online", .boolean(context.core.isOnline(device: number))),
    ]
    if let word = device.deviceClass { members.append(.init("class", .string(word))) }
    members.append(.init("properties", .object(properties)))
    return .object(members)
  }

  /// A property: its state, the values that it accepts, and its policy.
  func propertyObject(_ key: KeyIndex, at now: Moment) -> JSONValue {
    let property = context.registry[key].property
    var members = stateMembers(key, at: now)
    members.append(.init("type", .string(property.kind.name)))
    members.append(.init("read_only", .boolean(property.isReadOnly)))
    if let name = property.name { members.append(.init("name", .string(name))) }
    if let word = property.deviceClass { members.append(.init("class", .string(word))) }
    if context.core.isUnheard(key), let topic = property.reportSource?.topic {
      members.append(.init("state_topic", .string(topic)))
    }
    if case .boolean = property.kind, property.isReadOnly {
      members.append(.init("reversed", .boolean(SensorClass.isReversed(property))))
    }
    if let rule = property.kind.numberRule {
      if let range = rule.range {
        let ends = [range.lowerBound, range.upperBound]
        members.append(.init("range", .array(ends.map { JSONValue(shortest: $0) })))
      }
      if let step = rule.step { members.append(.init("step", JSONValue(shortest: step))) }
      if let unit = rule.unit { members.append(.init("unit", .string(unit))) }
      if let display = rule.display { members.append(.init("display", display.json)) }
    }
    switch property.kind {
    case .choice(let words), .action(let words):
      members.append(.init("values", .array(words.map { .string($0) })))
    case .number, .integer, .boolean, .text, .color: break
    }
    members.append(.init("can_confirm", .boolean(property.confirm != nil)))
    members.append(.init("delay_ms", Self.milliseconds(property.policy.delay)))
    members.append(
      .init("max_wait_ms", property.policy.maxWait.map { Self.milliseconds($0) } ?? .null)
    )
    members.append(.init("leading", .boolean(property.policy.leading)))
    members.append(.init("min_interval_ms", Self.milliseconds(property.policy.minInterval)))
    members.append(
      .init("confirm_ms", property.confirm.map { Self.milliseconds($0.within) } ?? .null)
    )
    members.append(.init("urgent", .array(property.urgent.map(\.json))))
    return .object(members)
  }

  /// The state of a property: the row of `get`, whether its device is online, the pending value,
  /// and how its newest command failed if it did.
  func stateMembers(_ key: KeyIndex, at now: Moment) -> [JSONValue.Member] {
    let target = TargetRow(key, in: context.core, at: now)
    var members: [JSONValue.Member] = []
    if case .object(let row) = target.json { members = row }
    let device = context.registry.device(of: key)
    let isOnline = context.core.isOnline(device: device)
    members.append(.init("online", .boolean(isOnline)))
    members.append(.init("pending", pendingObject(key, at: now)))
    let failure = failures[target.key].flatMap { $0.phase == target.phase ? $0 : nil }
    members.append(
      .init(
        "failure",
        failure.map { .object(["value": $0.value ?? .null, "reason": .string($0.reason ?? "")]) }
          ?? .null
      )
    )
    return members
  }

  private func pendingObject(_ key: KeyIndex, at now: Moment) -> JSONValue {
    guard let status = context.core.pending(key),
      case .object(let members) = PendingRow(status, in: context.registry, at: now).json
    else { return .null }
    return .object(members.filter { $0.name != "key" })
  }

  private static func milliseconds(_ duration: Duration) -> JSONValue {
    JSONValue(shortest: duration / .milliseconds(1))
  }
}

/// A document that is written part by part, so that a long one does not stop the gateway.
protocol PartialDocument {
  /// Appends the next part, which takes well below a millisecond; `false` after the last one.
  mutating func appendPart(to bytes: inout [UInt8]) -> Bool
}

/// Sends a long document: what the client does not read is not written.
final class DocumentStream: ResponseStream {
  private var document: any PartialDocument
  private var isComplete = false
  /// What was written before the first call for it.
  private var beginning: [UInt8] = []
  private var writer: GzipWriter?
  /// What is sent in one piece, and written at once.
  private static let shortSize = 16 * 1024
  /// Bodies below this fit one packet as they are.
  static let compressedSize = 1024

  /// Writes the beginning; `isCompressed` says what the client accepts.
  init(_ document: any PartialDocument, isCompressed: Bool) {
    self.document = document
    let plain = part(Self.shortSize)
    guard isCompressed, plain.count >= Self.compressedSize else {
      beginning = plain
      return
    }
    let writer = GzipWriter()
    self.writer = writer
    writer.append(plain, isLast: isComplete, to: &beginning)
  }

  /// Whether the body is compressed.
  var isCompressed: Bool { writer != nil }

  /// The body of a response: bytes if the document is short.
  var body: HTTPResponse.Body { isComplete ? .bytes(beginning) : .stream(self) }

  func next(_ room: Int) -> ResponsePiece {
    let bytes = beginning.isEmpty ? write(room) : beginning
    beginning = []
    return bytes.isEmpty ? .end : .bytes(bytes)
  }

  private func write(_ size: Int) -> [UInt8] {
    guard let writer else { return part(size) }
    var bytes: [UInt8] = []
    // The writer may keep what it gets until it has more.
    while bytes.isEmpty, !isComplete {
      let plain = part(size)
      writer.append(plain, isLast: isComplete, to: &bytes)
    }
    return bytes
  }

  private func part(_ size: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < size, !isComplete { isComplete = !document.appendPart(to: &bytes) }
    return bytes
  }
}
