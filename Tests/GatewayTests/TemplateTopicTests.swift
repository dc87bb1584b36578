// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import MQTT
import Testing
import Values

@testable import Configuration
@testable import Gateway

/// The topics of many devices that are alike: found without a table, subscribed with wildcards.
@Suite struct TemplateTopicTests {
  /// A template with a state, an availability and an awake topic, each with marks.
  private static func pattern(
    state: String,
    availability: String = "fleet/$n/alive",
    awake: String = "fleet/$n/awake"
  ) -> Device {
    var level = Property(
      id: "level",
      kind: .boolean,
      policy: .standard,
      command: .init(topic: TemplateMark.marked("fleet/$n/set"), payload: PayloadTemplate("$value"))
    )
    level.states = [
      StateSource(topic: TemplateMark.marked(state), value: .whole),
      StateSource(topic: TemplateMark.marked("all/state"), value: .whole),
    ]
    var device = Device(id: TemplateMark.marked("d$n"), name: "", properties: [level])
    device.availability = [
      AvailabilitySource(
        topic: TemplateMark.marked(availability),
        value: .whole,
        online: true,
        offline: false
      )
    ]
    device.awake = AwakeSource(topic: TemplateMark.marked(awake))
    return device
  }

  /// Devices of a list, which share a definition or are written out.
  private static func registry(_ pattern: Device, _ count: Int, isShared: Bool) -> Registry {
    let template = TemplateDevices(DeviceTemplate(pattern))
    let devices = (1...count).map { number in
      let fillings = [0: DeviceTemplate.Filling("\(number)")]
      return isShared
        ? template.device(fillings) : DeviceInstance(DeviceTemplate(pattern).device(fillings))
    }
    return Registry(devices, continuing: nil)
  }

  private static func roles(_ topic: String, in registry: Registry) -> [String] {
    let map = TopicMap(
      configuration: GatewayConfiguration(),
      registry: registry,
      announcer: nil
    )
    return map.roles(of: topic.utf8.span).map { "\($0)" }
  }

  @Test(
    arguments: [
      "fleet/$n/state", "fleet/unit-$n/state", "$n", "$n/state/$n", "fleet/$n/alive",
      "fleet/$n/awake", "fleet/state",
    ],
    [
      "fleet/2/state", "fleet/unit-2/state", "2", "2/state/2", "2/state/3", "fleet/2/alive",
      "fleet/2/awake", "fleet/9/state", "fleet//state", "fleet/2/state/", "fleet/unit-/state",
      "fleet/state", "all/state", "fleet/02/state", "", "/", "fleet/2",
    ]
  )
  func `a topic of a template has the roles that it has where devices are written out`(
    state: String,
    topic: String
  ) {
    let pattern = Self.pattern(state: state)
    #expect(
      Self.roles(topic, in: Self.registry(pattern, 3, isShared: true))
        == Self.roles(topic, in: Self.registry(pattern, 3, isShared: false))
    )
  }

  private static func filters(
    _ pattern: Device,
    _ count: Int,
    inputs: [String] = []
  ) -> [String] {
    var configuration = GatewayConfiguration()
    configuration.inputs = inputs.map {
      InputConfiguration(topic: $0, value: .whole, map: [:])
    }
    let subscriptions = TopicSubscriptions(
      configuration: configuration,
      registry: registry(pattern, count, isShared: true),
      announcer: nil
    )
    return subscriptions.all(forBroker: nil, isOwn: true).map(\.filter)
      .filter { !$0.hasPrefix("settle/") }.sorted()
  }

  @Test func `a hundred devices of a list share their filters`() {
    let filters = Self.filters(Self.pattern(state: "fleet/$n/state"), 100)
    #expect(filters == ["all/state", "fleet/+/alive", "fleet/+/awake", "fleet/+/state"])
  }

  @Test func `fewer devices have filters of their own`() {
    let filters = Self.filters(Self.pattern(state: "fleet/$n/state"), 99)
    #expect(filters.count == 3 * 99 + 1)
    #expect(!filters.contains { $0.contains("+") })
  }

  @Test func `a filter is not shared where the level names more than the device`() {
    let filters = Self.filters(Self.pattern(state: "fleet/unit-$n/state"), 100)
    #expect(filters.count == 100 + 3)
    #expect(filters.contains("fleet/unit-100/state"))
  }

  @Test func `a filter is not shared where it would match an input`() {
    let filters = Self.filters(Self.pattern(state: "fleet/$n/state"), 100, inputs: ["+/x/state"])
    #expect(filters.count == 100 + 4)
    #expect(filters.contains("fleet/100/state"))
  }
}
