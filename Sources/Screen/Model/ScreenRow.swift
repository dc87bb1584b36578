// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
package import JSON
package import LastOut
package import Values

/// One property: its description, its values and the progress of its newest change.
///
/// A change moves the target immediately. Replies to earlier changes do not move it back until the
/// gateway has answered all changes.
package struct ScreenRow: Hashable, Sendable {
  /// How many changes collapsed into how many commands: `47` into `1`, or `0` if nothing was sent.
  package struct Tally: Hashable, Sendable {
    package var changes: Int
    package var commands: Int
  }

  /// How long a rejection is shown before a value from the gateway replaces it.
  private static let rejectionTime = Duration.seconds(6)

  package let property: PropertyRow
  /// The device's identifier.
  package let deviceID: String
  /// The property's name, or its identifier without one.
  package let label: String
  /// Where a filter looks: the key, the device's name and the label, in lower case, a line each.
  let searchText: String
  package internal(set) var target: JSONValue?
  package internal(set) var actual: JSONValue?
  package internal(set) var progress = Progress.idle
  /// The result of the last burst of changes.
  package private(set) var tally: Tally?
  /// The index of the word that an action sends next.
  package internal(set) var chosenWord = 0
  /// The word of an action that was sent last.
  package private(set) var lastSent: JSONValue?
  /// The number of this screen's changes that the gateway has not answered.
  private(set) var unanswered = 0
  /// The number of changes that the gateway has accepted since the last command.
  private var accepted = 0
  /// The identifier of the newest accepted change.
  private var newestID: String?
  /// The start of `max_wait`: the start of the burst or the last command.
  private var base: Moment?
  /// When the last command was sent: the start of `min_interval`.
  private var lastSending: Moment?
  private var lastChange: Moment?

  package init(_ property: PropertyRow) {
    self.property = property
    let parts = property.key.split(separator: "/", maxSplits: 1)
    deviceID = String(parts.first ?? "")
    label = property.name ?? String(parts.last ?? "")
    searchText = [property.key, property.deviceName, label].joined(separator: "\n").lowercased()
  }

  /// The number of changes that are not sent yet.
  package var pendingChanges: Int { accepted + unanswered }

  /// Whether target and actual are both known and differ.
  package var targetDiffers: Bool {
    guard let target, let actual else { return false }
    return !target.isSameScalar(as: actual)
  }

  // MARK: - This screen's changes

  /// Records a requested change; `value` is `nil` when the gateway computes it.
  mutating func recordRequest(_ value: JSONValue?, at now: Moment) {
    unanswered += 1
    guard let value else {
      progress = .querying
      return
    }
    target = value
    startCountdown(for: value, at: now)
  }

  /// Records the answer to one of this screen's changes.
  mutating func recordAnswer() { unanswered = max(0, unanswered - 1) }

  /// Records that one of this screen's changes was rejected.
  mutating func reject(_ reason: String, at now: Moment) {
    recordAnswer()
    guard unanswered == 0 else { return }
    progress = .ended(.rejected, reason: reason, at: now)
  }

  /// Forgets the changes that are pending or in flight, after the connection is lost.
  mutating func forgetChanges() {
    unanswered = 0
    accepted = 0
    newestID = nil
    base = nil
    lastSending = nil
    lastChange = nil
    if case .ended = progress { return }
    progress = .idle
  }

  // MARK: - Messages from the gateway

  /// Applies a watched event; `isOwn` if this screen requested the change.
  mutating func update(from event: EventObject, isOwn: Bool, at now: Moment) {
    if event.phase == .accepted {
      newestID = event.id
      accepted += 1
      guard let value = event.value else { return }
      if unanswered == 0 { target = value }
      if !isOwn { startCountdown(for: value, at: now) }
      if isOwn, case .querying = progress { startCountdown(for: value, at: now) }
      return
    }
    let isNewest = newestID == nil || newestID == event.id
    if event.phase == .sending {
      base = now
      lastSending = now
      if isNewest, !isAction { count(event, commands: 1) }
    }
    if isAction { countAction(event.phase) }
    if event.phase == .sent, isAction { lastSent = event.value }
    guard isNewest, unanswered == 0 else { return }
    updateProgress(from: event, at: now)
  }

  /// Applies a row of `pending`.
  mutating func update(from row: PendingRow, at now: Moment) {
    guard unanswered == 0 else { return }
    accepted = isAction ? row.waiting : row.collapsed + 1
    if !isAction { target = row.value }
    let due = row.dueMilliseconds.map { now.advanced(by: .milliseconds($0)) }
    switch row.waits {
    case .quiet:
      let span = max(property.policy.delay, property.policy.minInterval)
      progress = .settling(Countdown(due: due ?? now, span: span))
    case .lane, .inFlight, .offline, .unknown, .asleep:
      progress = .waiting(row.waits, until: due)
    }
  }

  /// Applies a row of `get`.
  mutating func update(from row: TargetRow, at now: Moment) {
    actual = row.actual
    guard unanswered == 0 else { return }
    target = row.target
    guard let phase = row.phase else {
      if !progress.isPending { progress = .idle }
      return
    }
    switch phase {
    case .accepted:
      // The next read of `pending` shows what it waits for.
      if !progress.isPending { progress = .waiting(.quiet, until: nil) }
      return
    case .sending: progress = .sending
    case .sent where property.confirmWithin != nil: progress = .sent
    case .sent, .superseded, .unchanged, .cancelled, .rejected, .confirmed, .failed, .expired:
      if case .ended(let known, _, let at) = progress {
        if known == phase { return }
        if known == .rejected, at.duration(to: now) < Self.rejectionTime { return }
      }
      let age = Duration.milliseconds(row.ageMilliseconds ?? 0)
      progress = .ended(phase, reason: nil, at: now.advanced(by: .zero - age))
    }
    accepted = 0
  }

  private mutating func updateProgress(from event: EventObject, at now: Moment) {
    switch event.phase {
    case .accepted, .rejected: return
    case .sending: return progress = .sending
    case .sent where property.confirmWithin != nil: return progress = .sent
    case .sent: break
    case .confirmed: if let value = event.value { actual = value }
    case .superseded, .unchanged: if !isAction { count(event, commands: 0) }
    case .cancelled, .failed, .expired:
      if !isAction { count(event, commands: 0) }
      if let actual { target = actual }
    }
    progress = .ended(event.phase, reason: event.reason, at: now)
  }

  /// Updates the tally when the accepted changes end as `commands` commands.
  private mutating func count(_ event: EventObject, commands: Int) {
    // A command that fails or is cancelled after it was sent is already counted.
    if commands == 1 || accepted > 0 {
      tally = Tally(changes: max(accepted, event.collapsed + 1), commands: commands)
    }
    accepted = 0
  }

  /// Counts an action that waits no longer: each is a command of its own.
  private mutating func countAction(_ phase: Phase) {
    switch phase {
    case .sending, .superseded, .cancelled, .failed: accepted = max(0, accepted - 1)
    case .accepted, .rejected, .unchanged, .sent, .confirmed, .expired: break
    }
  }

  /// Starts the quiet period again, unless the value is sent immediately.
  private mutating func startCountdown(for value: JSONValue, at now: Moment) {
    let policy = property.policy
    let isFirst = lastChange.map { $0.duration(to: now) >= policy.delay } ?? true
    lastChange = now
    if isFirst { base = now }
    guard !property.urgent.contains(value) else { return progress = .sending }
    var due = policy.leading && isFirst ? now : now.advanced(by: policy.delay)
    if let maxWait = policy.maxWait, let base {
      due = min(due, max(now, base.advanced(by: max(maxWait, policy.delay))))
    }
    if let lastSending { due = max(due, lastSending.advanced(by: policy.minInterval)) }
    guard due > now else { return progress = .sending }
    progress = .settling(Countdown(due: due, span: max(policy.delay, policy.minInterval)))
  }

  private var isAction: Bool { if case .action = property.kind { true } else { false } }
}

