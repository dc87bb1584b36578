// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Commands
import Configuration
import Devices
import Engine
import GatewayCore
import HTTP
import Journal
import LastOut
import MQTT
import Operations

/// Collects the gateway's metrics in the text format of Prometheus, as they are when written.
struct MetricsReport: PartialDocument {
  private typealias DeviceFamily = (String, String, KeyPath<DeviceCounters, UInt64>)

  private let context: GatewayContext
  private let mqtt: MQTTSurface
  private let http: HTTPSurface
  private var text = MetricsText()
  private var families = Self.deviceFamilies[...]
  /// The devices; their numbers stay valid after a reload.
  private let numbers: [Int]
  /// Those whose sample of the first of ``families`` is missing.
  private var devices: ArraySlice<Int>
  /// How many devices are written in one part.
  private static let partSize = 50

  init(_ context: GatewayContext, mqtt: MQTTSurface, http: HTTPSurface) {
    self.context = context
    self.mqtt = mqtt
    self.http = http
    numbers = context.registry.deviceNumbers
    devices = numbers[...]
  }

  mutating func appendPart(to bytes: inout [UInt8]) -> Bool {
    let hasMore = !families.isEmpty
    if let family = families.first {
      addDevices(family)
    } else {
      addQueue()
      addBrokers()
      addJournal()
      addCluster()
      addHTTP()
      addProcess()
    }
    bytes.append(contentsOf: text.bytes)
    text = MetricsText()
    return hasMore
  }

  private static var deviceFamilies: [DeviceFamily] {
    [
      ("changes", "Changes received for a device.", \.changes),
      ("collapsed", "Changes replaced by a newer one before they were sent.", \.collapsed),
      ("unchanged", "Commands not sent because the device showed the value.", \.unchanged),
      ("rejected", "Changes that were refused.", \.rejected),
      ("cancelled", "Commands cancelled before they were sent or confirmed.", \.cancelled),
      ("sent", "Commands that the broker acknowledged, retries included.", \.sent),
      ("confirmed", "Commands that the device confirmed.", \.confirmed),
      ("failed", "Commands not confirmed, or refused by the broker.", \.failed),
      ("expired", "Commands that waited too long for a broker or device.", \.expired),
    ]
  }

  /// Adds some devices of a family; the family is complete once none is left.
  private mutating func addDevices(_ family: DeviceFamily) {
    let name = "settle_\(family.0)_total"
    if devices.startIndex == 0 { text.family(name, .counter, family.1) }
    for number in devices.prefix(Self.partSize) {
      let id = context.registry.id(ofDevice: number)
      text.sample(name, ["device": id], context.counters[number][keyPath: family.2])
    }
    devices = devices.dropFirst(Self.partSize)
    guard devices.isEmpty else { return }
    families.removeFirst()
    devices = numbers[...]
  }

  private mutating func addLanes() {
    let lanes = context.core.laneStatuses
    for family in Self.laneFamilies {
      let samples = lanes.compactMap { lane in family.2(lane).map { (lane.name, $0) } }
      guard !samples.isEmpty else { continue }
      text.family(family.0, family.0.hasSuffix("_total") ? .counter : .gauge, family.1)
      for (name, value) in samples { text.sample(family.0, ["lane": name], UInt64(value)) }
    }
  }

  private static var laneFamilies: [(String, String, (LaneStatus) -> Int?)] {
    [
      ("settle_lane_waiting", "Commands that wait in a lane.", \.waiting),
      ("settle_lane_window", "How many commands of a lane may be in flight.", \.window),
      ("settle_lane_in_flight", "Commands of a lane that are in flight.", \.inFlight),
      (
        "settle_lane_round_trip_milliseconds",
        "How long devices take to confirm a command, on average.",
        { $0.roundTrip.map { Int($0.wholeNanoseconds / 1_000_000) } }
      ),
      ("settle_lane_lost_total", "Commands that were not confirmed in time.", \.lost),
    ]
  }

  private mutating func addQueue() {
    text.family("settle_pending_values", .gauge, "Values that wait, in the queue or behind it.")
    text.sample("settle_pending_values", [:], UInt64(context.core.pendingCount))
    text.family("settle_pending_limit", .gauge, "How many keys may have a pending value.")
    text.sample("settle_pending_limit", [:], UInt64(context.configuration.limits.pending))
    addLanes()
    add(
      context.core.statistics.lateness,
      "settle_lateness_seconds",
      "From a value's deadline until it left the queue."
    )
    add(
      mqtt.acknowledgementLatency.histogram,
      "settle_acknowledgement_seconds",
      "From handing a command to MQTT until the broker acknowledged it."
    )
    text.family(
      "settle_messages_refused_total",
      .counter,
      "Messages by MQTT that were refused where no reply is possible."
    )
    for kind in RejectionLog.Kind.allCases {
      text.sample(
        "settle_messages_refused_total",
        ["reason": kind.rawValue],
        context.core.rejectedCount(kind)
      )
    }
    text.family(
      "settle_changes_slowed_total",
      .counter,
      "Changes by MQTT that wait longer because two values alternate, as in a feedback loop."
    )
    text.sample("settle_changes_slowed_total", [:], context.core.slowedCount)
    text.family(
      "settle_devices_refused_total",
      .counter,
      "Messages that named a device that cannot be, or one too many."
    )
    text.sample("settle_devices_refused_total", [:], context.arrivals.refusedCount)
    addReports()
  }

