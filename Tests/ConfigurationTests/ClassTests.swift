// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Testing

/// `class` and `category` of devices and properties.
@Suite struct ClassTests {
  /// The first device of a file, and the warnings.
  private func loaded(_ text: String) throws -> (device: Device, warnings: [String]) {
    let (outcome, folder) = try Loading.run(devices: ["d.yaml": text])
    guard case .loaded(let configuration) = outcome else {
      Issue.record("\(outcome)")
      throw CancellationError()
    }
    let device = try #require(configuration.registry.devices.first)
    return (device, Loading.lines(configuration.warnings, in: folder))
  }

  @Test func `a class comes from the device file or its profile`() throws {
    let lamp = "d: {profile: zigbee2mqtt/light, topic: z/d}"
    #expect(try loaded(lamp).device.deviceClass == "lamp")
    let plain = "d: {profile: zigbee2mqtt/light, topic: z/d, class: none}"
    #expect(try loaded(plain).device.deviceClass == nil)
    let own = try loaded(
      """
      d:
        class: fan
        properties:
          p: {class: outlet, category: config, type: boolean, command: {topic: t}}
          q: {class: door, category: diagnostic, type: boolean, state: {topic: s}}
      """
    )
    #expect(own.warnings == [])
    #expect(own.device.deviceClass == "fan")
    #expect(own.device.properties.map(\.deviceClass) == ["outlet", "door"])
    #expect(own.device.properties.map(\.category) == [.config, .diagnostic])
  }

  @Test func `an unknown class is a warning, and an unknown category a mistake`() throws {
    let found = try loaded("d: {class: lampp, properties: {p: {type: text, state: {topic: s}}}}")
    #expect(found.device.deviceClass == nil)
    #expect(
      found.warnings == [
        "d.yaml:1:12: class: 'lampp' is no class that is known, and has no effect; did you mean 'lamp'?"
      ]
    )
    #expect(
      try Loading.mistakes(
        inDevices: "d: {properties: {p: {category: setup, type: text, state: {topic: s}}}}"
      ) == ["d.yaml:1:32: category: found 'setup', expected config, diagnostic, none"]
    )
  }
}