/// The progress of a property's newest change, as far as the screen knows.
package enum Progress: Hashable, Sendable {
  /// No change was requested.
  case idle
  /// The gateway requests the device's value, which a step is added to.
  case querying
  /// The quiet period runs.
  case settling(Countdown)
  /// Settled and held back by something else, until a time if that is known.
  case waiting(PendingReason, until: Moment?)
  case sending
  /// Acknowledged by the broker and not yet confirmed by the device.
  case sent
  /// In its final phase.
  case ended(Phase, reason: String?, at: Moment)

  /// Whether the value is not sent yet.
  package var isPending: Bool {
    switch self {
    case .querying, .settling, .waiting: true
    case .idle, .sending, .sent, .ended: false
    }
  }

  /// Whether the screen must be redrawn as time passes.
  package var isMoving: Bool {
    switch self {
    case .settling: true
    case .idle, .querying, .waiting, .sending, .sent, .ended: false
    }
  }
}

/// A running quiet period: when it ends, and its length since the last change.
package struct Countdown: Hashable, Sendable {
  package var due: Moment
  package var span: Duration

  /// The remaining time; zero when it is over.
  package func remaining(at now: Moment) -> Duration { max(.zero, now.duration(to: due)) }

  /// The remaining fraction, from 1 down to 0.
  package func fraction(at now: Moment) -> Double {
    span > .zero ? min(1, remaining(at: now) / span) : 0
  }
}

