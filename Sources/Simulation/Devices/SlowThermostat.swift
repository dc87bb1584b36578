// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import JSONParsing
package import LastOut

/// A radiator thermostat that cannot keep up: it loses commands that arrive close together.
///
/// After accepting a command it is busy for ``busyTime`` and ignores further commands. The new
/// set-point takes effect and is reported after ``confirmDelay``. Flooding such a device leaves it
/// at a value that is not the last one.
package struct SlowThermostat: SimulatedDevice {
  package static let busyTime = Duration.milliseconds(600)
  package static let confirmDelay = Duration.milliseconds(1000)

  package let topic: String
  package private(set) var setpoint: Double
  package private(set) var tally = CommandTally()

  private var busyUntil = Moment.zero
  /// The accepted set-point that is not yet in effect.
  private var accepted: (value: Double, effective: Moment)?

  package init(topic: String, setpoint: Double = 20) {
    self.topic = topic
    self.setpoint = setpoint
  }

  package var subscriptions: [String] { ["\(topic)/set"] }

  package var nextWake: Moment? { accepted?.effective }

  package var will: [DeviceMessage] {
    [DeviceMessage(topic: "\(topic)/status", text: "offline", retain: true)]
  }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    [DeviceMessage(topic: "\(topic)/status", text: "online", retain: true), report()]
  }

  package mutating func receive(
    topic received: String,
    payload: [UInt8],
    at now: Moment
  ) -> [DeviceMessage] {
    tally.received += 1
    guard now >= busyUntil else {
      tally.dropped += 1
      return []
    }
    guard let value = (try? JSONParser.parse(payload.span))?["setpoint"]?.double,
      (5...30).contains(value)
    else {
      tally.refused += 1
      return []
    }
    // An accepted command takes effect before the next one is accepted.
    let early = wake(at: now)
    busyUntil = now.advanced(by: Self.busyTime)
    accepted = (value, now.advanced(by: Self.confirmDelay))
    return early
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    guard let next = accepted, next.effective <= now else { return [] }
    accepted = nil
    setpoint = next.value
    return [report()]
  }

  private func report() -> DeviceMessage {
    DeviceMessage(
      topic: topic,
      json: .object(["setpoint": .number(setpoint), "temperature": 20.5]),
      retain: true
    )
  }
}