  private mutating func addReports() {
    let name = "settle_reports_unreadable_total"
    text.family(name, .counter, "Reports of a property that cannot be read.")
    let unreadable = context.core.unreadableReports
    for key in unreadable.keys {
      let device = context.registry.id(ofDevice: context.registry.device(of: key))
      let property = context.registry.definition(of: key).property.id
      text.sample(name, ["device": device, "property": property], unreadable[key]?.count ?? 0)
    }
  }

  private mutating func addBrokers() {
    text.family("settle_broker_connected", .gauge, "Whether a broker is connected.")
    for link in mqtt.links {
      text.sample(
        "settle_broker_connected",
        ["broker": link.name ?? "mqtt"],
        link.isConnected ? 1 : 0 as UInt64
      )
    }
    text.family(
      "settle_broker_waiting_bytes",
      .gauge,
      "Bytes that a broker has sent and the gateway has not read; high while the gateway is behind."
    )
    for link in mqtt.links {
      text.sample(
        "settle_broker_waiting_bytes",
        ["broker": link.name ?? "mqtt"],
        UInt64(link.client.waitingBytes)
      )
    }
    text.family(
      "settle_broker_connections_total",
      .counter,
      "How often the gateway's own broker was connected."
    )
    text.sample("settle_broker_connections_total", [:], UInt64(mqtt.connectionCount))
    text.family(
      "settle_messages_dropped_total",
      .counter,
      "Events and answers by MQTT that a broker was away or too slow for."
    )
    for link in mqtt.links {
      text.sample(
        "settle_messages_dropped_total",
        ["broker": link.name ?? "mqtt"],
        link.droppedMessages
      )
    }
  }

  private mutating func addJournal() {
    guard context.core.hasStore else { return }
    text.family("settle_journal_durable", .gauge, "Whether accepted values reach the disk.")
    text.sample("settle_journal_durable", [:], context.core.storeFault == nil ? 1 : 0 as UInt64)
    text.family(
      "settle_journal_waiting",
      .gauge,
      "Accepted changes whose answer waits for the disk."
    )
    text.sample("settle_journal_waiting", [:], UInt64(context.core.storeWaitingCount))
  }

  private mutating func addCluster() {
    guard let cluster = http.gateway.cluster else { return }
    let view = cluster.membership.view
    let owners = view.partitions.map { view.owner(of: $0) }
    let figures: [(String, String, Int)] = [
      ("members", "Gateways of the cluster that are there.", cluster.others.count + 1),
      (
        "partitions", "Partitions that this gateway owns.",
        owners.count { $0 == cluster.name }
      ),
      ("partitions_free", "Partitions without an owner.", owners.count { $0 == nil }),
      ("requests_passed", "Requests that wait for other gateways.", cluster.passed.count),
      ("engine_up", "Whether the engine can be used.", cluster.engine.problem == nil ? 1 : 0),
    ]
    for (name, help, value) in figures {
      text.family("settle_cluster_\(name)", .gauge, help)
      text.sample("settle_cluster_\(name)", [:], UInt64(clamping: value))
    }
  }

  private mutating func addHTTP() {
    text.family("settle_http_connections", .gauge, "Connections over HTTP.")
    text.sample("settle_http_connections", [:], UInt64(http.server?.connectionCount ?? 0))
    text.family("settle_http_responses_total", .counter, "Answers over HTTP, by status.")
    for (status, count) in (http.server?.answers ?? [:]).sorted(by: { $0.key < $1.key }) {
      text.sample("settle_http_responses_total", ["code": String(status)], count)
    }
    text.family(
      "settle_http_refused_total",
      .counter,
      "HTTP requests refused because of origin, host or token, and clients turned away."
    )
    for (reason, count) in http.admission.refusals.sorted(by: { $0.key < $1.key }) {
      text.sample("settle_http_refused_total", ["reason": reason], count)
    }
    text.family("settle_http_event_streams", .gauge, "Event streams that are open.")
    text.sample("settle_http_event_streams", [:], UInt64(http.streams.count))
    text.family(
      "settle_http_event_streams_dropped_total",
      .counter,
      "Event streams cut off because their client did not read."
    )
    for reason in ["slow", "stalled"] {
      text.sample(
        "settle_http_event_streams_dropped_total",
        ["reason": reason],
        http.streams.dropped[reason] ?? 0
      )
    }
  }

  /// The process's metrics, by the names that Prometheus' client libraries use.
  private mutating func addProcess() {
    let figures = ProcessFigures()
    add(
      "process_cpu_seconds_total",
      .counter,
      "CPU time of the process, in the program and in the kernel, in seconds.",
      figures.cpuSeconds
    )
    add(
      "process_resident_memory_bytes",
      .gauge,
      "Resident memory of the process.",
      figures.residentBytes.map { Double($0) }
    )
    add(
      "process_open_fds",
      .gauge,
      "Open file descriptors.",
      figures.openDescriptors.map { Double($0) }
    )
    add(
      "process_max_fds",
      .gauge,
      "How many file descriptors may be open.",
      figures.descriptorLimit.map { Double($0) }
    )
    add(
      "process_start_time_seconds",
      .gauge,
      "When the process was started, in seconds since 1970.",
      figures.startTime
    )
  }

  private mutating func add(
    _ name: String,
    _ kind: MetricsText.Kind,
    _ help: String,
    _ value: Double?
  ) {
    guard let value else { return }
    text.family(name, kind, help)
    text.sample(name, [:], value)
  }

  private mutating func add(
    _ histogram: DurationHistogram,
    _ name: String,
    _ help: String
  ) {
    text.family(name, .histogram, help)
    text.histogram(
      name,
      bounds: histogram.bounds.map { $0 / .seconds(1) },
      counts: histogram.counts,
      sum: histogram.sum / .seconds(1)
    )
  }
}
