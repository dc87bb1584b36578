// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices
import Import
import JSON

extension ImportSource: ArgumentValue {}

extension ImportPlan.File {
  /// What it describes, such as `2 devices, 1 group, 9 properties`.
  var counts: String {
    CountText.text(devices, "device") + ", "
      + (groups > 0 ? CountText.text(groups, "group") + ", " : "")
      + CountText.text(properties, "property", "properties")
  }
}

/// The output of `settle import`: results on standard output, the rest on standard error.
struct ImportReport {
  let json: Bool
  let isDry: Bool

  /// One file: its difference, or what was written.
  func show(_ file: ImportPlan.File) {
    if json {
      print([
        "file": .string(file.path), "source": .string(file.source.rawValue),
        "devices": .integer(Int64(file.devices)), "groups": .integer(Int64(file.groups)),
        "properties": .integer(Int64(file.properties)),
        "changes": .integer(Int64(file.changes.count)),
        "written": .boolean(!isDry && file.isChanged),
      ])
      for change in file.changes {
        print([
          "change": .string(change.kind.rawValue), "path": .string(change.path),
          "file": .string(file.path),
        ])
      }
      return
    }
    let counts = "\(file.path): \(file.counts)"
    if isDry {
      showDifference(file.path, file.old, file.new)
      StandardError.write("\(counts); \(Self.changes(file)); nothing was written")
    } else {
      StandardOutput.print("\(counts); \(Self.changes(file))")
      for change in file.old == nil ? [] : file.changes {
        StandardOutput.print("  \(change.kind.rawValue) \(change.path)")
      }
    }
  }

  /// What was skipped, and why.
  func show(_ diagnostics: [ImportDiagnostic]) {
    if json {
      for diagnostic in diagnostics {
        print([
          "remark": .string(diagnostic.kind.rawValue), "subject": .string(diagnostic.subject),
          "reason": .string(diagnostic.reason),
        ])
      }
      return
    }
    for diagnostic in diagnostics where diagnostic.kind != .diagnostic {
      StandardError.write(
        "\(Self.word(diagnostic.kind)): \(diagnostic.subject): \(diagnostic.reason)"
      )
    }
    let silent = diagnostics.filter { $0.kind == .diagnostic }
    guard !silent.isEmpty else { return }
    var counts: [String: Int] = [:]
    for diagnostic in silent {
      for name in diagnostic.reason.split(separator: ",") {
        counts[String(name.drop { $0 == " " }), default: 0] += 1
      }
    }
    let most = counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
    let shown = most.prefix(8).map { "\($0.key) (\($0.value))" }.joined(separator: ", ")
    let total = counts.values.reduce(0, +)
    StandardError.write(
      "skipped, diagnostic: \(CountText.text(total, "value")) of "
        + "\(CountText.text(silent.count, "device")): \(shown)\(most.count > 8 ? ", …" : "");"
        + " --diagnostic imports those that have a value"
    )
  }

  /// Routes that were added to the settings, or removed where `count` is negative, of `all`.
  func showRoutes(_ path: String, old: [UInt8], new: [UInt8], count: Int, of all: Int) {
    if json {
      print([
        "file": .string(path), "routes": .integer(Int64(count)),
        "written": .boolean(!isDry && count != 0),
      ])
    } else if count == 0 {
      let text = "\(path): nothing new; all \(CountText.text(all, "route")) are there already"
      if isDry { StandardError.write(text) } else { StandardOutput.print(text) }
    } else if isDry {
      showDifference(path, old, new)
      let word = count < 0 ? "to remove" : "to add"
      StandardError.write(
        "\(path): \(CountText.text(abs(count), "route")) \(word); nothing was written"
      )
    } else {
      let word = count < 0 ? "removed" : "added"
      StandardOutput.print("\(path): \(CountText.text(abs(count), "route")) \(word)")
    }
  }

  /// Retained messages that were removed from the broker.
  func showRemoved(_ topics: [String]) {
    if json {
      print(["removed": .integer(Int64(topics.count)), "written": .boolean(!isDry)])
    } else if isDry {
      for topic in topics { StandardOutput.print(topic) }
    } else {
      StandardOutput.print(
        "\(CountText.text(topics.count, "retained message")) removed from the broker"
      )
    }
  }

  /// What the user has to do.
  func advise(_ text: String) {
    if json { print(["advice": .string(text)]) } else { StandardError.write(text) }
  }

  private func showDifference(_ path: String, _ old: [UInt8]?, _ new: [UInt8]) {
    StandardOutput.show(
      UnifiedDiff.text(
        old: old.map { String(decoding: $0, as: UTF8.self) },
        new: String(decoding: new, as: UTF8.self),
        path: path
      )
    )
  }

  private func print(_ members: KeyValuePairs<String, JSONValue>) {
    StandardOutput.print(JSONWriter.text(.object(members)))
  }

  private static func word(_ kind: ImportDiagnostic.Kind) -> String {
    switch kind {
    case .refused: "refused"
    case .diagnostic, .leftOut: "skipped"
    case .partly: "partly imported"
    case .controlsBridge: "warning"
    case .kept: "kept as edited"
    case .gone: "gone"
    }
  }

  private static func changes(_ file: ImportPlan.File) -> String {
    guard file.isChanged else { return "nothing new" }
    let kinds: [ImportChange.Kind] = [.added, .changed, .removed]
    let parts = kinds.compactMap { kind -> String? in
      let count = file.changes.count { $0.kind == kind }
      return count == 0 ? nil : "\(count) \(kind.rawValue)"
    }
    return parts.joined(separator: ", ")
  }
}
