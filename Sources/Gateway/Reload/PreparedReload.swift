// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import HomeAssistant
import LastOut
import MQTT

/// A configuration that was read again, compared with the one in use.
///
/// It is made on another thread, so that the event loop compares nothing.
struct PreparedReload: Sendable {
  /// What is in use when a reading begins.
  struct Base: Sendable {
    var configuration: GatewayConfiguration
    var registry: Registry
    var subscriptions: TopicSubscriptions
    var announcer: DiscoveryAnnouncer?
    var settings: [SettingInForce] = []
    /// Templates of devices that appear with their first message, and those that have.
    var sources: [DeviceSource] = []
    var created: [DeviceArrivals.Arrival] = []
    var restart: [String] = []
    var warnings: [String] = []
    var digest: UInt64 = 0
  }

  /// The configuration in use, with what a running gateway can change.
  let configuration: GatewayConfiguration
  /// The devices, which continue those of the base.
  let registry: Registry
  let report: ReloadReport
  /// Devices to announce again, by number.
  let changedDevices: [Int]
  let subscriptions: TopicSubscriptions
  /// Subscriptions that are new or different, and filters that nothing needs any more; the rest is
  /// left alone, so that no retained message is received twice.
  let added: [Subscription]
  let removed: [String]
  /// The keys whose states were not asked for before, or otherwise.
  let requests: [KeyIndex]
  /// The settings in force from now on.
  let settings: [SettingInForce]
  /// Templates of devices that appear with their first message.
  let sources: [DeviceSource]
  /// The digest of the device files.
  let digest: UInt64
  /// The hash of each file that was read, by path; `nil` where none was.
  private(set) var hashes: [String: Int]?
  /// The devices that messages named and that are added, where that is all there is.
  var arrivals: [DeviceArrivals.Arrival]?

  init(_ loaded: LoadedConfiguration, continuing base: Base) {
    var devices = loaded.registry.deviceNumbers.map { loaded.registry.instance($0) }
    devices += DeviceArrivals.devices(base.created, of: loaded.sources).filter {
      loaded.registry.deviceIndex(ofID: $0.id.utf8.span) == nil
    }
    var next = base
    next.configuration.adoptReloadable(from: loaded.gateway)
    next.restart = Self.sectionsForRestart(base.configuration, loaded.gateway)
    next.settings = Self.settings(loaded.settings, after: base.settings, restart: next.restart)
    next.sources = loaded.sources
    next.warnings = loaded.warnings.map(\.description)
    next.digest = loaded.digest
    self.init(devices, scenes: loaded.registry.scenes, beside: next, continuing: base)
    hashes = loaded.hashes
  }

  /// The configuration in use, with devices that messages named.
  init(adding arrivals: [DeviceArrivals.Arrival], to base: Base) {
    let old = base.registry
    let new = DeviceArrivals.devices(arrivals, of: base.sources)
    let devices = old.deviceNumbers.map { old.instance($0) } + new
    self.init(devices, scenes: old.scenes, beside: base, continuing: base)
    self.arrivals = arrivals
  }

  /// Other devices, and beside them what `next` has that is in use from now on.
  private init(
    _ devices: [DeviceInstance],
    scenes: [Scene],
    beside next: Base,
    continuing base: Base
  ) {
    configuration = next.configuration
    digest = next.digest
    sources = next.sources
    settings = next.settings
    let registry = Registry(devices, continuing: base.registry, scenes: scenes)
    self.registry = registry
    var report = Self.differences(from: base.registry, to: registry)
    report.restart = next.restart
    report.warnings = next.warnings
    self.report = report
    let old = base.registry
    changedDevices = registry.devices.indices.filter { number in
      number >= old.devices.count || !registry.isSame(number, as: old)
    }
    subscriptions = TopicSubscriptions(
      configuration: configuration,
      registry: registry,
      sources: sources,
      announcer: base.announcer
    )
    let before = base.subscriptions.all(forBroker: nil, isOwn: true)
    let wanted = subscriptions.all(forBroker: nil, isOwn: true)
    let filters = Set(wanted.map(\.filter))
    let known = Set(before)
    removed = before.map(\.filter).filter { !filters.contains($0) }
    added = wanted.filter { !known.contains($0) }
    requests = Self.requests(from: base.registry, to: registry)
  }

  /// The keys with other requests for their states than before.
  private static func requests(from old: Registry, to new: Registry) -> [KeyIndex] {
    let requests = { (entry: Registry.Entry) in
      let canAsk = entry.definition.property.states.contains { $0.get != nil }
      return entry.isRetired || !canAsk ? [] : entry.states.compactMap(\.get)
    }
    return new.properties.indices.filter { place in
      let before = place < old.properties.count ? old.properties[place] : nil
      if let before, new.properties[place].isSame(as: before) { return false }
      let wanted = requests(new.properties[place])
      return !wanted.isEmpty && wanted != before.map(requests)
    }.map { KeyIndex(Int32($0)) }
  }

  /// The new settings, but the old ones of the sections that count only after a restart.
  private static func settings(
    _ new: [SettingInForce],
    after old: [SettingInForce],
    restart sections: [String]
  ) -> [SettingInForce] {
    let waits = { (setting: SettingInForce) in
      sections.contains { setting.name == $0 || setting.name.hasPrefix("\($0).") }
    }
    return old.filter(waits) + new.filter { !waits($0) }
  }

  /// Which keys are new, gone or other than before.
  private static func differences(from old: Registry, to new: Registry) -> ReloadReport {
    var report = ReloadReport(devices: new.deviceNumbers.count, keys: new.keyCount)
    var otherDevices: Set<Int> = []
    for number in old.devices.indices where !new.hasSameDevice(number, as: old) {
      otherDevices.insert(number)
    }
    for (place, entry) in new.properties.enumerated() {
      let before = place < old.properties.count ? old.properties[place] : nil
      switch (before?.isRetired ?? true, entry.isRetired) {
      case (true, true): break
      case (true, false): report.added.append(entry.key)
      case (false, true): report.removed.append(entry.key)
      case (false, false):
        if before.map({ !entry.isSame(as: $0) }) ?? true || otherDevices.contains(entry.device) {
          report.changed.append(entry.key)
        }
      }
    }
    return report
  }

  private static func sectionsForRestart(
    _ old: GatewayConfiguration,
    _ new: GatewayConfiguration
  ) -> [String] {
    let isOther: KeyValuePairs = [
      "mqtt": old.mqtt != new.mqtt || old.baseTopic != new.baseTopic
        || old.replyTopics != new.replyTopics,
      "socket": old.socket != new.socket, "http": old.http != new.http,
      "journal": old.journal != new.journal, "cluster": old.cluster != new.cluster,
      "brokers": old.brokers != new.brokers,
      "routes": old.routes != new.routes, "limits": old.limits != new.limits,
      "discovery": old.discovery != new.discovery, "import": old.importing != new.importing,
    ]
    return isOther.filter(\.value).map(\.key)
  }
}

extension GatewayConfiguration {
  /// Adopts what a running gateway can change; the rest counts after a restart.
  fileprivate mutating func adoptReloadable(from new: GatewayConfiguration) {
    policies = new.policies
    ttl = new.ttl
    devicesDirectory = new.devicesDirectory
    settingsFile = new.settingsFile
    shutdownTimeout = new.shutdownTimeout
    lanes = new.lanes
    inputs = new.inputs
  }
}
