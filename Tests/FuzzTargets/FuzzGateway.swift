// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
@testable import Gateway
import GatewayCore
import LastOut
import Operations

/// A gateway without broker, sockets or files: the core and the surfaces that run.
enum FuzzGateway {
  /// One property of each type, relations, an input, and a route.
  private static let devices = """
    lamp:
      name: Lamp
      profile: zigbee2mqtt/light
      topic: zigbee2mqtt/lamp
    blind:
      profile: zigbee2mqtt/cover
      topic: zigbee2mqtt/blind
    boiler:
      properties:
        target_temperature:
          type: number
          range: [5, 30]
          step: 0.5
          policy: {delay: 800ms, max_wait: none}
          command: {topic: heating/boiler/set, payload: {setpoint: $value}}
          state: {topic: heating/boiler, value: /setpoint}
          confirm: {within: 10s, retries: 2}
        mode:
          type: choice
          values: ["off", heat, auto]
          command: {topic: heating/boiler/mode}
          state: {topic: heating/boiler, value: /mode}
        note:
          type: text
          command: {topic: heating/boiler/note}
    """

  static let configuration: LoadedConfiguration = {
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = "/nowhere/settle.yaml"
    overrides.devices = "/nowhere/devices"
    let settings = """
      routes: [{from: "slow/+/in", to: "fast/+/out"}]
      inputs: [{topic: knob, value: /action, map: {up: {key: lamp/brightness, step: 10}}}]
      """
    do throws(ConfigurationFailure) {
      return try ConfigurationLoader.load(
        overrides,
        environment: [:],
        drafts: [
          "/nowhere/settle.yaml": Array(settings.utf8),
          "/nowhere/devices/devices.yaml": Array(devices.utf8),
        ]
      )
    } catch {
      fatalError("The fixture has mistakes: \(error.problems.map(\.description))")
    }
  }()

  /// Makes a gateway that has received nothing, and performs what its core decides about `body`.
  static func with(_ body: (GatewayHost) -> Void) {
    do throws(OperationsError) {
      let loop = try EventLoop()
      let log = Logger(level: .error) { _ in }
      let host = try GatewayHost(configuration: configuration, loop: loop, log: log)
      body(host)
      loop.afterBatch?()
      // Everything that was accepted settles.
      host.context.core.advance(to: EventLoop.now().advanced(by: .seconds(3600)))
      loop.afterBatch?()
    } catch {
      fatalError("No gateway: \(error.description)")
    }
  }
}
