// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
package import LastOut
internal import Values

/// The advice on one key as text: a table, a picture of one gesture, and what to paste.
package struct AdviceText {
  private let advice: KeyAdvice
  private let width: Int
  private let marks: TimelinePlot.Marks

  /// - Parameters:
  ///   - advice: The advice.
  ///   - width: How many columns the picture may have.
  ///   - marks: What the terminal can show.
  package init(_ advice: KeyAdvice, width: Int, marks: TimelinePlot.Marks) {
    self.advice = advice
    self.width = width
    self.marks = marks
  }

  /// The whole advice, with a line break at its end.
  package var text: String {
    let changes = CountText.text(advice.changeCount, "change")
    let gestures = CountText.text(advice.gestureCount, "gesture")
    let head = "\(marks.shown(Excerpt.visible(advice.key.name))): \(changes) in \(gestures)"
    if advice.key.isAction {
      return head + "; an action sends every change, so it has no policy to choose\n"
    }
    if advice.isOfNoConsequence, let row = advice.rows.first {
      let commands = CountText.text(row.outcome.commands.count, "command")
      return head + "; every policy sends \(commands)\n"
    }
    let lines = [head, ""] + table + [""] + legend + [""] + picture + [""] + paste
    return lines.map { TimelinePlot.trimmed($0) + "\n" }.joined()
  }

  // MARK: - The table

  private var table: [String] {
    var rows = [["", "commands", "final p50", "worst", "longest wait"]]
    if advice.hasLane { rows[0].append("queued") }
    for row in advice.rows {
      let outcome = row.outcome
      var cells = [mark(of: row), "\(outcome.commands.count)"]
      cells += [outcome.typicalFinal, outcome.worstFinal, outcome.worstWait].map(Self.time)
      if advice.hasLane { cells.append("\(outcome.mostQueued)") }
      rows.append(cells)
    }
    let widths = rows[0].indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    let policies = ["policy"] + advice.rows.map(policy)
    return zip(rows, policies).map { row, policy in
      zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 + "  " }.joined()
        + policy
    }
  }

  private func mark(of row: KeyAdvice.Row) -> String {
    row.isSuggested ? ">" : row.isDominated ? "" : "*"
  }

  private func policy(of row: KeyAdvice.Row) -> String {
    PolicyText.yaml(row.policy) + (row.isInForce ? "  (now)" : "")
  }

  private var legend: [String] {
    let final = DurationText.text(advice.wish.final)
    let wait = DurationText.text(advice.wish.wait)
    let isFulfilled =
      advice.suggested.map {
        $0.outcome.worstFinal <= advice.wish.final && $0.outcome.worstWait <= advice.wish.wait
      } ?? false
    let choice =
      isFulfilled
      ? "the fewest commands with the final value within \(final) and no wait above \(wait)"
      : "the soonest final value; none is within \(final) with no wait above \(wait)"
    return ["> \(choice)", "* no other policy is better in one column and as good in the rest"]
  }

  // MARK: - The picture

  /// The changes of the busiest gesture, and when the better policies send.
  private var picture: [String] {
    guard let start = advice.changes.first, let last = advice.changes.last else { return [] }
    let shown = advice.rows.filter { !$0.isDominated || $0.isInForce }
    let sent = shown.map { row in
      // Up to the command that carries the gesture's end.
      let commands = row.outcome.commands.map(\.at).filter { $0 >= start }
      let end = commands.first { $0 >= last } ?? last
      return commands.filter { $0 <= end }
    }
    let labels = shown.map { PolicyText.label($0.policy) }
    let margin = min((labels.map(\.count) + [7]).max() ?? 0, TimelinePlot.labelLimit) + 2
    let axis = TimelineAxis(
      start: start,
      end: max(last, sent.compactMap(\.last).max() ?? last),
      columns: max(20, width - margin - 2)
    )
    let counts = axis.counts(advice.changes)
    let most = counts.max() ?? 0
    let indent = "  " + String(repeating: " ", count: margin)
    let bars = String(counts.map { marks.bar($0, of: most) })
    let rows = zip(zip(shown, labels), sent).map { row, moments in
      let dots = String(axis.counts(moments).map { $0 > 0 ? marks.command : " " })
      let head = marks.padded(mark(of: row.0), to: 2) + marks.padded(row.1, to: margin - 2)
      return head + "  " + dots
    }
    return [indent + axis.scale, "  " + marks.padded("changes", to: margin - 2) + "  " + bars]
      + rows
  }

  // MARK: - What to paste

  private var paste: [String] {
    guard let row = advice.suggested else { return [] }
    let policy = PolicyText.yaml(row.policy, over: advice.inherited)
    let parts = advice.key.name.split(separator: "/")
    guard parts.count == 2 else { return ["policy: \(policy)"] }
    return ["\(parts[0]):", "  properties:", "    \(parts[1]): {policy: \(policy)}"]
  }

  /// `300 ms`, or `2.25 s` from a second on.
  private static func time(_ duration: Duration) -> String {
    let milliseconds = (max(0, duration.wholeNanoseconds) + 500_000) / 1_000_000
    return TimelineAxis.text(Moment(nanoseconds: UInt64(milliseconds) * 1_000_000))
  }
}

/// A policy as text.
package enum PolicyText {
  /// The value of `policy:` in a device file, as `{delay: 300ms, max_wait: 2s}` or `live`.
  ///
  /// Fields that are left out are inherited, so it states each field that differs from the built-in
  /// one, or from `inherited`.
  package static func yaml(_ policy: Policy, over inherited: Policy? = nil) -> String {
    guard policy != .live else { return "live" }
    var fields = ["delay: \(text(policy.delay))", "max_wait: \(limit(policy))"]
    if policy.leading || inherited?.leading == true { fields.append("leading: \(policy.leading)") }
    if policy.minInterval != .zero || (inherited?.minInterval ?? .zero) != .zero {
      fields.append("min_interval: \(text(policy.minInterval))")
    }
    return "{\(fields.joined(separator: ", "))}"
  }

  /// A short name for a picture: `300ms`, `300ms, 2s, leading`, `live at 500ms`.
  static func label(_ policy: Policy) -> String {
    guard policy != .live else { return "live" }
    if policy.leading, policy.minInterval == policy.delay, policy.maxWait == policy.delay {
      return "live at \(text(policy.delay))"
    }
    var parts = [text(policy.delay)]
    if let limit = policy.maxWait { parts.append("max \(text(limit))") }
    if policy.leading { parts.append("leading") }
    if policy.minInterval != .zero { parts.append("every \(text(policy.minInterval))") }
    return parts.joined(separator: ", ")
  }

  private static func limit(_ policy: Policy) -> String { policy.maxWait.map(text) ?? "none" }

  private static func text(_ duration: Duration) -> String { DurationText.text(duration) }
}
