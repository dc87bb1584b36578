// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import Devices
import JSON
package import LastOut

/// The connection, and what the gateway says.
extension ControlScreen {
  private static let firstRetry = Duration.milliseconds(200)
  private static let slowestRetry = Duration.seconds(2)

  /// Whether it is time to connect, the first time or once more.
  package func wantsConnection(at now: Moment) -> Bool {
    switch link {
    case .connecting, .lost: now >= retryAt
    case .reading, .ready: false
    }
  }

  /// A connection is there: asks for everything.
  package mutating func connected(at now: Moment) {
    link = .reading
    retries = 0
    isSilent = false
    isDescribing = false
    asked = [:]
    openReads = 0
    readSince = nil
    for place in rows.indices { rows[place].forgetChanges() }
    outbox = []
    request(.describe, "*", ReadID.describe, at: now)
    request(.watch, "*", ReadID.watch, at: now)
    request(.get, "*", ReadID.get, at: now)
    request(.pending, "*", ReadID.pending, at: now)
  }

  /// The connection could not be made, or is gone.
  package mutating func disconnected(_ reason: String, at now: Moment) {
    link = .lost(reason: reason)
    let wait = min(Self.slowestRetry, Self.firstRetry * (1 << min(retries, 4)))
    retries += 1
    retryAt = now.advanced(by: wait)
    refreshAt = nil
    asked = [:]
    outbox = []
    for place in rows.indices { rows[place].forgetChanges() }
  }

  /// The gateway said something.
  package mutating func receive(_ reply: ControlReply, at now: Moment) {
    isSilent = false
    switch reply {
    case .event(let event, let id): answer(event, id: id?.string ?? event.id, at: now)
    case .watched(let event, _): watch(event, at: now)
    case .described(let facts, _):
      endRead()
      isDescribing = false
      describe(facts, at: now)
    case .targets(let targets, _):
      endRead()
      for row in targets {
        guard let place = places[row.key] else {
          describeAnew(at: now)
          continue
        }
        rows[place].hear(row, at: now)
        if row.phase == .accepted, !rows[place].progress.isOpen { hurryRefresh(at: now) }
      }
    case .pending(let pending, _):
      endRead()
      for row in pending {
        guard let place = places[row.key] else { continue }
        rows[place].hear(row, at: now)
      }
    case .flushed(let count, _): say(count == 0 ? "nothing to flush" : "flushed \(count)", at: now)
    case .cancelled(let count, _):
      say(count == 0 ? "nothing to cancel" : "cancelled \(count)", at: now)
    case .failure(let failure, let id): refuse(failure, id: id?.string, at: now)
    case .recorded, .reloaded: break  // Not asked for here.
    }
  }

  // MARK: - Parts

  private mutating func answer(_ event: EventObject, id: String, at now: Moment) {
    guard let key = asked.removeValue(forKey: id), let place = places[key] else { return }
    guard event.phase == .rejected else { return rows[place].answered() }
    refuseChange(place, event.reason ?? "refused", at: now)
  }

  private mutating func refuse(_ failure: ErrorReply, id: String?, at now: Moment) {
    if let id, let key = asked.removeValue(forKey: id), let place = places[key] {
      return refuseChange(place, failure.message, at: now)
    }
    if id == ReadID.describe {
      endRead()
      say("the gateway is older than this program: \(failure.message)", isBad: true, at: now)
      return
    }
    if id == ReadID.get || id == ReadID.pending { endRead() }
    say(failure.message, isBad: true, at: now)
  }

  private mutating func refuseChange(_ place: Int, _ reason: String, at now: Moment) {
    rows[place].refuse(reason, at: now)
    say("\(rows[place].facts.key): \(reason)", isBad: true, at: now)
    hurryRefresh(at: now)
  }

  private mutating func watch(_ event: EventObject, at now: Moment) {
    guard let place = places[event.key] else {
      return describeAnew(at: now)
    }
    rows[place].hear(event, isOwn: event.id.hasPrefix("\(name)-"), at: now)
    switch event.phase {
    case .superseded, .cancelled, .failed, .expired, .confirmed, .unchanged:
      hurryRefresh(at: now)
    case .accepted, .rejected, .sending, .sent: break
    }
  }

  /// The devices were read again, and there is one more.
  private mutating func describeAnew(at now: Moment) {
    guard link == .ready, !isDescribing else { return }
    isDescribing = true
    request(.describe, "*", ReadID.describe, at: now)
  }

  private mutating func describe(_ facts: [PropertyRow], at now: Moment) {
    let known = rows
    let oldPlaces = places
    rows = facts.map { facts in
      var row = ScreenRow(facts)
      if let old = oldPlaces[facts.key].map({ known[$0] }) {
        if old.facts == facts { return old }
        row.target = old.target
        row.actual = old.actual
      }
      return row
    }
    places = [:]
    for (place, row) in rows.enumerated() { places[row.facts.key] = place }
    deviceCount = Set(rows.map(\.deviceID)).count
    labelWidth = rows.map { CellWidth.of($0.label) }.max() ?? 0
    unitWidth = rows.map { CellWidth.of($0.facts.kind.numberRule?.unit ?? "") }.max() ?? 0
    if link == .reading { link = .ready }
    refreshAt = refreshAt ?? now.advanced(by: Self.refreshEvery)
    updateLines()
  }

  mutating func request(
    _ operation: ControlRequest.Operation,
    _ pattern: String,
    _ id: String,
    at now: Moment
  ) {
    var request = ControlRequest(operation, key: pattern)
    request.id = id
    outbox.append(request)
    guard operation != .watch else { return }
    openReads += 1
    readSince = readSince ?? now
  }

  private mutating func endRead() {
    openReads = max(0, openReads - 1)
    if openReads == 0 { readSince = nil }
  }
}
