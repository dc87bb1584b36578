// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import LastOut

/// What happens by itself as time passes.
extension ControlScreen {
  /// How often what is in view is read again: a device that is changed by hand has no event.
  static let refreshEvery = Duration.seconds(1)
  /// How often a bar moves.
  private static let frame = Duration.milliseconds(50)
  /// How long the gateway may take to answer before the screen says so.
  private static let patience = Duration.seconds(3)
  /// How long after its end a quiet period is believed to have no end.
  private static let overdue = Duration.milliseconds(200)

  /// Time has passed.
  package mutating func tick(at now: Moment) {
    if let until = notice?.until, now >= until { notice = nil }
    if let readSince, readSince.duration(to: now) >= Self.patience { isSilent = true }
    guard link == .ready, let refreshAt, now >= refreshAt else { return }
    self.refreshAt = now.advanced(by: Self.refreshEvery)
    // What is not answered yet is not asked again.
    if openReads == 0 { refresh(at: now) }
  }

  /// When ``tick(at:)`` is to be called at the latest.
  package func nextTick(after now: Moment) -> Moment {
    var next = now.advanced(by: .seconds(60))
    if let until = notice?.until { next = min(next, until) }
    switch link {
    case .connecting, .lost: next = min(next, retryAt)
    case .reading: next = min(next, now.advanced(by: Self.refreshEvery))
    case .ready:
      if let refreshAt { next = min(next, refreshAt) }
      if isMoving(at: now) { next = min(next, now.advanced(by: Self.frame)) }
    }
    return max(next, now)
  }

  /// Reads what is in view at the next tick.
  mutating func hurryRefresh(at now: Moment) {
    guard let refreshAt else { return }
    self.refreshAt = min(refreshAt, now.advanced(by: Self.frame))
  }

  private mutating func refresh(at now: Moment) {
    var devices: [String] = []
    var open: Set<String> = []
    for place in placesInView {
      let id = rows[place].deviceID
      if devices.last != id { devices.append(id) }
      if isWaiting(rows[place], at: now) { open.insert(id) }
    }
    for id in devices {
      if open.contains(id) { request(.pending, "\(id)/*", ReadID.pending, at: now) }
      request(.get, "\(id)/*", ReadID.get, at: now)
    }
  }

  /// Whether the gateway has to say what keeps a value.
  private func isWaiting(_ row: ScreenRow, at now: Moment) -> Bool {
    switch row.progress {
    case .settling(let countdown):
      countdown.due.duration(to: now) >= Self.overdue
    case .waiting: true
    case .ended, .idle, .sending, .sent, .asking: false
    }
  }

  private func isMoving(at now: Moment) -> Bool {
    placesInView.contains { place in
      guard case .settling(let countdown) = rows[place].progress else { return false }
      return countdown.due.duration(to: now) < Self.overdue
    }
  }
}
