// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import LastOut

/// The passage of time.
extension ControlScreen {
  /// How often a moving bar is drawn.
  private static let frameInterval = Duration.milliseconds(50)
  /// How long after its due time a settling value is read from the gateway.
  private static let overdueAfter = Duration.milliseconds(200)

  /// Handles the passage of time until `now`.
  package mutating func tick(at now: Moment) {
    if let until = notice?.until, now >= until { notice = nil }
    if link.tick(at: now) { refresh(at: now) }
  }

  /// The latest time for the next call of ``tick(at:)``.
  package func nextTick(after now: Moment) -> Moment {
    var next = now.advanced(by: .seconds(60))
    if let until = notice?.until { next = min(next, until) }
    if let tick = link.nextTick(after: now) { next = min(next, tick) }
    if link.state == .ready, isMoving(at: now) {
      next = min(next, now.advanced(by: Self.frameInterval))
    }
    return max(next, now)
  }

  private mutating func refresh(at now: Moment) {
    var devices: [String] = []
    var pending: Set<String> = []
    link.request(.status, "", RequestID.status, at: now)
    for index in list.visibleIndices {
      let id = rows[index].deviceID
      if devices.last != id { devices.append(id) }
      if needsPending(rows[index], at: now) { pending.insert(id) }
    }
    for id in devices {
      if pending.contains(id) { link.request(.pending, "\(id)/*", RequestID.pending, at: now) }
      link.request(.get, "\(id)/*", RequestID.get, at: now)
    }
  }

  /// Whether the screen must read what a pending value waits for.
  private func needsPending(_ row: ScreenRow, at now: Moment) -> Bool {
    switch row.progress {
    case .settling(let countdown):
      countdown.due.duration(to: now) >= Self.overdueAfter
    case .waiting: true
    case .ended, .idle, .sending, .sent, .querying: false
    }
  }

  private func isMoving(at now: Moment) -> Bool {
    list.visibleIndices.contains { index in
      guard case .settling(let countdown) = rows[index].progress else { return false }
      return countdown.due.duration(to: now) < Self.overdueAfter
    }
  }
}
