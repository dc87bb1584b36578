// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import Testing

/// Every command line that help, documentation and shipped files show.
enum ExampleCollection {
  /// The project's folder.
  static let root: String = {
    let file = #filePath
    return file.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
      .joined(separator: "/")
  }()

  /// All of them, each line once, with the output that is documented somewhere.
  static func all() throws -> [DocumentedExample] {
    var found: [DocumentedExample] = []
    for example in try fromHelp() + fromDocuments() + fromDevices() {
      if let known = found.firstIndex(where: { $0.line == example.line }) {
        if found[known].output.isEmpty { found[known].output = example.output }
      } else {
        found.append(example)
      }
    }
    return found
  }

  /// The tables of examples that the two programs print.
  static func fromHelp() throws -> [DocumentedExample] {
    try ["settle", "settled"].flatMap { program in
      let calls = [["--help"]] + (try ProgramHelp.commands(of: program).map { [$0, "--help"] })
      return try calls.flatMap { call in
        try ProgramHelp(program, call).examples.map {
          DocumentedExample(place: ([program] + call).joined(separator: " "), line: $0)
        }
      }
    }
  }

  /// The parts of pages whose commands belong together and start with nothing.
  ///
  /// `.ci/check-first-steps` follows them.
  private static let followed = ["First steps", "Set-up on three machines"]

  /// The shell blocks of `README.md`, `CONTRIBUTING.md` and `docs`, without those parts.
  static func fromDocuments() throws -> [DocumentedExample] {
    try documents().flatMap { name in
      var text = try text(of: name)
      for heading in followed {
        guard let steps = text.firstRange(of: "\n## \(heading)\n") else { continue }
        let end = text[steps.upperBound...].firstRange(of: "\n## ")?.lowerBound ?? text.endIndex
        // The lines of other examples keep their numbers.
        let lines = text[steps.lowerBound..<end].filter { $0 == "\n" }
        text.replaceSubrange(steps.lowerBound..<end, with: lines)
      }
      return examples(inDocument: name, text: text)
    }
  }

  /// What people read, by its path in the project.
  static func documents() throws -> [String] {
    try ["README.md", "CONTRIBUTING.md"] + files(in: "docs", ending: ".md")
  }

  /// The comments of the shipped device files.
  static func fromDevices() throws -> [DocumentedExample] {
    try files(in: "docs/examples/devices", ending: ".yaml").flatMap { name in
      try text(of: name).split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        .filter { $0.element.hasPrefix("#   settle ") }
        .map {
          DocumentedExample(place: "\(name):\($0.offset + 1)", line: "\($0.element.dropFirst(4))")
        }
    }
  }

  static func text(of name: String) throws -> String {
    try #require(TextFile.read("\(root)/\(name)"), "\(name) cannot be read")
  }

  /// The commands in the blocks that are marked `sh` or `console`.
  static func examples(inDocument name: String, text: String) -> [DocumentedExample] {
    var found: [DocumentedExample] = []
    var block: (mark: Substring, first: Int, lines: [String])?
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      guard line.hasPrefix("```") else {
        block?.lines.append(String(line))
        continue
      }
      guard let ended = block else {
        block = (line.dropFirst(3), index + 2, [])
        continue
      }
      let start = (name: name, line: ended.first)
      switch ended.mark {
      case "sh", "bash", "shell": found += script(ended.lines, at: start)
      case "console": found += session(ended.lines, at: start)
      default: break
      }
      block = nil
    }
    return found
  }

  /// Lines that are commands; an open quotation or here-document takes further lines in.
  private static func script(
    _ lines: [String],
    at start: (name: String, line: Int)
  ) -> [DocumentedExample] {
    lines.enumerated().compactMap { index, line in
      // What stands behind two blanks and a number sign is a comment.
      let end = line.firstRange(of: "  #")?.lowerBound ?? line.endIndex
      var command = String(line[..<end])
      while command.last == " " { command.removeLast() }
      guard !command.isEmpty, !command.hasPrefix("#") else { return nil }
      return DocumentedExample(place: "\(start.name):\(start.line + index)", line: command)
    }
  }

  /// Lines behind a prompt, each with the output under it.
  private static func session(
    _ lines: [String],
    at start: (name: String, line: Int)
  ) -> [DocumentedExample] {
    var found: [DocumentedExample] = []
    var ending: String?
    for (index, line) in lines.enumerated() {
      if let mark = ending {
        found[found.count - 1].line += "\n" + line
        if line == mark { ending = nil }
      } else if line.hasPrefix("$ ") {
        let command = script([String(line.dropFirst(2))], at: (start.name, start.line + index))
        found += command
        if let here = line.firstRange(of: "<<'") {
          ending = String(line[here.upperBound...].prefix { $0 != "'" })
        }
      } else if !found.isEmpty {
        found[found.count - 1].output.append(line)
      }
    }
    return found
  }

  private static func files(in folder: String, ending: String) throws -> [String] {
    guard let directory = unsafe opendir("\(root)/\(folder)") else {
      throw GatewayProcess.Failure(description: "no folder \(folder)")
    }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
      if name.hasSuffix(ending) { names.append("\(folder)/\(name)") }
    }
    return names.sorted()
  }
}
