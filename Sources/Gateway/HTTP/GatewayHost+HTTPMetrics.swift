// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Devices
import GatewayCore
import HTTP
import Journal
import LastOut
import MQTT
import Operations

/// The gateway's figures as Prometheus reads them.
extension GatewayHost {
  func metrics(of surface: HTTPSurface) -> [UInt8] {
    var text = MetricsText()
    addDevices(to: &text)
    addQueue(to: &text)
    addBrokers(to: &text)
    addJournal(to: &text)
    addSurface(surface, to: &text)
    addProcess(to: &text)
    return text.bytes
  }

  private func addDevices(to text: inout MetricsText) {
    let families: [(String, String, KeyPath<DeviceTally, UInt64>)] = [
      ("changes", "Changes that came in for a device.", \.changes),
      ("collapsed", "Changes that a newer one replaced before they left.", \.collapsed),
      ("unchanged", "Commands not sent because the device showed the value.", \.unchanged),
      ("rejected", "Changes that were refused.", \.rejected),
      ("cancelled", "Commands cancelled before they left or were confirmed.", \.cancelled),
      ("sent", "Commands that the broker acknowledged, retries included.", \.sent),
      ("confirmed", "Commands that the device confirmed.", \.confirmed),
      ("failed", "Commands not confirmed, or refused by the broker.", \.failed),
      ("expired", "Commands that waited too long for a broker or device.", \.expired),
    ]
    for (name, help, path) in families {
      let name = "settle_\(name)_total"
      text.family(name, .counter, help)
      for number in registry.deviceNumbers {
        let tally = tallies.devices[number]
        text.sample(name, ["device": registry.devices[number].id], tally[keyPath: path])
      }
    }
  }

  private func addQueue(to text: inout MetricsText) {
    text.family("settle_pending_values", .gauge, "Values that wait, in the queue or behind it.")
    text.sample("settle_pending_values", [:], UInt64(core.commands.pendingCount))
    text.family("settle_pending_limit", .gauge, "How many keys may have a pending value.")
    text.sample("settle_pending_limit", [:], UInt64(configuration.limits.pending))
    add(
      core.commands.statistics.lateness,
      "settle_lateness_seconds",
      "From a value's deadline until it left the queue.",
      to: &text
    )
    add(
      tallies.acknowledgement,
      "settle_acknowledgement_seconds",
      "From handing a command to MQTT until the broker acknowledged it.",
      to: &text
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
        core.rejections.total(kind)
      )
    }
  }

  private func addBrokers(to text: inout MetricsText) {
    text.family("settle_broker_connected", .gauge, "Whether a broker is connected.")
    for link in links {
      text.sample(
        "settle_broker_connected",
        ["broker": link.name ?? "mqtt"],
        link.isConnected ? 1 : 0 as UInt64
      )
    }
    text.family(
      "settle_broker_waiting_bytes",
      .gauge,
      "What a broker has sent and the gateway has not read: it falls behind while this is high."
    )
    for link in links {
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
    text.sample("settle_broker_connections_total", [:], UInt64(connectionCount))
    text.family(
      "settle_messages_dropped_total",
      .counter,
      "Events and answers by MQTT that a broker was away or too slow for."
    )
    for link in links {
      text.sample(
        "settle_messages_dropped_total",
        ["broker": link.name ?? "mqtt"],
        link.droppedMessages
      )
    }
  }

  private func addJournal(to text: inout MetricsText) {
    guard let durability = core.durability else { return }
    text.family("settle_journal_durable", .gauge, "Whether accepted values reach the disk.")
    text.sample("settle_journal_durable", [:], durability.fault == nil ? 1 : 0 as UInt64)
    text.family(
      "settle_journal_waiting",
      .gauge,
      "Accepted changes whose answer waits for the disk."
    )
    text.sample("settle_journal_waiting", [:], UInt64(durability.queue.count))
  }

  private func addSurface(_ surface: HTTPSurface, to text: inout MetricsText) {
    text.family("settle_http_connections", .gauge, "Connections over HTTP.")
    text.sample("settle_http_connections", [:], UInt64(surface.server?.connectionCount ?? 0))
    text.family("settle_http_responses_total", .counter, "Answers over HTTP, by status.")
    for (status, count) in (surface.server?.answers ?? [:]).sorted(by: { $0.key < $1.key }) {
      text.sample("settle_http_responses_total", ["code": String(status)], count)
    }
    text.family(
      "settle_http_refused_total",
      .counter,
      "Requests over HTTP refused for where they came from, and clients turned away."
    )
    for (reason, count) in surface.refusals.sorted(by: { $0.key < $1.key }) {
      text.sample("settle_http_refused_total", ["reason": reason], count)
    }
    text.family("settle_http_event_streams", .gauge, "Event streams that are open.")
    text.sample("settle_http_event_streams", [:], UInt64(surface.streams.count))
    text.family(
      "settle_http_event_streams_dropped_total",
      .counter,
      "Event streams cut off because their client did not read."
    )
    for reason in ["slow", "stalled"] {
      text.sample(
        "settle_http_event_streams_dropped_total",
        ["reason": reason],
        surface.droppedStreams[reason] ?? 0
      )
    }
  }

  /// The names that Prometheus' own clients give to these.
  private func addProcess(to text: inout MetricsText) {
    let figures = ProcessFigures()
    func add(_ name: String, _ kind: MetricsText.Kind, _ help: String, _ value: Double?) {
      guard let value else { return }
      text.family(name, kind, help)
      text.sample(name, [:], value)
    }
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
      figures.residentBytes.map(Double.init)
    )
    add(
      "process_open_fds",
      .gauge,
      "Open file descriptors.",
      figures.openDescriptors.map(Double.init)
    )
    add(
      "process_max_fds",
      .gauge,
      "How many file descriptors may be open.",
      figures.descriptorLimit.map(Double.init)
    )
    add(
      "process_start_time_seconds",
      .gauge,
      "When the process was started, in seconds since 1970.",
      figures.startTime
    )
  }

  private func add(
    _ histogram: DurationHistogram,
    _ name: String,
    _ help: String,
    to text: inout MetricsText
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
