// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Devices
import Journal
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
    links[0].makeRoom(forCommands: machine.pendingCount)
    shutdown = Shutdown(
      limit: now.advanced(by: configuration.shutdownTimeout),
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
    if ending.stage != .parting {
      ending.report = report(for: ending)
      sayGoodbye(at: EventLoop.now())
    }
    ending.report.isHurried = true
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
      guard isLate || (isConnected && hasDrained) || hasNothing else { return }
      guard let journal else { return takeLeave(ending, isLate: isLate, at: now) }
      ending.stage = .keeping
      ending.deadline = now.advanced(by: Shutdown.keepingLimit)
      shutdown = ending
      journal.journal.flush(at: now)
      _ = advanceJournal(at: now)
    case .keeping:
      guard isLate || hasClosedJournal else { return }
      takeLeave(ending, isLate: ending.limit <= now, at: now)
    case .parting:
      // A broker that is away for a moment may come back.
      if links[0].isIdle && echo.isEmpty { return part() }
      guard isLate else { return }
      guard untoldCount < ending.untold, now < ending.limit else { return part() }
      allowTelling(&ending, at: now)
      shutdown = ending
    }
  }

  /// Own messages that have not left.
  private var untoldCount: Int { links[0].waitingCount + echo.dueCount }

  /// Gives what is left to tell another moment, within `shutdown.timeout`.
  private func allowTelling(_ ending: inout Shutdown, at now: Moment) {
    ending.untold = untoldCount
    ending.deadline = min(now.advanced(by: Shutdown.tellingLimit), ending.limit)
  }

  /// Makes the report, and tells what became of the commands, the last targets and the status, as long
  /// as that gets on, within the same limit.
  private func takeLeave(_ ending: Shutdown, isLate: Bool, at now: Moment) {
    var ending = ending
    ending.report = report(for: ending)
    ending.stage = .parting
    if ending.report.unsent.isEmpty {
      log.info("Values flushed", ["sent": String(ending.report.sent)])
    }
    sayGoodbye(at: now)
    allowTelling(&ending, at: now)
    shutdown = ending
    if isLate || !isConnected { part() }
  }

  /// Whether the journal has written everything and is closed; begins that when it can.
  private var hasClosedJournal: Bool {
    guard let journal else { return true }
    if !journal.isClosing, journal.journal.isIdle || journal.journal.isStuck {
      journal.isClosing = true
      journal.journal.beginClosing()
    }
    return journal.isClosing && journal.journal.isClosed
  }

  private var hasDrained: Bool {
    machine.isDrained && routes.isDrained && journal?.withheld.isEmpty ?? true
  }

  /// Shows the last targets and the status.
  private func sayGoodbye(at now: Moment) {
    guard isConnected else { return }  // The last will says it.
    echo.flush(at: now)
    links[0].enqueue(
      .init(topic: surface.statusTopic, payload: Array("offline".utf8), retain: true)
    )
    publishOwn(at: now)
  }

  private var hasNothing: Bool { !machine.hasUnsent && routes.isDrained }

  private func report(for ending: Shutdown) -> ShutdownReport {
    let acknowledged = machine.statistics.acknowledged + routes.statistics.acknowledged
    let keys = machine.unsentKeys().map { registry.properties[Int($0.rawValue)].key }
    return ShutdownReport(
      sent: Int(acknowledged - ending.acknowledgedBefore),
      unsent: keys + routes.unsentTopics(),
      kept: keys.filter { key in
        journal.map { $0.journal.keeps($0.journal.number(of: key)) } ?? false
      }
    )
  }

  private func part() {
    guard let ending = shutdown, !isParted else { return }
    isParted = true
    shutdown?.deadline = nil
    controlSocket?.close()
    http?.close()
    for link in links { link.client.flush() }
    // A broker that has not taken the status is not told goodbye: it says so with the last will.
    for link in links where link.isIdle { link.client.close() }
    links[0].endTelling(others: isConnected ? echo.dueCount : 0)
    ending.completion(ending.report)
  }
}
