// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import Devices
package import JSON
internal import LastOut

/// One property: what it takes, its values, and where its newest change stands.
///
/// A change moves the target at once. Until the gateway has answered the last of them, nothing that
/// it says about earlier ones moves the target back.
package struct ScreenRow: Hashable, Sendable {
  /// Changes that became commands: `47` to `1`, or to `0` where nothing needed to be sent.
  package struct Tally: Hashable, Sendable {
    package var changes: Int
    package var commands: Int
  }

  /// How long a refusal stays before what the gateway tells replaces it.
  private static let refusalStays = Duration.seconds(6)

  package let facts: PropertyRow
  /// The device's identifier.
  package let deviceID: String
  /// The property's name, else its identifier.
  package let label: String
  package internal(set) var target: JSONValue?
  package internal(set) var actual: JSONValue?
  package internal(set) var progress = Progress.idle
  /// What became of the changes before the newest ones.
  package private(set) var tally: Tally?
  /// Of an action with several words, the one that is sent next.
  package internal(set) var chosenWord = 0
  /// Own changes that the gateway has not answered.
  private(set) var unanswered = 0
  /// Changes that the gateway has taken since the last command left.
  private var taken = 0
  /// The newest change that the gateway has taken.
  private var newestID: String?
  /// What `max_wait` counts from: the burst's start or the last time the key ran.
  private var base: Moment?
  private var lastChange: Moment?

  package init(_ facts: PropertyRow) {
    self.facts = facts
    let parts = facts.key.split(separator: "/", maxSplits: 1)
    deviceID = String(parts.first ?? "")
    label = facts.name ?? String(parts.last ?? "")
  }

  /// Changes that have not left yet.
  package var gathered: Int { taken + unanswered }

  /// Whether target and actual are both known and not the same.
  package var isApart: Bool {
    guard let target, let actual else { return false }
    return !target.isSameScalar(as: actual)
  }

  // MARK: - What is asked here

  /// Notes a change that is about to be asked; `value` is `nil` where the gateway has to count.
  mutating func ask(_ value: JSONValue?, at now: Moment) {
    unanswered += 1
    guard let value else {
      progress = .asking
      return
    }
    target = value
    note(changeTo: value, at: now)
  }

  /// The gateway has answered one of the changes.
  mutating func answered() { unanswered = max(0, unanswered - 1) }

  /// An own change was refused.
  mutating func refuse(_ reason: String, at now: Moment) {
    answered()
    guard unanswered == 0 else { return }
    progress = .ended(.rejected, reason: reason, at: now)
  }

  /// The connection is gone, and with it all that was known of changes on their way.
  mutating func forgetChanges() {
    unanswered = 0
    taken = 0
    newestID = nil
    base = nil
    lastChange = nil
    if case .ended = progress { return }
    progress = .idle
  }

  // MARK: - What the gateway says

  /// Takes a watched event; `isOwn` where the change was asked here.
  mutating func hear(_ event: EventObject, isOwn: Bool, at now: Moment) {
    if event.phase == .accepted {
      newestID = event.id
      taken += 1
      if unanswered == 0, let value = event.value { target = value }
      if !isOwn, let value = event.value { note(changeTo: value, at: now) }
      if isOwn, case .asking = progress, let value = event.value { note(changeTo: value, at: now) }
      return
    }
    let isNewest = newestID == nil || newestID == event.id
    if event.phase == .sending {
      base = now
      if isNewest { count(event, commands: 1) }
    }
    guard isNewest, unanswered == 0 else { return }
    follow(event, at: now)
  }

  /// Takes what `pending` says of this key.
  mutating func hear(_ row: PendingRow, at now: Moment) {
    guard unanswered == 0 else { return }
    taken = row.collapsed + 1
    if !isAction { target = row.value }
    let due = row.dueMilliseconds.map { now.advanced(by: .milliseconds($0)) }
    switch row.waits {
    case .quiet:
      progress = .settling(Countdown(due: due ?? now, span: facts.policy.delay))
    case .lane, .inFlight, .offline:
      progress = .waiting(row.waits, until: due)
    }
  }

  /// Takes what `get` says of this key.
  mutating func hear(_ row: TargetRow, at now: Moment) {
    actual = row.actual
    guard unanswered == 0 else { return }
    target = row.target
    guard let phase = row.phase else {
      if !progress.isOpen { progress = .idle }
      return
    }
    switch phase {
    case .accepted:
      // What it waits for is asked next.
      if !progress.isOpen { progress = .waiting(.quiet, until: nil) }
      return
    case .sending: progress = .sending
    case .sent where facts.confirmWithin != nil: progress = .sent
    case .sent, .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired:
      if case .ended(let known, _, let at) = progress {
        if known == phase { return }
        if known == .rejected, at.duration(to: now) < Self.refusalStays { return }
      }
      let age = Duration.milliseconds(row.ageMilliseconds ?? 0)
      progress = .ended(phase, reason: nil, at: now.advanced(by: .zero - age))
    }
    taken = 0
  }

  private mutating func follow(_ event: EventObject, at now: Moment) {
    switch event.phase {
    case .accepted, .rejected: return
    case .sending: progress = .sending
    case .sent:
      progress =
        facts.confirmWithin == nil ? .ended(.sent, reason: event.reason, at: now) : .sent
    case .superseded, .unchanged, .cancelled, .confirmed, .failed, .expired:
      progress = .ended(event.phase, reason: event.reason, at: now)
    }
    switch event.phase {
    case .superseded, .unchanged, .cancelled, .failed, .expired: count(event, commands: 0)
    case .confirmed: if let value = event.value { actual = value }
    case .accepted, .rejected, .sending, .sent: break
    }
    switch event.phase {
    case .cancelled, .expired, .failed: if let actual { target = actual }
    case .accepted, .rejected, .sending, .sent, .superseded, .unchanged, .confirmed: break
    }
  }

  /// What was gathered has become so many commands.
  private mutating func count(_ event: EventObject, commands: Int) {
    // What has left, and then failed or was cancelled, has its tally already.
    if commands == 1 || taken > 0 {
      tally = Tally(changes: max(taken, event.collapsed + 1), commands: commands)
    }
    taken = 0
  }

  /// A change came: the quiet period starts anew, or the value leaves at once.
  private mutating func note(changeTo value: JSONValue, at now: Moment) {
    let policy = facts.policy
    let isFirst = lastChange.map { $0.duration(to: now) >= policy.delay } ?? true
    lastChange = now
    if isFirst { base = now }
    guard policy.delay > .zero, !facts.urgent.contains(value), !(policy.leading && isFirst) else {
      progress = .sending
      return
    }
    var due = now.advanced(by: policy.delay)
    if let maxWait = policy.maxWait, let base {
      due = min(due, max(now, base.advanced(by: max(maxWait, policy.delay))))
    }
    progress = .settling(Countdown(due: due, span: policy.delay))
  }

  private var isAction: Bool { if case .action = facts.kind { true } else { false } }
}
