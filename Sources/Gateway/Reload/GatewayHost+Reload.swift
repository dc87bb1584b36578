// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Configuration
package import Control
import Devices
import GatewayCore
internal import JSON
import LastOut
import MQTT
package import Operations

/// Other devices and policies while the gateway runs: what is pending stays.
///
/// The files are read on another thread and refused as a whole if anything in them is wrong. The
/// way is: ``reload(_:)``, ``Reloader``, ``apply(_:at:)``.
extension GatewayHost {
  /// Why the configuration was not taken.
  package struct ReloadRefusal: Error {
    package var error: ErrorReply
    package var problems: [ConfigurationProblem] = []
  }

  private static let stopping = ReloadRefusal(
    error: ErrorReply(.stopping, "the gateway is about to end")
  )

  /// Sets how the configuration is read again; without it, a reload is refused.
  ///
  /// `read` is called on another thread.
  package func enableReload(
    reading read: @escaping @Sendable () -> Result<LoadedConfiguration, ConfigurationFailure>
  ) throws(OperationsError) {
    reloader = try Reloader(
      context.loop,
      continuing: { [unowned self] in context.registry },
      reading: read
    )
  }

  /// Reads the configuration again and adopts it; `done` is called once, with the outcome.
  package func reload(_ done: @escaping (Result<ReloadReport, ReloadRefusal>) -> Void) {
    guard !context.core.isShuttingDown else {
      return done(.failure(Self.stopping))
    }
    guard let reloader else {
      let reason = "this gateway was not started from files: there is nothing to reload"
      return done(.failure(.init(error: ErrorReply(.unsupported, reason))))
    }
    Notify.reloading()
    reloader.reload { [weak self] outcome in
      guard let self else { return }
      done(take(outcome, at: EventLoop.now()))
      Notify.ready()
    }
  }

  /// Reloads for a client of the control socket.
  func reload(for requester: any Requester, id: JSONValue?, line: Int) {
    requester.beginWait()
    reload { result in
      switch result {
      case .success(let report): requester.send(.reloaded(report, id: id))
      case .failure(var refusal):
        refusal.error.line = line
        requester.send(.failure(refusal.error, id: id))
      }
      requester.endWait()
    }
  }

  private func take(
    _ outcome: Reloader.Outcome,
    at now: Moment
  ) -> Result<ReloadReport, ReloadRefusal> {
    switch outcome {
    case .success where context.core.isShuttingDown:
      return .failure(Self.stopping)
    case .success(let loaded):
      let report = apply(loaded, at: now)
      tell(report)
      return .success(report)
    case .failure(let failure):
      context.log.error(
        "Reload refused; the previous configuration stays in effect",
        ["problems": String(failure.problems.count)]
      )
      for problem in failure.problems {
        context.log.error("Mistake in the configuration", ["problem": problem.description])
      }
      return .failure(.init(error: Self.reply(to: failure), problems: failure.problems))
    }
  }

  private static let shownProblems = 20

  private static func reply(to failure: ConfigurationFailure) -> ErrorReply {
    var lines = ["refused; the previous configuration stays in effect:"]
    lines += failure.problems.prefix(shownProblems).map(\.description)
    let rest = failure.problems.count - shownProblems
    if rest > 0 { lines.append("and \(rest) more, in the gateway's log") }
    return ErrorReply(.badConfiguration, lines.joined(separator: "\n"))
  }

  private func tell(_ report: ReloadReport) {
    context.log.info(
      "Reloaded",
      [
        "devices": String(report.devices), "keys": String(report.keys),
        "added": String(report.added.count), "removed": String(report.removed.count),
        "changed": String(report.changed.count),
      ]
    )
    for warning in report.warnings {
      context.log.warning("Configuration warning", ["problem": warning])
    }
    if !report.restart.isEmpty {
      context.log.warning(
        "Changed sections apply only after a restart",
        ["sections": report.restart.joined(separator: ", ")]
      )
    }
  }

  // MARK: - Going on

  /// Goes on with other devices, policies, lanes, inputs; what is pending stays.
  ///
  /// Costs time in proportion to all keys.
  private func apply(_ loaded: LoadedConfiguration, at now: Moment) -> ReloadReport {
    let old = context.registry
    var report = Self.differences(from: old, to: loaded.registry)
    report.restart = Self.sectionsForRestart(context.configuration, loaded.gateway)
    report.warnings = loaded.warnings.map(\.description)
    context.core.reload(loaded.registry, lanes: loaded.gateway.laneLimits, at: now)
    context.core.settings.shutdownTimeout = loaded.gateway.shutdownTimeout
    context.configuration.takeWhatReloads(from: loaded.gateway)
    context.devicesReloaded()
    mqtt.devicesReloaded(since: old)
    http?.streams.devicesChanged()
    emitReady()  // What the reload ended is reported before the reload itself.
    return report
  }

  /// Which keys are new, gone or other than before.
  private static func differences(from old: Registry, to new: Registry) -> ReloadReport {
    var report = ReloadReport(devices: new.deviceNumbers.count, keys: new.keyCount)
    var otherDevices: Set<Int> = []
    for number in old.devices.indices {
      var (before, after) = (old.devices[number], new.devices[number])
      before.properties = []
      after.properties = []
      if before != after { otherDevices.insert(number) }
    }
    for (place, entry) in new.properties.enumerated() {
      let before = place < old.properties.count ? old.properties[place] : nil
      switch (before?.isRetired ?? true, entry.isRetired) {
      case (true, true): break
      case (true, false): report.added.append(entry.key)
      case (false, true): report.removed.append(entry.key)
      case (false, false):
        if before?.property != entry.property || otherDevices.contains(entry.device) {
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
      "journal": old.journal != new.journal, "brokers": old.brokers != new.brokers,
      "routes": old.routes != new.routes, "limits": old.limits != new.limits,
      "discovery": old.discovery != new.discovery,
    ]
    return isOther.filter(\.value).map(\.key)
  }
}

extension GatewayConfiguration {
  /// What a running gateway can take over; the rest counts after a restart.
  fileprivate mutating func takeWhatReloads(from new: GatewayConfiguration) {
    policies = new.policies
    ttl = new.ttl
    devicesDirectory = new.devicesDirectory
    shutdownTimeout = new.shutdownTimeout
    lanes = new.lanes
    inputs = new.inputs
  }
}
