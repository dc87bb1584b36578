// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import LastOut

/// The passage of time.
extension ControlScreen {
  /// How often the values in view are read; a change at the device emits no event.
  static let refreshInterval = Duration.seconds(1)
  /// How often a moving bar is drawn.
  private static let frameInterval = Duration.milliseconds(50)
  /// How long the gateway may take to answer before the screen shows that it is silent.
  private static let answerTimeout = Duration.seconds(3)
  /// How long after its due time a settling value is read from the gateway.
  private static let overdueAfter = Duration.milliseconds(200)

  /// Handles the passage of time until `now`.
  package mutating func tick(at now: Moment) {
    if let until = notice?.until, now >= until { notice = nil }
    if let readSince, readSince.duration(to: now) >= Self.answerTimeout { isSilent = true }
    guard link == .ready, let refreshAt, now >= refreshAt else { return }
    self.refreshAt = now.advanced(by: Self.refreshInterval)
    // Reads do not accumulate while the gateway is slow.
    if openReads == 0 { refresh(at: now) }
  }

  /// The latest time for the next call of ``tick(at:)``.
  package func nextTick(after now: Moment) -> Moment {
    var next = now.advanced(by: .seconds(60))
    if let until = notice?.until { next = min(next, until) }
    switch link {
    case .connecting, .lost: next = min(next, retryAt)
    case .reading: next = min(next, now.advanced(by: Self.refreshInterval))
    case .ready:
      if let refreshAt { next = min(next, refreshAt) }
      if isMoving(at: now) { next = min(next, now.advanced(by: Self.frameInterval)) }
    }
    return max(next, now)
  }

  /// Reads the values in view at the next tick.
  mutating func refreshSoon(at now: Moment) {
    guard let refreshAt else { return }
    self.refreshAt = min(refreshAt, now.advanced(by: Self.frameInterval))
  }

  private mutating func refresh(at now: Moment) {
    var devices: [String] = []
    var pending: Set<String> = []
    for index in visibleIndices {
      let id = rows[index].deviceID
      if devices.last != id { devices.append(id) }
      if needsPending(rows[index], at: now) { pending.insert(id) }
    }
    for id in devices {
      if pending.contains(id) { request(.pending, "\(id)/*", RequestID.pending, at: now) }
      request(.get, "\(id)/*", RequestID.get, at: now)
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
    visibleIndices.contains { index in
      guard case .settling(let countdown) = rows[index].progress else { return false }
      return countdown.due.duration(to: now) < Self.overdueAfter
    }
  }
}
