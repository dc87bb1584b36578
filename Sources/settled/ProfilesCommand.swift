// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Configuration
import JSON
import Values

/// `settle profiles`: the built-in profiles, and what each holds.
struct ProfilesCommand: DaemonCommand {
  static let name = "profiles"
  static let summary = "List the built-in device profiles, or show what one holds."
  static let discussion = """
    A device file uses a profile with "profile: NAME" and overrides whatever differs. Files in \
    the folder "profiles" beside the device files add profiles, or replace built-in ones.

    The columns are separated by tabs in a pipe.
    """
  static let examples = [
    Example("settle profiles", "Which conventions and devices are known?"),
    Example("settle profiles zigbee2mqtt", "Those of one convention."),
    Example("settle profiles zigbee2mqtt/light", "The properties of one, with their topics."),
  ]
  static let parameters: [Parameter<Self>] = [
    .argument(
      "name",
      { $0.profile = $1 },
      isOptional: true,
      completion: .words(ProfileListing.names),
      help:
        "The profile, such as zigbee2mqtt/light; zigbee2mqtt alone lists all of that convention."
    ), .flag("json", { $0.json = true }, help: "Print JSON, one object per line."),
  ]

  var profile = ""
  var json = false

  func run() -> ExitCode {
    guard !profile.isEmpty else {
      list(ProfileListing.all)
      return .done
    }
    guard let entry = ProfileListing.entry(profile) else {
      let prefix = profile.hasSuffix("/") ? profile : profile + "/"
      let related = ProfileListing.all.filter { $0.name.hasPrefix(prefix) }
      guard related.isEmpty else {
        list(related)
        return .done
      }
      let names = ProfileListing.names
      let nearest = Suggestion.nearest(to: profile, in: names)
      let hint = nearest.map { "; did you mean \($0)?" } ?? "; settle profiles lists all"
      complain("there is no profile '\(Excerpt.of(profile))'\(hint)")
      return .badInput
    }
    if json {
      StandardOutput.print(JSONWriter.text(entry.json))
    } else {
      show(entry)
    }
    return .done
  }

  private func list(_ entries: [ProfileListing.Entry]) {
    if json {
      for entry in entries { StandardOutput.print(JSONWriter.text(entry.json)) }
    } else {
      ColumnText.print(entries.map { [$0.name, $0.description ?? Self.summary(of: $0)] })
    }
  }

  private func show(_ entry: ProfileListing.Entry) {
    StandardOutput.print(entry.name)
    if let description = entry.description { StandardOutput.print(description) }
    if let base = entry.base { StandardOutput.print("builds on \(base)") }
    if !entry.parameters.isEmpty {
      StandardOutput.print("parameters: \(entry.parameters.joined(separator: ", "))")
    }
    ColumnText.print(entry.properties.map { [$0.id, $0.type, $0.allowed, $0.command] })
  }

  private static func summary(of entry: ProfileListing.Entry) -> String {
    entry.properties.map(\.id).joined(separator: ", ")
  }
}

/// Rows of text: aligned on a terminal, tab separated in a pipe.
private enum ColumnText {
  static func print(_ rows: [[String]]) {
    guard let room = StandardOutput.columns else {
      for row in rows { StandardOutput.print(row.joined(separator: "\t")) }
      return
    }
    let columns = rows.map(\.count).max() ?? 0
    let widths = (0..<columns).map { column in rows.map { $0[column].count }.max() ?? 0 }
    let margin = widths.dropLast().reduce(0) { $0 + $1 + 2 }
    for row in rows {
      var line = zip(row.dropLast(), widths).map { text, width in
        text + String(repeating: " ", count: max(0, width - text.count) + 2)
      }.joined()
      for part in wrapped(row.last ?? "", room - margin) {
        StandardOutput.print(line + part)
        line = String(repeating: " ", count: margin)
      }
    }
  }

  /// The text in lines of at most `width` characters, but of one word at least.
  private static func wrapped(_ text: String, _ width: Int) -> [String] {
    var lines = [""]
    for word in text.split(separator: " ") {
      let line = lines.count - 1
      if lines[line].isEmpty {
        lines[line] += word
      } else if lines[line].count + word.count < width {
        lines[line] += " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines
  }
}
