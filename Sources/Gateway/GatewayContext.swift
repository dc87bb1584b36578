// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Control
import Devices
import GatewayCore
import LastOut
import Operations
import Values

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
  /// Random, so that no two processes have the same.
  let processNumber = UInt32.random(in: 0...UInt32.max)
  /// The settings in force, as `status` shows them.
  var settings: [SettingInForce]
  /// Sections that changed in the files and count only after a restart.
  var restart: [String] = []
  /// What lamps show in Home Assistant.
  var lights = LightStates()
  /// Devices that appear with their first message.
  var arrivals: DeviceArrivals
  /// The partition whose session has received the message that is being handled; `nil` without a
  /// cluster, and for other connections.
  var receivingPartition: Partition?
  /// Receives values of a scene on whose devices other members of a cluster drive.
  var onElsewhere: ((_ values: [(key: KeyIndex, value: Value)], _ origin: ChangeOrigin?) -> Void)?
  /// Which devices this member of a cluster drives; `nil` without a cluster.
  var places: DevicePlaces?
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
    arrivals = DeviceArrivals(configuration.sources, log: log)
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
    places = configuration.gateway.cluster.map {
      DevicePlaces(configuration.registry, partitions: $0.partitions)
    }
    encoder = EventEncoder(
      identifiers,
      gateway: configuration.gateway.cluster?.member,
      wallMilliseconds: wallMilliseconds,
      now: now
    )
    devicesReloaded()
  }

  /// Continues with the core's devices after a reload.
  func devicesReloaded() {
    registry = core.registry
    counters.extend(to: registry.devices.count)
    places?.replaceDevices(registry)
  }

  /// A device came online or went offline.
  func availabilityChanged(of device: Int, at now: Moment) {
    awaySince[device] = core.isOnline(device: device) ? nil : now
  }

  /// Whether a message that is being handled is about a device: each session of a cluster receives
  /// what concerns its own devices, and topics that several share arrive on each.
  func concerns(device: Int) -> Bool {
    guard let places else { return true }
    return receivingPartition.map { places.partition(ofDevice: device) == $0 } ?? false
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

/// The partition of each device, and which partitions this member of a cluster drives.
struct DevicePlaces {
  /// How many partitions the cluster has.
  let count: Int
  /// The partition of each device, by number; -1 for one that is not in the files any more.
  private var partitions: [Int32] = []
  /// The devices of each partition, in the order of their definition.
  private var devices: [[Int]]
  private var isDriven: [Bool]

  init(_ registry: Registry, partitions count: Int) {
    self.count = count
    devices = Array(repeating: [], count: count)
    isDriven = Array(repeating: false, count: count)
    replaceDevices(registry)
  }

  /// Continues with the devices of a reload.
  mutating func replaceDevices(_ registry: Registry) {
    partitions = Array(repeating: -1, count: registry.devices.count)
    for place in devices.indices { devices[place] = [] }
    for device in registry.deviceNumbers {
      let partition = Partition(of: registry.id(ofDevice: device), count: count)
      partitions[device] = Int32(partition.number)
      devices[partition.number].append(device)
    }
  }

  /// The partition of a device; `nil` for one that was removed.
  func partition(ofDevice device: Int) -> Partition? {
    guard device < partitions.count, partitions[device] >= 0 else { return nil }
    return Partition(Int(partitions[device]))
  }

  /// The partition of a route, an input or a scene.
  func partition(ofName name: String) -> Partition { Partition(of: name, count: count) }

  func devices(of partition: Partition) -> [Int] { devices[partition.number] }

  func drives(_ partition: Partition) -> Bool { isDriven[partition.number] }

  /// Whether this member drives a device.
  func drives(device: Int) -> Bool {
    partition(ofDevice: device).map { isDriven[$0.number] } ?? false
  }

  mutating func set(_ partition: Partition, isDriven: Bool) {
    self.isDriven[partition.number] = isDriven
  }
}

/// Counts the changes and commands of one device, for metrics.
struct DeviceCounters: Sendable {
  var changes: UInt64 = 0
  var collapsed: UInt64 = 0
  var unchanged: UInt64 = 0
  var rejected: UInt64 = 0
  var cancelled: UInt64 = 0
  var sent: UInt64 = 0
  var confirmed: UInt64 = 0
  var failed: UInt64 = 0
  var expired: UInt64 = 0

  /// Counts an event.
  ///
  /// Replaced values are counted with the command that was sent, was unnecessary or was cancelled.
  mutating func record(_ event: CommandEvent) {
    switch event.phase {
    case .accepted, .superseded, .sending: return
    case .unchanged: unchanged += 1
    case .cancelled: cancelled += 1
    case .rejected: return rejected += 1
    case .sent:
      sent += 1
      guard event.attempt == 1 else { return }
    case .confirmed: return confirmed += 1
    case .failed: return failed += 1
    case .expired: expired += 1
    }
    collapsed += UInt64(event.collapsed)
  }
}
