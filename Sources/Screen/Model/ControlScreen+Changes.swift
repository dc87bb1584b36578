// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import JSON
internal import LastOut

/// Changes, and what else is asked of the gateway by a key press.
extension ControlScreen {
  /// Moves the selected value by so many steps of its own.
  mutating func step(by count: Int, at now: Moment) {
    guard let place = selectedPlace else { return }
    let row = rows[place]
    switch row.facts.kind {
    case .action(let words):
      guard !words.isEmpty else { return }
      let shift = count.signum() + words.count
      rows[place].chosenWord = (row.chosenWord + shift) % words.count
    case .text, .color: say("Enter types a new value", at: now)
    case .number, .integer:
      guard let base = row.target ?? row.actual else {
        // The gateway knows, or asks the device.
        return change(to: nil, .step(Double(count) * row.facts.stepAmount), at: now)
      }
      move(from: base, by: count, at: now)
    case .boolean, .choice:
      move(from: row.target ?? row.actual ?? .null, by: count.signum(), at: now)
    }
  }

  private mutating func move(from base: JSONValue, by count: Int, at now: Moment) {
    guard let row = selectedRow, let value = row.facts.value(from: base, steps: count) else {
      return
    }
    if value == base, row.target != nil {
      if let rule = row.facts.kind.numberRule { say("the range is \(rule.allowed)", at: now) }
      return
    }
    change(to: value, .set(value), at: now)
  }

  /// Flips, goes on to the next word, or does the action.
  mutating func toggle(at now: Moment) {
    guard let row = selectedRow else { return }
    switch row.facts.kind {
    case .boolean:
      guard case .boolean(let flag) = row.target ?? row.actual else {
        return change(to: nil, .toggle, at: now)
      }
      change(to: .boolean(!flag), .set(.boolean(!flag)), at: now)
    case .choice: step(by: 1, at: now)
    case .action(let words):
      guard row.chosenWord < words.count else { return enter(at: now) }
      let value = JSONValue.string(words[row.chosenWord])
      change(to: value, .set(value), at: now)
    case .number, .integer, .text, .color: enter(at: now)
    }
  }

  /// Types a new value, or does what Space does.
  mutating func enter(at now: Moment) {
    guard let row = selectedRow else { return }
    switch row.facts.kind {
    case .boolean, .choice: toggle(at: now)
    case .action(let words) where !words.isEmpty: toggle(at: now)
    case .number, .integer, .text, .color, .action: mode = .typing("")
    }
  }

  /// Asks for one change of the selected property.
  mutating func change(
    to value: JSONValue?,
    _ operation: ControlRequest.Operation,
    at now: Moment
  ) {
    guard let place = selectedPlace else { return }
    change(place, to: value, operation, at: now)
  }

  private mutating func change(
    _ place: Int,
    to value: JSONValue?,
    _ operation: ControlRequest.Operation,
    at now: Moment
  ) {
    guard isReady(at: now) else { return }
    let key = rows[place].facts.key
    lastNumber += 1
    var request = ControlRequest(operation, key: key)
    let id = "\(name)-\(lastNumber)"
    request.id = id
    request.source = "control"
    asked[id] = key
    outbox.append(request)
    rows[place].ask(value, at: now)
    notice = nil
  }

  /// Flushes or cancels.
  mutating func order(
    _ operation: ControlRequest.Operation,
    of pattern: String?,
    at now: Moment
  ) {
    guard let pattern, isReady(at: now) else { return }
    var request = ControlRequest(operation, key: pattern)
    request.id = operation == .flush ? ReadID.flush : ReadID.cancel
    outbox.append(request)
  }

  /// Sends the urgent value that goes with the selected property.
  mutating func stop(at now: Moment) {
    guard let row = selectedRow else { return }
    guard let (place, value) = urgent(for: row) else {
      return say("\(row.facts.deviceName) has nothing that stops it", at: now)
    }
    change(place, to: value, .set(value), at: now)
    if rows[place].facts.key != row.facts.key {
      say("\(rows[place].facts.key) \(ValueFormat.text(value)), at once", at: now)
    }
  }

  /// What stops the property: its own value, else that of one that ends it, else of its device.
  func urgent(for row: ScreenRow) -> (place: Int, value: JSONValue)? {
    let places = rows.indices.filter {
      rows[$0].deviceID == row.deviceID && rows[$0].facts.stopValue != nil
    }
    let found =
      places.first { rows[$0].facts.key == row.facts.key }
      ?? places.first { rows[$0].facts.ends.contains(row.facts.key) } ?? places.first
    return found.flatMap { place in rows[place].facts.stopValue.map { (place, $0) } }
  }

  private mutating func isReady(at now: Moment) -> Bool {
    if link == .ready { return true }
    say("no gateway: nothing was changed", isBad: true, at: now)
    return false
  }
}
