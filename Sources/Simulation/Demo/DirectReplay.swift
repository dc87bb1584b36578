// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices
package import JSON
import JSONParsing
import LastOut
import Values

/// A replay of a script without Settle, in which every change is a command.
///
/// It runs on a virtual clock with a network that takes no time.
package struct DirectReplay {
  /// A key whose device ended at another value than the last requested one.
  package struct Mismatch: Hashable, Sendable {
    package var key: String
    package var target: JSONValue
    /// The device's last report; `nil` if it reports nothing.
    package var actual: JSONValue?

    package init(key: String, target: JSONValue, actual: JSONValue?) {
      self.key = key
      self.target = target
      self.actual = actual
    }
  }

  package private(set) var commands = 0
  package private(set) var ledger: DemoLedger
  private var devices: [any SimulatedDevice]
  private var targets: [KeyIndex: Value] = [:]

  /// Plays `script` to its end.
  package init(_ script: DemoScript, registry: Registry, devices: [any SimulatedDevice]) {
    ledger = DemoLedger(registry: registry)
    self.devices = devices
    for index in self.devices.indices { record(self.devices[index].start(at: .zero)) }
    for request in script.changes {
      let now = Moment(nanoseconds: UInt64(max(0, request.at ?? 0) * 1_000_000))
      wakeDevices(through: now)
      play(request, at: now)
    }
    wakeDevices(through: Moment(nanoseconds: .max))
  }

  /// The number of commands that busy devices lost.
  package var dropped: Int { devices.reduce(0) { $0 + $1.tally.dropped } }

  /// The keys whose device lost commands and ended at another value than the last requested one.
  package var mismatches: [Mismatch] {
    ledger.order.compactMap { key -> Mismatch? in
      let entry = ledger.registry[key]
      let lostSome = devices.contains {
        $0.tally.dropped > 0 && $0.listens(to: entry.property.command.topic)
      }
      guard let target = targets[key], ledger.agrees(key) == false, lostSome else { return nil }
      return Mismatch(key: entry.key, target: target.json, actual: ledger[key].reported)
    }
  }

  private mutating func play(_ request: ControlRequest, at now: Moment) {
    for member in request.deviceMembers ?? [] {
      play(ControlRequest(.set(member.value), key: "\(request.key)/\(member.name)"), at: now)
    }
    guard let key = try? ledger.registry.index(of: request.key),
      let value = value(request.operation, of: key)
    else { return }
    let property = ledger.registry[key].property
    ledger.change(key, at: now)
    targets[key] = value
    // After a stop, the device itself decides at which value the ended properties are.
    for other in property.ends {
      let device = ledger.registry[key].device
      guard let ended = try? ledger.registry.index(of: other, inDevice: device) else { continue }
      targets[ended] = nil
    }
    var payload: [UInt8] = []
    property.command.payload.render(property.wireValue(of: value), into: &payload)
    commands += 1
    send(payload, to: property.command.topic, at: now)
    for (key, target) in targets { ledger.target(key, target.json) }
  }

  private func value(_ operation: ControlRequest.Operation, of key: KeyIndex) -> Value? {
    let property = ledger.registry[key].property
    let base = targets[key] ?? ledger[key].reported.flatMap { property.value(fromWire: $0) }
    switch operation {
    case .set(let input): return try? property.value(from: input)
    case .step(let amount):
      guard let number = try? amount.number(for: property.kind) else { return nil }
      return base.flatMap { try? property.stepped(from: $0, by: number) }
    case .toggle: return base.flatMap { try? property.toggled(from: $0) }
    case .scene, .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload, .status,
      .log, .devices:
      return nil
    }
  }

  private mutating func send(_ payload: [UInt8], to topic: String, at now: Moment) {
    for index in devices.indices where devices[index].listens(to: topic) {
      record(devices[index].receive(topic: topic, payload: payload, at: now))
    }
  }

  private mutating func wakeDevices(through end: Moment) {
    while let wake = devices.compactMap(\.nextWake).min(), wake <= end {
      for index in devices.indices where devices[index].nextWake.map({ $0 <= wake }) == true {
        record(devices[index].wake(at: wake))
      }
    }
  }

  private mutating func record(_ messages: [DeviceMessage]) {
    for message in messages {
      let document = (try? JSONParser.parse(message.payload.span)) ?? .string(message.text)
      ledger.report(topic: message.topic, document: document)
    }
  }
}
