// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Devices
import LastOut
import MQTT
import Operations

/// Flush everything, wait for the acknowledgements, report.
extension Gateway {
  /// Stops taking changes and flushes what is pending.
  ///
  /// `completion` gets the report, at the latest
  /// after `shutdown.timeout`. Called again while that goes on, it reports at once.
  package func beginShutdown(completion: @escaping (ShutdownReport) -> Void) {
    let now = EventLoop.now()
    guard shutdown == nil else { return giveUp() }
    log.info("Shutting down", ["pending": String(machine.pendingCount)])
    advanceIfDue(at: now)
    controlSocket?.stopListening()
    http?.stopListening()
    shutdown = Shutdown(
      deadline: now.advanced(by: configuration.shutdownTimeout),
      acknowledgedBefore: machine.statistics.acknowledged + routes.statistics.acknowledged,
      completion: completion
    )
    machine.close(at: now)
    routes.flushAll(at: now)
    settleUp()
  }

  /// Reports at once, whatever is still under way.
  private func giveUp() {
    guard var ending = shutdown else { return }
    if ending.stage == .draining {
      ending.report = report(for: ending)
      sayGoodbye(at: EventLoop.now())
    }
    ending.stage = .parting
    shutdown = ending
    part()
  }

  /// Looks whether the way out has come to its next stage.
  func advanceShutdown(at now: Moment) {
    guard var ending = shutdown else { return }
    let isLate = ending.deadline.map { $0 <= now } ?? false
    switch ending.stage {
    case .draining:
      guard isLate || (isConnected && machine.isDrained && routes.isDrained) || hasNothing else {
        return
      }
      ending.report = report(for: ending)
      ending.stage = .parting
      // The last targets and the status get a moment of their own, within the same limit.
      let moment = now.advanced(by: .seconds(1))
      ending.deadline = min(moment, ending.deadline ?? moment)
      shutdown = ending
      sayGoodbye(at: now)
      if isLate || !isConnected { part() }
    case .parting:
      if isLate || !isConnected || (links[0].isIdle && echo.isEmpty) { part() }
    }
  }

  /// Shows the last targets and the status.
  private func sayGoodbye(at now: Moment) {
    echo.flush(at: now)
    links[0].enqueue(
      .init(topic: surface.statusTopic, payload: Array("offline".utf8), retain: true)
    )
    publishOwn(at: now)
  }

  private var hasNothing: Bool { !machine.hasUnsent && routes.isDrained }

  private func report(for ending: Shutdown) -> ShutdownReport {
    let acknowledged = machine.statistics.acknowledged + routes.statistics.acknowledged
    return ShutdownReport(
      sent: Int(acknowledged - ending.acknowledgedBefore),
      unsent: machine.unsentKeys().map { registry.properties[Int($0.rawValue)].key }
        + routes.unsentTopics()
    )
  }

  private func part() {
    guard let ending = shutdown, !isParted else { return }
    isParted = true
    shutdown?.deadline = nil
    controlSocket?.close()
    http?.close()
    // A broker that has not taken the status is not told goodbye: it says so with the last will.
    for link in links where link.isIdle { link.client.close() }
    ending.completion(ending.report)
  }
}
