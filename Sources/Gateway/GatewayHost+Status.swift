// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
package import Configuration
package import Control
import Devices
import Durability
import Engine
import GatewayCore
import HTTP
import JSON
import LastOut
import MQTT
import Operations

/// The facts that `status` shows.
extension GatewayHost {
  /// How many devices that are away, and properties, are named; a command that waits looks for its
  /// device there.
  private static let shownDevices = 1000
  /// How many warnings of the files are shown.
  private static let shownWarnings = 20

  /// The state of the gateway; takes time in proportion to all keys.
  func status(at now: Moment) -> StatusReport {
    var report = StatusReport(version: Release.description, isRunning: true)
    report.socket = socketPath
    report.runningMilliseconds = context.startedAt.milliseconds(to: now)
    report.files = reloads.files
    report.settings = context.settings.map(StatusReport.Setting.init)
    if let place = report.settings.firstIndex(where: { $0.name == "socket" }) {
      report.settings[place].value = socketPath ?? report.settings[place].value
    }
    report.brokers = mqtt.links.map { StatusReport.Broker($0, at: now) }
    report.devices = devices(at: now)
    report.queue = queue()
    report.journal = journalFacts()
    report.http = http.map(StatusReport.HTTP.init)
    report.imports = imports?.report(at: now)
    report.cluster = cluster.map { StatusReport.Cluster($0, at: now) }
    report.otherGatewayMilliseconds = mqtt.statusTopic.otherGatewaySeenAt?.milliseconds(to: now)
    report.restart = context.restart
    report.warnings = Array(context.warnings.prefix(Self.shownWarnings))
    report.counters = counters()
    report.problems = StatusAdvice.problems(in: report)
    return report
  }

  private func devices(at now: Moment) -> StatusReport.Devices {
    let registry = context.registry
    var devices = StatusReport.Devices()
    devices.count = registry.deviceNumbers.count
    devices.keys = registry.keyCount
    devices.scenes = registry.scenes.map(\.id)
    for number in registry.deviceNumbers
    where !context.core.isOnline(device: number) {
      devices.awayCount += 1
      guard devices.away.count < Self.shownDevices else { continue }
      devices.away.append(
        .init(
          id: registry.id(ofDevice: number),
          sinceMilliseconds: context.awaySince[number]?.milliseconds(to: now)
        )
      )
    }
    let sleepers = registry.deviceNumbers.filter { registry.sleeps($0) }
    devices.sleepers = sleepers.prefix(Self.shownDevices).map { number in
      .init(
        id: registry.id(ofDevice: number),
        sinceMilliseconds: context.awakeSince[number]?.milliseconds(to: now)
      )
    }
    addReports(to: &devices)
    return devices
  }

  private func addReports(to devices: inout StatusReport.Devices) {
    let summary = context.core.reportSummary()
    devices.unheardCount = summary.unheardDevices
    devices.unheard = summary.missed.prefix(Self.shownDevices).compactMap { key in
      let entry = context.registry[key]
      return entry.property.reportSource.map {
        .init(key: entry.key, topic: $0.topic, pointer: $0.value.text)
      }
    }
    devices.unreadable = summary.unreadable.prefix(Self.shownDevices).compactMap { key in
      UnreadableRow(key, in: context.core).map {
        .init(key: context.registry[key].key, reports: $0)
      }
    }
  }

  private func queue() -> StatusReport.Queue {
    let summary = context.core.queueSummary()
    let limits = context.configuration.lanes
    let lanes = context.core.laneStatuses
    var queue = StatusReport.Queue(limit: context.configuration.limits.pending)
    queue.quiet = summary.quiet
    queue.offline = summary.offline
    queue.asleep = summary.asleep
    queue.inFlight = summary.inFlight
    queue.unconfirmed = summary.unconfirmed
    queue.lanes = summary.lanes.map { lane in
      var row = StatusReport.Lane(
        name: lane.name ?? "",
        rate: lane.name.flatMap { limits[$0]?.rate?.perSecond },
        waiting: lane.waiting,
        inFlight: lane.inFlight
      )
      row.window = lanes.first { $0.name == lane.name }.flatMap(StatusReport.Window.init)
      return row
    }
    return queue
  }

  private func journalFacts() -> StatusReport.Journal? {
    guard context.core.hasStore, let path = context.configuration.journal?.path else { return nil }
    var journal = StatusReport.Journal(path: path)
    let fault = context.core.storeFault
    journal.fault = fault?.description
    journal.isFull = fault == .diskFull
    journal.waiting = context.core.storeWaitingCount
    return journal
  }

