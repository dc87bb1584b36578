// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut

@testable import Routing

/// A machine with one route from `in/+` to `out/+`, and its clock.
struct RouteBench: ~Copyable {
  var machine: RouteMachine
  var now = Moment(nanoseconds: 1_000_000_000)

  init(limit: Int = 100, adjust: (inout RouteConfiguration) -> Void = { _ in }) {
    var route = RouteConfiguration(
      from: .init(topic: "in/+"),
      to: .init(topic: "out/+"),
      policy: Policy(delay: .milliseconds(100))
    )
    adjust(&route)
    self.init(routes: [route], limit: limit)
  }

  init(routes: [RouteConfiguration], limit: Int) {
    machine = RouteMachine(routes, brokers: [], ttl: .seconds(60), limit: limit, payloadLimit: 8)
  }

  /// Announces devices and groups as Zigbee2MQTT does below `direct`.
  mutating func announce(devices: String, groups: String) {
    for (list, text) in [("devices", devices), ("groups", groups)] {
      let topic = Array("direct/bridge/\(list)".utf8)
      let isRead = machine.readAnnouncement(Array(text.utf8).span, topic: topic.span, broker: 0)
      precondition(isRead)
    }
  }

  @discardableResult
  mutating func receive(
    _ payload: String,
    on topic: String = "in/a",
    retained: Bool = false
  ) -> RouteMachine.Verdict {
    let topic = Array(topic.utf8)
    guard let keys = machine.outputs(fedBy: topic.span, broker: 0) else { return .overflow }
    return machine.receive(
      Array(payload.utf8).span,
      document: machine.needsDocument(keys) ? try? JSONParser.parse(Array(payload.utf8).span) : nil,
      for: keys,
      retained: retained,
      trail: "",
      at: now
    )
  }

  mutating func pass(_ milliseconds: Int) {
    now = now.advanced(by: .milliseconds(milliseconds))
    machine.advance(to: now)
  }

  mutating func publishes() -> [RouteMachine.Publish] {
    var found: [RouteMachine.Publish] = []
    while let publish = machine.nextPublish(for: 0, at: now) { found.append(publish) }
    return found
  }

  mutating func leave(_ outcome: PublishOutcome = .acknowledged) -> [String] {
    let leaving = publishes()
    for publish in leaving { machine.finish(publish.number, outcome) }
    return leaving.map { "\($0.topic) \(String(decoding: $0.payload, as: UTF8.self))" }
  }
}