/// The values that key presses select.
extension PropertyRow {
  /// The amount that one press adds to a number: its step, or about a hundredth of its range.
  var stepAmount: Double {
    guard let rule = kind.numberRule else { return 0 }
    if let step = rule.step, step > 0 { return step }
    if case .integer = kind { return 1 }
    guard let range = rule.range else { return 1 }
    let span = range.upperBound - range.lowerBound
    var amount = 1.0
    while amount > 0.001, amount * 50 > span { amount /= 10 }
    return amount
  }

  /// The amount that `count` presses add to a number.
  ///
  /// Where people read another unit, a press moves what they read: by whole numbers on a linear
  /// scale, and up is where that number grows.
  func amount(ofSteps count: Int, from number: Double? = nil) -> Double {
    let plain = Double(count) * stepAmount
    guard let rule = kind.numberRule, let display = rule.display else { return plain }
    guard let slope = display.scale.slope else { return -plain }
    let unit = display.scale.resolution * Double(count)
    guard let number, let shown = display.shown(number),
      let end = display.scale.inverse(shown + unit)
    else { return unit * slope }
    let least = Double((slope < 0 ? -1 : 1) * count.signum()) * stepAmount
    return (end - number).magnitude < least.magnitude ? least : end - number
  }

  /// The value `count` steps away, within the range; `nil` for a type without steps.
  ///
  /// The words of a choice wrap around. A step up makes a boolean true, a step down makes it false.
  func value(from base: JSONValue, steps count: Int) -> JSONValue? {
    switch kind {
    case .number(let rule), .integer(let rule):
      guard let number = base.double else { return nil }
      let sum = rule.clamped(number + amount(ofSteps: count, from: number))
      // Without a step, snapping to a fine one removes the sum's rounding error.
      let grid = NumberRule(step: stepAmount / 1000)
      return JSONValue(shortest: rule.step == nil ? grid.snapped(sum) : rule.snapped(sum))
    case .boolean: return .boolean(count > 0)
    case .choice(let words):
      guard !words.isEmpty else { return nil }
      let index = base.string.flatMap { words.firstIndex(of: $0) } ?? (count > 0 ? -1 : 0)
      return .string(words[(index + count % words.count + words.count) % words.count])
    case .text, .color, .action: return nil
    }
  }

  /// The urgent value that stops the device or switches it off, otherwise the only urgent value.
  ///
  /// Urgent values include a cover's OPEN, which must not be sent when the user wants to stop it.
  var stopValue: JSONValue? {
    for word in ["stop", "halt", "off"] {
      let found = urgent.first { ValueFormat.text($0).lowercased() == word }
      if let found { return found }
    }
    return urgent.count == 1 ? urgent.first : .none
  }

  /// Parses typed text; `nil` with a message when it is not a number in the range.
  ///
  /// The gateway validates everything else.
  func value(typed text: String) -> (value: JSONValue?, mistake: String?) {
    guard let rule = kind.numberRule else { return (.string(text), nil) }
    let isBare = NumberText.parse(text) != nil
    // A bare number is of the unit that the screen shows.
    let written = isBare ? rule.display.map { "\(text) \($0.unit)" } : nil
    let hasUnit = ["%", rule.unit, rule.shownUnit].contains { unit in
      unit.map { text.lowercased().hasSuffix($0.lowercased()) } ?? false
    }
    if written != nil || hasUnit {
      do throws(ValidationError) {
        return (try kind.value(from: .string(written ?? text)).json, nil)
      } catch {
        return (nil, error.description)
      }
    }
    guard let number = NumberText.parse(text) else {
      let hint = NumberText.suggestion(for: text).map { "; did you mean \($0)?" } ?? ""
      return (nil, "\"\(Excerpt.of(text))\" is not a number\(hint)")
    }
    guard rule.range?.contains(number) ?? true else {
      return (nil, "\(NumberText.shortest(number)) is outside \(rule.allowed)")
    }
    if case .integer = kind, number != number.rounded() {
      return (nil, "\(NumberText.shortest(number)) is not a whole number")
    }
    return (JSONValue(shortest: rule.snapped(number)), nil)
  }
}
