// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import Testing
import Values

/// Properties without `command`, areas, and devices that the panel hides.
struct ReadOnlyTests {
  private func registry(_ text: String) throws -> Registry {
    let (outcome, folder) = try Loading.run(devices: ["d.yaml": text])
    switch outcome {
    case .loaded(let configuration): return configuration.registry
    case .refused(let problems):
      try #require(problems.isEmpty, "\(Loading.lines(problems, in: folder))")
      throw CancellationError()
    }
  }

  @Test func `a property without a command is read-only`() throws {
    let registry = try registry(
      """
      hall:
        properties:
          temperature:
            {type: number, name: Temp, aliases: [t], unit: °C, state: {topic: hall, value: /temperature}}
          contact: {type: boolean, on: false, off: true, state: {topic: hall, value: /contact}}
          power: {type: boolean, command: {topic: c}}
      """
    )
    let temperature = registry[try registry.index(of: "hall/t")].property
    #expect(temperature.isReadOnly)
    #expect(temperature.name == "Temp")
    #expect(temperature.confirm == nil)
    #expect(temperature.value(fromWire: 21.5) == .number(21.5))
    let contact = registry[try registry.index(of: "hall/contact")].property
    #expect(contact.value(fromWire: false) == .boolean(true))
    #expect(!registry[try registry.index(of: "hall/power")].property.isReadOnly)
  }

  @Test func `command none makes a property of a profile read-only`() throws {
    let registry = try registry(
      """
      lamp:
        profile: zigbee2mqtt/light
        topic: zigbee2mqtt/lamp
        properties: {brightness: {command: none}, color_temp: {command: none}}
      """
    )
    let lamp = try #require(registry.devices.first)
    #expect(
      lamp.properties.filter(\.isReadOnly).map(\.id) == ["brightness", "color_temp", "color_mode"]
    )
    let color = try #require(lamp.properties.first { $0.id == "color" })
    #expect(color.excludes.isEmpty)
  }

  @Test func `a device of a template has its own state, and an area`() throws {
    let registry = try registry(
      """
      meter-$n:
        for: [1..2]
        area: Flat $n
        panel: false
        properties: {power: {type: number, unit: W, state: {topic: meters/$n}}}
      """
    )
    let device = try #require(registry.devices.last)
    #expect(device.area == "Flat 2")
    #expect(!device.isOnPanel)
    let power = registry[try registry.index(of: "meter-2/power")].property
    #expect(power.isReadOnly && power.state?.topic == "meters/2")
    #expect(registry.definition(ofDevice: 0) === registry.definition(ofDevice: 1))
  }

  @Test func `a group has an area, and nothing that is read-only`() throws {
    let both = """
      properties:
          power: {type: boolean, command: {topic: $topic/set}}
          load: {type: number, state: {topic: $topic}}
      """
    let registry = try registry(
      """
      a:
        topic: a
        area: Kitchen
        \(both)
      b:
        topic: b
        \(both)
      groups: {all: {members: [a, b], area: Kitchen, panel: false}}
      """
    )
    let group = try #require(registry.devices.last)
    #expect(group.properties.map(\.id) == ["power"])
    #expect(group.area == "Kitchen" && !group.isOnPanel)
    #expect(registry.devices.map(\.area) == ["Kitchen", nil, "Kitchen"])
    #expect(registry.devices.map(\.isOnPanel) == [true, true, false])
  }
}
