// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import LastOut
import Routing

/// Flush everything, wait for the acknowledgements, store what is left, report.
extension GatewayCore {
  /// Stops accepting changes and flushes what is pending.
  ///
  /// ``Effect/end(_:)`` follows, at the latest after the timeout. A second call ends at once.
  package mutating func beginShutdown(at now: Moment) {
    guard shutdown == nil else {
      shutdown?.isHurried = true
      return
    }
    outbox.log(LogEntry(.info, "Shutting down", ["pending": "\(commands.dispatcher.pendingCount)"]))
    advance(to: now)
    shutdown = Shutdown(
      limit: now.advanced(by: settings.shutdownTimeout),
      acknowledgedBefore: acknowledgedCount
    )
    pipeline.commands.close(at: now)
    routes.flushAll(at: now)
  }

  /// The next effect of the shutdown, when one of its phases ends.
  mutating func advanceShutdown(at now: Moment, _ host: HostState) -> Effect? {
    guard let phase = shutdown?.phase else { return nil }
    if phase == .storing, pipeline.durability?.beginClosing() ?? false { return .closeStore }
    let situation = situation(host)
    switch shutdown?.advance(situation, at: now) ?? .wait {
    case .wait: return nil
    case .store:
      pipeline.durability?.flush(at: now)
      return nil
    case .report: return beginReporting(at: now)
    case .end:
      if let notice = outbox.popNotice() { return notice }
      guard var report = shutdown?.report else { return nil }
      report.isHurried = shutdown?.isHurried ?? false
      isEnded = true
      shutdown?.end()
      return .end(report)
    }
  }

  private func situation(_ host: HostState) -> Shutdown.Situation {
    Shutdown.Situation(
      isConnected: isConnected,
      hasUnsent: commands.hasUnsent || !routes.isDrained,
      hasDrained: pipeline.isDrained && routes.isDrained,
      hasStore: durability != nil,
      isStoreClosed: durability?.isClosed ?? true,
      unpublished: host.backlog + states.dueCount,
      isIdle: host.isIdle && states.isEmpty
    )
  }

  /// Makes the report; the outcomes of commands, the last targets and the status follow it.
  private mutating func beginReporting(at now: Moment) -> Effect? {
    let report = makeReport()
    shutdown?.beginReporting(report, isConnected: isConnected, at: now)
    if report.unsent.isEmpty {
      outbox.log(LogEntry(.info, "Values flushed", ["sent": "\(report.sent)"]))
    }
    guard isConnected else { return nil }  // The last will says it.
    states.flush(at: now)
    // The last targets are published in this step.
    stage = .states
    return .sayOffline
  }

  private var acknowledgedCount: UInt64 {
    commands.dispatcher.log.statistics.acknowledged + routes.statistics.acknowledged
  }

  private func makeReport() -> ShutdownReport {
    let (unsent, kept) = pipeline.unsentKeys()
    return ShutdownReport(
      sent: Int(acknowledgedCount - (shutdown?.acknowledgedBefore ?? 0)),
      unsent: unsent + routes.unsentTopics(),
      kept: kept
    )
  }
}
