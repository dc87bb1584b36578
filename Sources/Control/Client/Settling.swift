// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// Decides when keys are quiet and their last commands done, from any source.
///
/// It asks for the state of the keys, and again after every event, so that nothing is missed
/// between the two: watch the keys first, send ``questions(describing:)``, and pass every reply to
/// ``receive(_:)``. The keys belong to one device.
package struct Settling: Sendable {
  /// What is known of one key.
  package struct Status: Sendable {
    package var description: PropertyRow?
    package var target: JSONValue?
    /// The phase of the last command; `nil` before the first.
    package var phase: Phase?
    /// What a pending value waits for.
    package var waits: PendingReason?
    /// The newest event that was heard of a command.
    package var event: EventObject?

    /// Whether nothing is pending, and the last command has ended.
    var isDone: Bool {
      guard waits == nil, let description else { return false }
      return phase?.isFinal(canConfirm: description.confirmWithin != nil) ?? true
    }

    /// Whether the last command has done what it should, if there was one.
    package var isGood: Bool {
      switch phase {
      case nil, .sent, .confirmed, .unchanged: true
      case .accepted, .superseded, .cancelled, .rejected, .sending, .failed, .expired: false
      }
    }
  }

  /// The keys, and what is known of each.
  package private(set) var statuses: [String: Status] = [:]
  package let pattern: String
  /// Replies that are missing of the questions that were asked last, or the first questions.
  private var missing = 1
  /// Whether something has happened since they were asked.
  private var isStale = false
  /// `pattern` matches all of `keys`: one key, or those of a device.
  package init(_ keys: [String], pattern: String) {
    self.pattern = pattern
    for key in keys { statuses[key] = Status() }
  }

  /// Whether no reply to the last questions is missing.
  package var isAnswered: Bool { missing == 0 }

  /// Whether all keys are quiet and done.
  package var isDone: Bool { isAnswered && statuses.values.allSatisfy(\.isDone) }

  /// The questions to ask next; `describing` for the first ones.
  package mutating func questions(describing: Bool = false) -> [ControlRequest] {
    isStale = false
    missing = describing ? 3 : 2
    let operations: [ControlRequest.Operation] =
      describing ? [.describe, .pending, .get] : [.pending, .get]
    return operations.map { ControlRequest($0, key: pattern) }
  }

  /// Receives a reply, and returns what to ask now.
  package mutating func receive(_ reply: ControlReply) -> [ControlRequest] {
    switch reply {
    case .described(let rows, _):
      missing -= 1
      for row in rows { statuses[row.key]?.description = row }
    case .pending(let rows, _):
      missing -= 1
      for key in statuses.keys { statuses[key]?.waits = nil }
      for row in rows { statuses[row.key]?.waits = row.waits }
    case .targets(let rows, _):
      missing -= 1
      for row in rows { update(row) }
    case .watched(let event, _):
      guard statuses[event.key] != nil else { return [] }
      if event.phase != .rejected { statuses[event.key]?.event = event }
      isStale = true
    case .event, .recorded, .flushed, .cancelled, .reloaded, .status, .logged, .devices, .words,
      .previewed,
      .failure:
      return []
    }
    guard missing == 0, isStale, !isDone else { return [] }
    return questions()
  }

  private mutating func update(_ row: TargetRow) {
    guard let status = statuses[row.key] else { return }
    statuses[row.key]?.target = row.target
    // A rejected change is no command: what it did not replace goes on.
    let isRejected = row.phase == .rejected
    statuses[row.key]?.phase = isRejected ? status.event?.phase : row.phase
  }

  /// Why it is not done yet, in words.
  package var reason: String {
    let open = statuses.filter { !$0.value.isDone }.sorted { $0.key < $1.key }
    guard let (key, status) = open.first else { return "nothing is pending" }
    return switch status.waits {
    case .quiet: "\(key) is still being changed"
    case .lane: "\(key) waits for its lane"
    case .inFlight: "\(key) waits for the command before it"
    case .offline: "\(key) waits for an offline broker or device"
    case .unknown: "\(key) waits: the device's availability is not known yet"
    case .asleep: "\(key) waits for a device that is asleep"
    case nil: "\(key) is \(status.phase?.rawValue ?? "not known")"
    }
  }
}
