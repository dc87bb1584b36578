// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import Devices
import JSON
package import LastOut
import Values

/// The replies of the gateway.
extension ControlScreen {
  /// Handles a new connection.
  package mutating func connected(at now: Moment) {
    link.connected(at: now)
    rows.forgetChanges()
  }

  /// Handles a failed or lost connection.
  package mutating func disconnected(_ reason: String, at now: Moment) {
    link.disconnected(reason, at: now)
    rows.forgetChanges()
  }

  /// Handles a reply or a watched event.
  package mutating func receive(_ reply: ControlReply, at now: Moment) {
    link.answered()
    switch reply {
    case .event(let event, let id): receiveAnswer(event, id: id?.string ?? event.id, at: now)
    case .watched(let event, _): receiveEvent(event, at: now)
    case .described(let properties, _):
      link.described(at: now)
      rows.replace(with: properties)
      list.update(rows)
    case .targets(let targets, _):
      link.endRead()
      for row in targets {
        guard let index = rows.index(of: row.key) else {
          link.requestDescription(at: now)
          continue
        }
        rows[index].update(from: row, at: now)
        if row.phase == .accepted, !rows[index].progress.isPending { link.refreshSoon(at: now) }
      }
    case .pending(let pending, _):
      link.endRead()
      for row in pending {
        guard let index = rows.index(of: row.key) else { continue }
        rows[index].update(from: row, at: now)
      }
    case .flushed(let count, _): show(count == 0 ? "nothing to flush" : "flushed \(count)", at: now)
    case .cancelled(let count, _):
      show(count == 0 ? "nothing to cancel" : "cancelled \(count)", at: now)
    case .failure(let failure, let id): receiveFailure(failure, id: id?.string, at: now)
    case .status(let report, _):
      guard link.heard(report.brokers.first) else { return }
      if let trouble = link.brokerTrouble {
        show("the gateway has no broker: \(trouble)", isError: true, at: now)
      } else {
        show("the broker is back", at: now)
      }
    case .recorded, .reloaded, .logged, .devices, .words, .previewed:
      break  // The screen never requests these.
    }
  }

  // MARK: - Handling replies

  private mutating func receiveAnswer(_ event: EventObject, id: String, at now: Moment) {
    guard let key = link.endChange(id), let index = rows.index(of: key) else {
      return
    }
    guard event.phase == .rejected else { return rows[index].recordAnswer() }
    rejectChange(index, event.reason ?? "refused", at: now)
  }

  private mutating func receiveFailure(_ failure: ErrorReply, id: String?, at now: Moment) {
    if let id, let key = link.endChange(id), let index = rows.index(of: key) {
      return rejectChange(index, failure.message, at: now)
    }
    if id == RequestID.describe {
      link.endRead()
      show("the gateway is older than this program: \(failure.message)", isError: true, at: now)
      return
    }
    if id == RequestID.status { return }  // An older gateway does not say how it is.
    if id == RequestID.get || id == RequestID.pending { link.endRead() }
    show(failure.message, isError: true, at: now)
  }

  private mutating func rejectChange(_ index: Int, _ reason: String, at now: Moment) {
    rows[index].reject(reason, at: now)
    show("\(rows[index].property.key): \(reason)", isError: true, at: now)
    link.refreshSoon(at: now)
  }

  private mutating func receiveEvent(_ event: EventObject, at now: Moment) {
    guard let index = rows.index(of: event.key) else {
      return link.requestDescription(at: now)
    }
    rows[index].update(from: event, isOwn: link.isOwn(event.id), at: now)
    switch event.phase {
    case .superseded, .cancelled, .failed, .expired, .confirmed, .unchanged:
      link.refreshSoon(at: now)
    case .accepted, .rejected, .sending, .sent: break
    }
  }
}
