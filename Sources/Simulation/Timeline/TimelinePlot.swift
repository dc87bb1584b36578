// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import JSON
package import LastOut

/// Draws changes and commands over time, one pair of lines for each key on a common axis.
///
/// Keys appear in the order of their first change. The plot stores the time of every change, so its
/// memory grows with the input.
package struct TimelinePlot: Sendable {
  /// The changes and commands of one key.
  private struct Track {
    let key: String
    var changes: [Moment] = []
    var runs: [TimelineRun] = []
  }

  /// The maximum length of a label; longer ones are cut.
  static let labelLimit = 32

  private var tracks: [Track] = []
  private var indices: [String: Int] = [:]

  package mutating func recordChange(of key: String, at moment: Moment) {
    tracks[index(of: key)].changes.append(moment)
  }

  package mutating func record(_ run: TimelineRun) {
    tracks[index(of: run.key)].runs.append(run)
  }

  private mutating func index(of key: String) -> Int {
    if let index = indices[key] { return index }
    indices[key] = tracks.count
    tracks.append(Track(key: key))
    return tracks.count - 1
  }

  /// Draws the plot `width` columns wide, or wider if the axis would have less than twenty.
  package func text(width: Int, marks: Marks = .unicode) -> String {
    let moments = tracks.flatMap { $0.changes + $0.runs.map(\.at) }
    guard let start = moments.min(), let end = moments.max() else { return "" }
    let label = min(tracks.map(\.key.count).max() ?? 0, Self.labelLimit)
    let columns = max(20, width - label - 2)
    let axis = TimelineAxis(start: start, end: end, columns: columns)
    let most = tracks.map { axis.counts($0.changes).max() ?? 0 }.max() ?? 0
    let indent = String(repeating: " ", count: label) + "  "
    var lines = [indent + axis.scale]
    for track in tracks {
      lines.append("")
      let bars = axis.counts(track.changes).map { marks.bar($0, of: most) }
      lines.append(marks.padded(track.key, to: label) + "  " + String(bars))
      let dots = axis.counts(track.runs.map(\.at)).map { $0 > 0 ? marks.command : " " }
      lines.append(indent + String(dots))
      lines.append(indent + marks.shown(summary(of: track)))
    }
    return lines.map { Self.trimmed($0) + "\n" }.joined()
  }

  private func summary(of track: Track) -> String {
    let changes = CountText.text(track.changes.count, "change")
    let counts = "\(changes) in, \(CountText.text(track.runs.count, "command")) out"
    guard let last = track.runs.last else { return counts }
    return counts + ", the last \(last.valueText) at \(TimelineAxis.text(last.at))"
  }

  static func trimmed(_ line: String) -> Substring {
    var line = line[...]
    while line.last == " " { line.removeLast() }
    return line
  }
}

extension TimelinePlot {
  /// The marks that a terminal can show.
  package struct Marks: Sendable {
    /// No change, and then more and more of them.
    let bars: [Character]
    let command: Character
    let ellipsis: Character
    let isASCII: Bool

    /// For terminals whose locale is UTF-8.
    package static let unicode = Marks(
      bars: Array(" ▁▂▃▄▅▆▇█"),
      command: "●",
      ellipsis: "…",
      isASCII: false
    )
    /// For all other terminals.
    package static let ascii = Marks(
      bars: Array(" .:-=+*#@"),
      command: "o",
      ellipsis: "~",
      isASCII: true
    )

    func bar(_ count: Int, of most: Int) -> Character {
      guard count > 0, most > 0 else { return bars[0] }
      return bars[max(1, (count * (bars.count - 1) + most - 1) / most)]
    }

    /// `text`, cut or filled up to `count` characters.
    func padded(_ text: String, to count: Int) -> String {
      let text = shown(text)
      return text.count > count
        ? text.prefix(max(0, count - 1)) + String(ellipsis)
        : text + String(repeating: " ", count: count - text.count)
    }

    /// `text` with `?` for what cannot be shown.
    func shown(_ text: String) -> String {
      isASCII ? String(text.map { $0.isASCII ? $0 : "?" }) : text
    }
  }
}

/// The time axis of a plot, which maps moments to columns.
struct TimelineAxis {
  let start: Moment
  let end: Moment
  let columns: Int

  /// The number of `moments` in each column.
  func counts(_ moments: [Moment]) -> [Int] {
    var counts = [Int](repeating: 0, count: columns)
    let span = Double(max(1, end.nanoseconds - start.nanoseconds))
    for moment in moments {
      let share = Double(moment.nanoseconds - start.nanoseconds) / span
      counts[min(columns - 1, Int(share * Double(columns - 1)))] += 1
    }
    return counts
  }

  /// The labels of the first and the last moment.
  var scale: String {
    let (left, right) = (Self.text(start), Self.text(end))
    let gap = max(1, columns - left.count - right.count)
    return left + String(repeating: " ", count: gap) + right
  }

  /// `300 ms`, or `2.25 s` from a second on.
  static func text(_ moment: Moment) -> String {
    let milliseconds = Double(moment.nanoseconds / 10_000) / 100
    let (number, unit) = milliseconds < 1000 ? (milliseconds, "ms") : (milliseconds / 1000, "s")
    let rounded = (number * 100).rounded() / 100
    let whole = Int64(rounded)
    return (rounded == Double(whole) ? "\(whole)" : "\(rounded)") + " " + unit
  }
}

/// One value that the queue released on the virtual clock.
package struct TimelineRun: Hashable, Sendable {
  package var at: Moment
  package var key: String
  package var value: JSONValue
  /// The number of changes that were replaced since the key's last run or cancellation.
  package var collapsed: Int

  /// The value as JSON text.
  var valueText: String { JSONWriter.text(value) }

  /// Appends the run as one line: `{"at":300,"key":"…","value":40,"collapsed":2}`, `at` in
  /// milliseconds.
  package func appendLine(to output: inout [UInt8]) {
    output.append(contentsOf: "{\"at\":".utf8)
    let (milliseconds, rest) = at.nanoseconds.quotientAndRemainder(dividingBy: 1_000_000)
    if rest == 0 {
      output.append(contentsOf: String(milliseconds).utf8)
    } else {
      JSONWriter.appendNumber(Double(at.nanoseconds) / 1_000_000, to: &output)
    }
    output.append(contentsOf: ",\"key\":".utf8)
    JSONWriter.appendString(key, to: &output)
    output.append(contentsOf: ",\"value\":".utf8)
    JSONWriter.append(value, to: &output)
    output.append(contentsOf: ",\"collapsed\":".utf8)
    output.append(contentsOf: String(collapsed).utf8)
    output.append(contentsOf: "}\n".utf8)
  }
}