  private func counters() -> [StatusReport.Counter] {
    let statistics = statistics
    let refused = RejectionLog.Kind.allCases.reduce(0) { $0 + context.core.rejectedCount($1) }
    return [
      .init("changes", statistics.changes), .init("collapsed", statistics.collapsed),
      .init("unchanged", statistics.unchanged), .init("published", statistics.published),
      .init("acknowledged", statistics.acknowledged), .init("confirmed", statistics.confirmed),
      .init("failed", statistics.failed), .init("expired", statistics.expired),
      .init("rejected", statistics.rejected), .init("messages_refused", refused),
      .init("messages_returned", context.core.rejectedCount(.loop)),
      .init("devices_refused", context.arrivals.refusedCount),
      .init("reports_unreadable", context.core.unreadableReports.total),
    ]
  }
}

extension StatusReport.Cluster {
  fileprivate init(_ cluster: ClusterMember, at now: Moment) {
    self.init(name: cluster.settings.name, member: cluster.name)
    let view = cluster.membership.view
    owners = view.partitions.map { view.owner(of: $0) }
    let counts = Dictionary(grouping: owners.compactMap(\.self)) { $0 }.mapValues(\.count)
    let digest = view.digest
    members = view.peers.sorted { $0.key < $1.key }.map { name, peer in
      var row = StatusReport.Member()
      row.name = name
      row.state = peer.record.state.rawValue
      row.partitions = counts[name] ?? 0
      row.renewedMilliseconds = peer.seenAt.milliseconds(to: now)
      row.hasSameDevices = !peer.record.state.isPresent || peer.record.digest == digest
      row.unreadable = peer.record.unreadable.map(\.number).sorted()
      return row
    }
    engine.problem = cluster.engine.problem ?? (cluster.engine.isReady ? nil : "not connected yet")
    engine.server = cluster.engine.server.isEmpty ? nil : cluster.engine.server
    engine.waiting = cluster.context.core.storeWaitingCount
    engine.passed = cluster.passed.count
    isContested = cluster.isContested(at: now)
    switch cluster.monitor.writes {
    case .beforeAnswers: engine.writesFirst = true
    case .later(let server, let how):
      engine.writesFirst = false
      engine.writesReason = "\(server): \(how)"
    case .unknown(let reason): engine.writesReason = reason
    }
  }
}

extension Moment {
  /// The whole milliseconds from this moment to a later one.
  func milliseconds(to end: Moment) -> Int {
    Int(Int64(bitPattern: end.nanoseconds &- nanoseconds) / 1_000_000)
  }
}

extension StatusReport.Setting {
  package init(_ setting: SettingInForce) {
    self.init(name: setting.name, value: setting.value, origin: setting.origin)
  }
}

extension StatusReport.Broker {
  /// The facts of a connection.
  init(_ link: BrokerLink, at now: Moment) {
    let state: State =
      switch link.client.state {
      case .connected: .connected
      case .connecting: .connecting
      case .waiting: .waiting
      case .idle: .idle
      }
    self.init(name: link.name ?? "mqtt", url: link.client.endpoint, state: state)
    address = link.client.address
    sinceMilliseconds = link.since.milliseconds(to: now)
    trouble = link.client.trouble?.cause.rawValue
    reason = link.client.trouble?.reason
    connections = link.client.statistics.connections
    losses = link.client.statistics.losses
    dropped = Int(clamping: link.droppedMessages)
    quarantined = link.client.quarantinedTopics(at: now).map {
      .init(topic: $0.topic, milliseconds: now.milliseconds(to: $0.until))
    }
  }
}

extension StatusReport.HTTP {
  fileprivate init(_ http: HTTPSurface) {
    self.init(listen: http.addresses)
    connections = http.server?.connectionCount ?? 0
    streams = http.streams.count
    refused = Int(clamping: http.admission.refusals.values.reduce(0, +))
  }
}

extension StatusReport.Window {
  fileprivate init?(_ lane: LaneStatus) {
    guard let size = lane.window else { return nil }
    self.init()
    self.size = size
    inUse = lane.inFlight ?? 0
    roundTripMilliseconds = lane.roundTrip.map { Int($0.wholeNanoseconds / 1_000_000) }
    lost = lane.lost ?? 0
  }
}
