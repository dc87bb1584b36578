// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import JSON
internal import LastOut
import Values

/// Key presses that become requests to the gateway.
extension ControlScreen {
  /// Changes the selected value by `count` of the property's steps.
  mutating func step(by count: Int, at now: Moment) {
    guard let index = selectedIndex, isChangeable(at: now) else { return }
    let row = rows[index]
    switch row.property.kind {
    case .action(let words):
      guard !words.isEmpty else { return }
      let shift = count.signum() + words.count
      rows[index].chosenWord = (row.chosenWord + shift) % words.count
    case .text, .color: show("Enter types a new value", at: now)
    case .number, .integer:
      guard let base = row.target ?? row.actual else {
        // The gateway knows the value, or asks the device for it.
        return change(to: nil, .step(.number(row.property.amount(ofSteps: count))), at: now)
      }
      move(from: base, by: count, at: now)
    case .boolean, .choice:
      move(from: row.target ?? row.actual ?? .null, by: count.signum(), at: now)
    }
  }

  private mutating func move(from base: JSONValue, by count: Int, at now: Moment) {
    guard let row = selectedRow, let value = row.property.value(from: base, steps: count) else {
      return
    }
    if value == base, row.target != nil {
      if let rule = row.property.kind.numberRule {
        show("the range is \(rule.shownAllowed)", at: now)
      }
      return
    }
    change(to: value, .set(value), at: now)
  }

  /// Toggles a boolean, selects the next word of a choice, or triggers an action.
  mutating func toggle(at now: Moment) {
    guard let row = selectedRow, isChangeable(at: now) else { return }
    switch row.property.kind {
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

  /// Starts typing a value, or toggles a property that has no typed values.
  mutating func enter(at now: Moment) {
    guard let row = selectedRow, isChangeable(at: now) else { return }
    switch row.property.kind {
    case .boolean, .choice: toggle(at: now)
    case .action(let words) where !words.isEmpty: toggle(at: now)
    case .number, .integer, .text, .color, .action: mode = .typing("")
    }
  }

  /// Requests a change of the selected property.
  ///
  /// `value` is the new target, or `nil` when the gateway computes it.
  mutating func change(
    to value: JSONValue?,
    _ operation: ControlRequest.Operation,
    at now: Moment
  ) {
    guard let index = selectedIndex else { return }
    change(index, to: value, operation, at: now)
  }

  private mutating func change(
    _ index: Int,
    to value: JSONValue?,
    _ operation: ControlRequest.Operation,
    at now: Moment
  ) {
    guard isReady(at: now) else { return }
    link.requestChange(operation, of: rows[index].property.key)
    rows[index].recordRequest(value, at: now)
    notice = nil
  }

  /// Requests a flush or a cancellation.
  mutating func requestRemoval(
    _ operation: ControlRequest.Operation,
    of pattern: String?,
    at now: Moment
  ) {
    guard let pattern, isReady(at: now) else { return }
    link.requestRemoval(operation, of: pattern)
  }

  /// Sends the urgent value that stops the selected property.
  mutating func stop(at now: Moment) {
    guard let row = selectedRow else { return }
    guard let (index, value) = rows.urgent(for: row) else {
      return show("\(row.property.deviceName) has nothing that stops it", at: now)
    }
    change(index, to: value, .set(value), at: now)
    if rows[index].property.key != row.property.key {
      show("\(rows[index].property.key) \(ValueFormat.text(value)), at once", at: now)
    }
  }

  /// Whether the selected property has commands; says so if not.
  mutating func isChangeable(at now: Moment) -> Bool {
    guard let row = selectedRow, row.property.isReadOnly else { return true }
    show("\(row.label) is read-only: only the device changes it", at: now)
    return false
  }

  private mutating func isReady(at now: Moment) -> Bool {
    if link.state == .ready { return true }
    show("no gateway: nothing was changed", isError: true, at: now)
    return false
  }
}
