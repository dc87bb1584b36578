// Settle
// SPDX-License-Identifier: Apache-2.0

/// The difference between two texts in the format of `diff -u`.
package enum UnifiedDiff {
  private static let context = 3

  /// One line of the old text, the new text or both.
  private struct Line {
    let mark: Character
    let text: Substring
  }

  /// The difference; empty if the texts are equal.
  ///
  /// `old` is `nil` for a file that does not exist. The cost is proportional to the number of lines
  /// times the number of differences.
  package static func text(old: String?, new: String, path: String) -> String {
    if old == new { return "" }
    let lines = lines(Self.split(old ?? ""), Self.split(new))
    let name = path.hasPrefix("/") ? String(path.dropFirst()) : path
    var result = "--- \(old == nil ? "/dev/null" : "a/\(name)")\n+++ b/\(name)\n"
    var (oldLine, newLine) = (1, 1)
    var index = 0
    while index < lines.count {
      guard lines[index].mark != " " else {
        (oldLine, newLine) = (oldLine + 1, newLine + 1)
        index += 1
        continue
      }
      let start = max(0, index - context)
      let end = endOfHunk(lines, from: index)
      let hunk = lines[start..<end]
      let lead = index - start
      let counts = (hunk.count { $0.mark != "+" }, hunk.count { $0.mark != "-" })
      // By convention, a side without lines has the number of the line before.
      let starts = (
        oldLine - lead - (counts.0 == 0 ? 1 : 0), newLine - lead - (counts.1 == 0 ? 1 : 0)
      )
      result += "@@ -\(starts.0),\(counts.0) +\(starts.1),\(counts.1) @@\n"
      for line in hunk {
        result += "\(line.mark)\(line.text)\n"
      }
      oldLine += counts.0 - lead
      newLine += counts.1 - lead
      index = end
    }
    return result
  }

  /// The end of the context after the last change that is near enough for the same hunk.
  private static func endOfHunk(_ lines: [Line], from start: Int) -> Int {
    var last = start
    var index = start
    while index < lines.count, index <= last + 2 * context {
      if lines[index].mark != " " { last = index }
      index += 1
    }
    return min(lines.count, last + context + 1)
  }

  private static func split(_ text: String) -> [Substring] {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    if lines.last?.isEmpty == true { lines.removeLast() }
    return lines
  }

  private static func lines(_ old: [Substring], _ new: [Substring]) -> [Line] {
    if old.isEmpty { return new.map { Line(mark: "+", text: $0) } }
    let difference = new.difference(from: old)
    var removed: Set<Int> = []
    var inserted: Set<Int> = []
    for change in difference {
      switch change {
      case .remove(let offset, _, _): removed.insert(offset)
      case .insert(let offset, _, _): inserted.insert(offset)
      }
    }
    var lines: [Line] = []
    var (left, right) = (0, 0)
    while left < old.count || right < new.count {
      if left < old.count, removed.contains(left) {
        lines.append(Line(mark: "-", text: old[left]))
        left += 1
      } else if right < new.count, inserted.contains(right) {
        lines.append(Line(mark: "+", text: new[right]))
        right += 1
      } else {
        lines.append(Line(mark: " ", text: old[left]))
        (left, right) = (left + 1, right + 1)
      }
    }
    return lines
  }
}
