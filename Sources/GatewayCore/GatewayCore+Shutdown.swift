// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
package import LastOut
import Routing

/// Flush everything, wait for the acknowledgements, store what is left, report.
extension GatewayCore {
  /// Stops accepting changes and flushes what is pending.
  ///
  /// ``Effect/end(_:)`` follows, at the latest after the timeout. A second call ends at once.
  package mutating func beginShutdown(at now: Moment) {
    guard shutdown == nil else {
      shutdown?.report.isHurried = true
      return
    }
    notices.append(
      .log(LogEntry(.info, "Shutting down", ["pending": "\(commands.pendingCount)"]))
    )
    advanceIfDue(to: now)
    shutdown = Shutdown(
      limit: now.advanced(by: settings.shutdownTimeout),
      acknowledgedBefore: acknowledgedCount
    )
    commands.close(at: now)
    routes.flushAll(at: now)
  }

  /// The next effect of the shutdown, when one of its phases ends.
  mutating func advanceShutdown(at now: Moment, _ host: HostState) -> Effect? {
    guard let ending = shutdown else { return nil }
    let isLate = ending.deadline.map { $0 <= now } ?? false
    let isHurried = ending.report.isHurried
    switch ending.phase {
    case .draining:
      let isDone = (isConnected && hasDrained) || !(commands.hasUnsent || !routes.isDrained)
      guard isLate || isHurried || isDone else { return nil }
      guard durability != nil, !isHurried else { return beginReporting(isLate: isLate, at: now) }
      shutdown?.phase = .storing
      shutdown?.deadline = now.advanced(by: Shutdown.storingLimit)
      durability?.plan.flush(at: now)
      return nil
    case .storing:
      if durability?.mustClose ?? false {
        durability?.isClosing = true
        return .closeStore
      }
      guard isLate || isHurried || (durability?.isClosed ?? true) else { return nil }
      return beginReporting(isLate: ending.limit <= now, at: now)
    case .reporting:
      // A broker that is away for a moment may come back.
      if isHurried || (host.isIdle && states.isEmpty) { return end() }
      guard isLate else { return nil }
      let left = host.backlog + states.dueCount
      guard left < ending.unpublished, now < ending.limit else { return end() }
      allowReporting(left, at: now)
      return nil
    case .ended: return end()
    }
  }

  /// Makes the report; the outcomes of commands, the last targets and the status follow it.
  private mutating func beginReporting(isLate: Bool, at now: Moment) -> Effect? {
    let isHurried = shutdown?.report.isHurried ?? false
    var report = makeReport()
    report.isHurried = isHurried
    shutdown?.report = report
    shutdown?.phase = isLate || isHurried || !isConnected ? .ended : .reporting
    if report.unsent.isEmpty {
      notices.append(.log(LogEntry(.info, "Values flushed", ["sent": "\(report.sent)"])))
    }
    guard isConnected else { return nil }  // The last will says it.
    states.flush(at: now)
    allowReporting(.max, at: now)
    // The last targets are published in this step.
    stage = .states
    return .sayOffline
  }

  /// Gives the rest another moment, within the timeout.
  private mutating func allowReporting(_ left: Int, at now: Moment) {
    guard let limit = shutdown?.limit else { return }
    shutdown?.unpublished = left
    shutdown?.deadline = min(now.advanced(by: Shutdown.reportingLimit), limit)
  }

  private mutating func end() -> Effect? {
    if let notice = notices.popFirst() { return notice }
    guard let report = shutdown?.report else { return nil }
    isEnded = true
    shutdown?.deadline = nil
    return .end(report)
  }

  private var hasDrained: Bool {
    commands.isDrained && routes.isDrained && durability?.withheld.isEmpty ?? true
  }

  private var acknowledgedCount: UInt64 {
    commands.statistics.acknowledged + routes.statistics.acknowledged
  }

  private func makeReport() -> ShutdownReport {
    var unsent: [String] = []
    var kept: [String] = []
    for key in commands.unsentKeys() {
      let name = commands.registry[key].key
      unsent.append(name)
      if durability?.keeps(key) ?? false { kept.append(name) }
    }
    return ShutdownReport(
      sent: Int(acknowledgedCount - (shutdown?.acknowledgedBefore ?? 0)),
      unsent: unsent + routes.unsentTopics(),
      kept: kept
    )
  }
}

extension DurabilityGate {
  /// Whether nothing is left for the journal's thread, or nothing can be written.
  fileprivate var mustClose: Bool { !isClosing && (plan.isIdle || plan.isStuck) }

  /// Whether the disk has the key's newest value.
  fileprivate func keeps(_ key: KeyIndex) -> Bool {
    keys[Int(key.rawValue)].number.map { plan.keeps($0) } ?? false
  }
}
