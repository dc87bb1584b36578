// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import JSONParsing
package import LastOut

/// A blind behind Zigbee2MQTT, which takes time to move and reports its position meanwhile.
///
/// It accepts `{"position":0...100}`, with 100 for open, and `{"state":"OPEN"|"CLOSE"|"STOP"}`.
package struct MovingCover: SimulatedDevice {
  /// The time from one end to the other.
  package static let fullTravel = Duration.seconds(8)
  package static let reportInterval = Duration.milliseconds(500)

  package let name: String
  package private(set) var tally = CommandTally()

  private var position: Ramp
  private var nextReport: Moment?

  package init(name: String, position: Double = 0) {
    self.name = name
    self.position = Ramp(resting: position, at: .zero)
  }

  private var topic: String { "zigbee2mqtt/\(name)" }

  package var subscriptions: [String] { ["\(topic)/set", "\(topic)/get"] }

  package var nextWake: Moment? { nextReport }

  /// The position at `now`, from 0 (closed) to 100 (open).
  package func position(at now: Moment) -> Int { Int(position.value(at: now).rounded()) }

  package var will: [DeviceMessage] { [.zigbeeAvailability(topic, isOnline: false)] }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    [
      .zigbeeAvailability(topic, isOnline: true),
      report(at: now),
    ]
  }

  package mutating func receive(
    topic received: String,
    payload: [UInt8],
    at now: Moment
  ) -> [DeviceMessage] {
    if received == "\(topic)/get" { return [report(at: now)] }
    tally.received += 1
    guard let target = target(of: payload, at: now) else {
      tally.refused += 1
      return []
    }
    let start = position.value(at: now)
    position = Ramp(
      from: start,
      to: target,
      start: now,
      duration: Self.fullTravel * (abs(target - start) / 100)
    )
    return [report(at: now)]
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    guard let due = nextReport, due <= now else { return [] }
    return [report(at: now)]
  }

  private func target(of payload: [UInt8], at now: Moment) -> Double? {
    let command = (try? JSONParser.parse(payload.span)) ?? .null
    if let asked = command["position"]?.double { return min(max(asked, 0), 100) }
    let word = command["state"]?.string ?? String(decoding: payload, as: UTF8.self)
    switch word.uppercased() {
    case "OPEN": return 100
    case "CLOSE": return 0
    case "STOP": return position.value(at: now).rounded()
    default: return nil
    }
  }

  private mutating func report(at now: Moment) -> DeviceMessage {
    let isMoving = position.isMoving(at: now)
    nextReport = isMoving ? min(now.advanced(by: Self.reportInterval), position.end) : nil
    let current = position(at: now)
    return DeviceMessage(
      topic: topic,
      json: .object([
        "position": .integer(Int64(current)), "state": current == 0 ? "CLOSE" : "OPEN",
        "moving": .boolean(isMoving),
      ]),
      retain: true
    )
  }
}
