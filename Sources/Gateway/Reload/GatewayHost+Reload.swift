// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Configuration
package import Control
import Devices
import Dispatch
import GatewayCore
internal import JSON
import LastOut
import MQTT
import Operations

/// Other devices and policies while the gateway runs: what is pending stays.
///
/// The files are read and compared on another thread, and refused as a whole if anything in them is
/// wrong. Then each step of the event loop does one bounded step of the reload, here and in the core.
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
  ) { reloader?.read = read }

  /// Reads and compares definitions on another thread.
  func makeReloader() throws(OperationsError) -> Reloader {
    try Reloader(
      context.loop,
      continuing: { [unowned self] in
        PreparedReload.Base(
          configuration: context.configuration,
          registry: context.registry,
          subscriptions: mqtt.topics.subscriptions,
          announcer: mqtt.discovery?.announcer,
          settings: context.settings,
          sources: context.arrivals.sources,
          created: context.arrivals.created,
          restart: context.restart,
          warnings: context.warnings
        )
      },
      applying: { [weak self] in self?.apply($0) }
    )
  }

  /// Reads the configuration again and adopts it; `done` is called once, with the outcome.
  package func reload(_ done: @escaping (Result<ReloadReport, ReloadRefusal>) -> Void) {
    guard !context.core.isShuttingDown else {
      return done(.failure(Self.stopping))
    }
    guard let reloader, reloader.read != nil else {
      let reason = "this gateway was not started from files: there is nothing to reload"
      return done(.failure(.init(error: ErrorReply(.unsupported, reason))))
    }
    Notify.reloading()
    reloader.reload { result in
      done(result)
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

  /// Begins to continue with a configuration that was read, or refuses it.
  private func apply(_ outcome: Reloader.Outcome) {
    switch outcome {
    case .success where context.core.isShuttingDown: reloader?.finish(.failure(Self.stopping))
    case .success(let prepared):
      reloadProgress = ReloadProgress(
        prepared,
        replacing: context.registry,
        at: EventLoop.now()
      )
    case .failure(let failure):
      context.log.error(
        "Reload refused; the previous configuration stays in effect",
        ["problems": String(failure.problems.count)]
      )
      for problem in failure.problems {
        context.log.error("Mistake in the configuration", ["problem": problem.description])
      }
      let refusal = ReloadRefusal(error: Self.reply(to: failure), problems: failure.problems)
      reloader?.finish(.failure(refusal))
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

  private func logReload(_ report: ReloadReport) {
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

  // MARK: - Steps

  /// Does one bounded step of the host's part of a reload.
  func continueReload() {
    guard let reload = reloadProgress else { return addArrivals() }
    switch reload.phase {
    case .mapping:
      guard reload.buildMap() else { return }
      reload.phase = .preparing
      context.core.settings.awaited = AwaitedDevices(reload.prepared.sources.map(\.template))
      context.core.beginReload(
        reload.prepared.registry,
        lanes: reload.prepared.configuration.lanes
      )
    case .preparing: break  // Until the core replaces the definitions.
    case .subscribing:
      if receiveKept(reload) { return }
      mqtt.updateSubscriptions(reload)
      if reload.isSubscribed, reload.isCoreDone { finishReload(reload) }
    case .freeing:
      guard reload.free() else { return }
      reloadProgress = nil
      // Definitions that changed are freed on another thread, too.
      DispatchQueue.global(qos: .utility).async { [old = reload.old] in withExtendedLifetime(old) {}
      }
    }
  }

  /// The core continues with the new definitions, and so do the surfaces.
  func replaceDefinitions() {
    guard let reload = reloadProgress else { return }
    let configuration = reload.prepared.configuration
    context.core.settings.shutdownTimeout = configuration.shutdownTimeout
    context.configuration = configuration
    context.settings = reload.prepared.settings
    context.restart = reload.prepared.report.restart
    context.warnings = reload.prepared.report.warnings
    context.devicesReloaded()
    mqtt.definitionsReplaced(reload)
    http?.streams.devicesChanged()
    arrivalsReplaced(by: reload)
    reload.phase = .subscribing
    if !isConnected { reload.connectionChanged() }
  }

  private func finishReload(_ reload: ReloadProgress) {
    emitReady()  // What the reload ended is reported before the reload itself.
    if reload.prepared.arrivals == nil { logReload(reload.prepared.report) }
    reload.phase = .freeing
    reloader?.finish(.success(reload.prepared.report))
  }
}
