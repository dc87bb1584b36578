// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import GatewayCore
import LastOut
import Operations

/// What the host shares with its surfaces: the core, and what every translation needs beside it.
///
/// It refers to neither, so that a surface reaches the core without a detour through the host.
final class GatewayContext {
  let loop: EventLoop
  let log: Logger
  var configuration: GatewayConfiguration
  var core: GatewayCore
  /// The devices: the core's, at hand for every translation.
  private(set) var registry: Registry
  var encoder: EventEncoder
  /// Counts by device number.
  var counters = LazyArray(repeating: DeviceCounters(), count: 0)
  /// The last commands of each key.
  var history = CommandHistory()
  let startedAt: Moment
  /// The settings in force, as `status` shows them.
  var settings: [SettingInForce]
  /// Sections that changed in the files and count only after a restart.
  var restart: [String] = []
  /// What lamps show in Home Assistant.
  var lights = LightStates()
  /// Devices that appear with their first message.
  var arrivals: DeviceArrivals
  /// What the files warn about.
  var warnings: [String]
  /// Since when devices have been offline, by number.
  private(set) var awaySince: [Int: Moment] = [:]
  /// When devices that sleep reported themselves last, by number.
  var awakeSince: [Int: Moment] = [:]

  init(_ configuration: LoadedConfiguration, loop: EventLoop, log: Logger) {
    self.loop = loop
    self.log = log
    self.configuration = configuration.gateway
    settings = configuration.settings
    arrivals = DeviceArrivals(configuration.sources)
    warnings = configuration.warnings.map(\.description)
    let now = EventLoop.now()
    startedAt = now
    let wallMilliseconds = WallClock.milliseconds()
    let identifiers = CommandIdentifiers(
      wallMilliseconds: wallMilliseconds,
      now: now,
      session: UInt16.random(in: 0...UInt16.max)
    )
    registry = configuration.registry
    var settings = configuration.gateway.coreSettings
    settings.awaited = AwaitedDevices(configuration.sources.map(\.template))
    core = GatewayCore(
      registry: configuration.registry,
      settings: settings,
      identifiers: identifiers
    )
    encoder = EventEncoder(identifiers, wallMilliseconds: wallMilliseconds, now: now)
    devicesReloaded()
  }

  /// Continues with the core's devices after a reload.
  func devicesReloaded() {
    registry = core.registry
    counters.extend(to: registry.devices.count)
  }

  /// A device came online or went offline.
  func availabilityChanged(of device: Int, at now: Moment) {
    awaySince[device] = core.commands.dispatcher.sendQueue.isDeviceOnline(device) ? nil : now
  }

  /// Reads the time of day; call it before events are encoded, since the wall clock may have been
  /// set.
  func synchronizeEncoder(at now: Moment) {
    encoder.tie(wallMilliseconds: WallClock.milliseconds(), now: now)
  }
}

extension GatewayConfiguration {
  /// The part of the settings that the core needs.
  fileprivate var coreSettings: GatewayCoreSettings {
    var settings = GatewayCoreSettings()
    settings.commands.pendingLimit = limits.pending
    settings.commands.lanes = lanes
    settings.commands.firstMessage = .random(in: 0..<1 << 31)
    settings.routes = routes
    settings.brokers = brokers.keys.sorted()
    // A routed message may wait a moment for room at a broker that is there.
    settings.routeTTL = max(ttl, .seconds(1))
    settings.routePayload = limits.payload
    settings.shutdownTimeout = shutdownTimeout
    return settings
  }
}
