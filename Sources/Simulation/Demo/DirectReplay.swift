// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
package import Devices
package import JSON
import JSONParsing
import LastOut

/// The same hands and the same devices without Settle: every change is a command at once.
///
/// Played on a virtual clock, with a network that takes no time.
package struct DirectReplay {
  /// How one key ended.
  package struct Ending: Hashable, Sendable {
    package var key: String
    package var asked: JSONValue
    /// What the device showed in the end; `nil` if it reports nothing.
    package var shown: JSONValue?

    package init(key: String, asked: JSONValue, shown: JSONValue?) {
      self.key = key
      self.asked = asked
      self.shown = shown
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
    for place in self.devices.indices { note(self.devices[place].start(at: .zero)) }
    for request in script.changes {
      let now = Moment(nanoseconds: UInt64(max(0, request.at ?? 0) * 1_000_000))
      wakeDevices(through: now)
      play(request, at: now)
    }
    wakeDevices(through: Moment(nanoseconds: .max))
  }

  /// Commands that devices lost because they were busy.
  package var dropped: Int { devices.reduce(0) { $0 + $1.tally.dropped } }

  /// The keys that did not end at what was asked for last, because their device lost commands.
  package var wrongEndings: [Ending] {
    ledger.order.compactMap { key -> Ending? in
      let entry = ledger.registry[key]
      let lostSome = devices.contains {
        $0.tally.dropped > 0 && $0.listens(to: entry.property.command.topic)
      }
      guard let target = targets[key], ledger.agrees(key) == false, lostSome else { return nil }
      return Ending(key: entry.key, asked: target.json, shown: ledger[key].reported)
    }
  }

  private mutating func play(_ request: ControlRequest, at now: Moment) {
    guard let key = try? ledger.registry.index(of: request.key),
      let value = value(request.operation, of: key)
    else { return }
    let property = ledger.registry[key].property
    ledger.change(key, at: now)
    targets[key] = value
    // A device that is moved by hand or stopped says itself where it ended.
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
    case .step(let amount): return base.flatMap { try? property.stepped(from: $0, by: amount) }
    case .toggle: return base.flatMap { try? property.toggled(from: $0) }
    case .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload: return nil
    }
  }

  private mutating func send(_ payload: [UInt8], to topic: String, at now: Moment) {
    for place in devices.indices where devices[place].listens(to: topic) {
      note(devices[place].receive(topic: topic, payload: payload, at: now))
    }
  }

  private mutating func wakeDevices(through end: Moment) {
    while let wake = devices.compactMap(\.nextWake).min(), wake <= end {
      for place in devices.indices where devices[place].nextWake.map({ $0 <= wake }) == true {
        note(devices[place].wake(at: wake))
      }
    }
  }

  private mutating func note(_ messages: [DeviceMessage]) {
    for message in messages {
      let document = (try? JSONParser.parse(message.payload.span)) ?? .string(message.text)
      ledger.report(topic: message.topic, document: document)
    }
  }
}
