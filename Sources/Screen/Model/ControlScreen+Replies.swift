// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import Devices
import JSON
package import LastOut

/// The connection to the gateway and its replies.
extension ControlScreen {
  private static let firstRetry = Duration.milliseconds(200)
  private static let slowestRetry = Duration.seconds(2)

  /// Whether a connection attempt is due.
  package func shouldConnect(at now: Moment) -> Bool {
    switch link {
    case .connecting, .lost: now >= retryAt
    case .reading, .ready: false
    }
  }

  /// Handles a new connection: requests the devices, their values and all events.
  package mutating func connected(at now: Moment) {
    link = .reading
    retries = 0
    isSilent = false
    isDescribing = false
    unansweredChanges = [:]
    openReads = 0
    readSince = nil
    for index in rows.indices { rows[index].forgetChanges() }
    outbox = []
    request(.describe, "*", RequestID.describe, at: now)
    request(.watch, "*", RequestID.watch, at: now)
    request(.get, "*", RequestID.get, at: now)
    request(.pending, "*", RequestID.pending, at: now)
  }

  /// Handles a failed or lost connection; the next attempt waits 200 ms to 2 s.
  package mutating func disconnected(_ reason: String, at now: Moment) {
    link = .lost(reason: reason)
    let wait = min(Self.slowestRetry, Self.firstRetry * (1 << min(retries, 4)))
    retries += 1
    retryAt = now.advanced(by: wait)
    refreshAt = nil
    unansweredChanges = [:]
    outbox = []
    for index in rows.indices { rows[index].forgetChanges() }
  }

  /// Handles a reply or a watched event.
  package mutating func receive(_ reply: ControlReply, at now: Moment) {
    isSilent = false
    switch reply {
    case .event(let event, let id): receiveAnswer(event, id: id?.string ?? event.id, at: now)
    case .watched(let event, _): receiveEvent(event, at: now)
    case .described(let properties, _):
      endRead()
      isDescribing = false
      describe(properties, at: now)
    case .targets(let targets, _):
      endRead()
      for row in targets {
        guard let index = rowIndices[row.key] else {
          requestDescription(at: now)
          continue
        }
        rows[index].update(from: row, at: now)
        if row.phase == .accepted, !rows[index].progress.isPending { refreshSoon(at: now) }
      }
    case .pending(let pending, _):
      endRead()
      for row in pending {
        guard let index = rowIndices[row.key] else { continue }
        rows[index].update(from: row, at: now)
      }
    case .flushed(let count, _): show(count == 0 ? "nothing to flush" : "flushed \(count)", at: now)
    case .cancelled(let count, _):
      show(count == 0 ? "nothing to cancel" : "cancelled \(count)", at: now)
    case .failure(let failure, let id): receiveFailure(failure, id: id?.string, at: now)
    case .recorded, .reloaded: break  // The screen never requests these.
    }
  }

  // MARK: - Handling replies

  private mutating func receiveAnswer(_ event: EventObject, id: String, at now: Moment) {
    guard let key = unansweredChanges.removeValue(forKey: id), let index = rowIndices[key] else {
      return
    }
    guard event.phase == .rejected else { return rows[index].recordAnswer() }
    rejectChange(index, event.reason ?? "refused", at: now)
  }

  private mutating func receiveFailure(_ failure: ErrorReply, id: String?, at now: Moment) {
    if let id, let key = unansweredChanges.removeValue(forKey: id), let index = rowIndices[key] {
      return rejectChange(index, failure.message, at: now)
    }
    if id == RequestID.describe {
      endRead()
      show("the gateway is older than this program: \(failure.message)", isError: true, at: now)
      return
    }
    if id == RequestID.get || id == RequestID.pending { endRead() }
    show(failure.message, isError: true, at: now)
  }

  private mutating func rejectChange(_ index: Int, _ reason: String, at now: Moment) {
    rows[index].reject(reason, at: now)
    show("\(rows[index].property.key): \(reason)", isError: true, at: now)
    refreshSoon(at: now)
  }

  private mutating func receiveEvent(_ event: EventObject, at now: Moment) {
    guard let index = rowIndices[event.key] else {
      return requestDescription(at: now)
    }
    rows[index].update(from: event, isOwn: event.id.hasPrefix("\(name)-"), at: now)
    switch event.phase {
    case .superseded, .cancelled, .failed, .expired, .confirmed, .unchanged:
      refreshSoon(at: now)
    case .accepted, .rejected, .sending, .sent: break
    }
  }

  /// Requests the devices again, after an unknown key shows that the gateway reloaded them.
  private mutating func requestDescription(at now: Moment) {
    guard link == .ready, !isDescribing else { return }
    isDescribing = true
    request(.describe, "*", RequestID.describe, at: now)
  }

  private mutating func describe(_ properties: [PropertyRow], at now: Moment) {
    let known = rows
    let oldIndices = rowIndices
    rows = properties.map { property in
      var row = ScreenRow(property)
      if let old = oldIndices[property.key].map({ known[$0] }) {
        if old.property == property { return old }
        row.target = old.target
        row.actual = old.actual
      }
      return row
    }
    rowIndices = [:]
    for (index, row) in rows.enumerated() { rowIndices[row.property.key] = index }
    deviceCount = Set(rows.map(\.deviceID)).count
    labelWidth = rows.map { CellWidth.of($0.label) }.max() ?? 0
    unitWidth = rows.map { CellWidth.of($0.property.kind.numberRule?.unit ?? "") }.max() ?? 0
    if link == .reading { link = .ready }
    refreshAt = refreshAt ?? now.advanced(by: Self.refreshInterval)
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

/// The identifiers of requests other than changes.
enum RequestID {
  static let describe = "describe"
  static let watch = "watch"
  static let get = "get"
  static let pending = "pending"
  static let flush = "flush"
  static let cancel = "cancel"
}
