// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Writes manual pages for `man` from the same tables as parsing and help.
package struct ManualPage {
  private var lines: [String] = []

  /// The page of a whole program: `settle(1)`.
  ///
  /// - Parameters:
  ///   - program: The subject of the page.
  ///   - exitCodes: The exit codes and their meanings.
  /// - Returns: The page in the `man` macros of roff.
  package static func text(of program: Program, exitCodes: [(ExitCode, String)]) -> String {
    var page = ManualPage()
    page.head(program.name, program)
    page.name(program.name, program.summary)
    page.synopsis("\(program.name) COMMAND", ["[ARGUMENTS]"])
    page.description(program.discussion)
    for (title, rows) in program.sections {
      page.table(title == "COMMANDS" ? title : "\(title) COMMANDS", rows)
    }
    page.table(
      "OPTIONS",
      [("-h, --help", "Show help, for the program or a command."), ("--version", "The version.")]
    )
    page.table("EXIT STATUS", exitCodes.map { ("\($0.0.rawValue)", $0.1) })
    page.examples(program.examples)
    page.seeAlso(program.commands.map { "\(program.name)-\($0.name)" })
    return page.lines.joined(separator: "\n") + "\n"
  }

  /// The page of one command: `settle-set(1)`.
  package static func text(of command: CommandEntry, in program: Program) -> String {
    let details = command.details()
    let options = details.parameters.filter { !$0.isPositional }
    let arguments = details.parameters.filter(\.isPositional)
    var page = ManualPage()
    page.head("\(program.name)-\(command.name)", program)
    page.name("\(program.name)-\(command.name)", command.summary)
    page.synopsis("\(program.name) \(command.name)", (options + arguments).map(\.usage))
    page.description(details.discussion)
    page.table("ARGUMENTS", arguments.map { ($0.spelling, $0.help) })
    page.table(
      "OPTIONS",
      options.map { ($0.spelling, $0.help) } + [("-h, --help", "Show this.")]
    )
    page.examples(details.examples)
    page.seeAlso([program.name])
    return page.lines.joined(separator: "\n") + "\n"
  }

  // MARK: - Parts

  private mutating func head(_ title: String, _ program: Program) {
    let name = Self.escape(title.uppercased())
    lines.append(".TH \(name) 1 \"\" \"\(program.name) \(Self.escape(program.version))\"")
  }

  private mutating func name(_ name: String, _ summary: String) {
    heading("NAME")
    // Indexes of manual pages have no full stop.
    let sentence = summary.last == "." ? String(summary.dropLast()) : summary
    lines.append("\(Self.escape(name)) \\- \(Self.escape(sentence))")
  }

  private mutating func synopsis(_ command: String, _ parts: [String]) {
    heading("SYNOPSIS")
    lines.append("\\fB\(Self.escape(command))\\fR \(Self.escape(parts.joined(separator: " ")))")
  }

  private mutating func description(_ discussion: String) {
    guard !discussion.isEmpty else { return }
    heading("DESCRIPTION")
    for (number, paragraph) in HelpText.paragraphs(of: discussion).enumerated() {
      if number > 0 { lines.append(".PP") }
      lines.append(Self.escape(paragraph.split(separator: "\n").joined(separator: " ")))
    }
  }

  private mutating func table(_ title: String, _ rows: [(name: String, help: String)]) {
    guard !rows.isEmpty else { return }
    heading(title)
    for row in rows {
      lines.append(".TP")
      lines.append("\\fB\(Self.escape(row.name))\\fR")
      lines.append(Self.escape(row.help))
    }
  }

  private mutating func examples(_ examples: [Example]) {
    guard !examples.isEmpty else { return }
    heading("EXAMPLES")
    for example in examples {
      lines += [".PP", Self.escape(example.meaning), ".PP", ".RS 4", ".EX"]
      lines += [Self.escape(example.line), ".EE", ".RE"]
    }
  }

  private mutating func seeAlso(_ pages: [String]) {
    heading("SEE ALSO")
    lines.append(pages.map { "\\fB\(Self.escape($0))\\fR(1)" }.joined(separator: ", "))
  }

  private mutating func heading(_ title: String) { lines.append(".SH \(Self.escape(title))") }

  /// Escapes text so that roff shows it unchanged.
  private static func escape(_ text: String) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "\\": escaped += "\\e"
      case "-": escaped += "\\-"
      case "'": escaped += "\\(aq"
      case "^": escaped += "\\(ha"
      case "~": escaped += "\\(ti"
      case "`": escaped += "\\(ga"
      default: escaped.append(character)
      }
    }
    // A line that starts with a dot would be a request.
    return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
  }
}

extension ManualPage {
  /// Prints a page: roff in a pipe; on a terminal what man(1) makes of it, or the help without man.
  package static func show(_ page: String, help: String) -> ExitCode {
    guard isatty(STDOUT_FILENO) == 1 else {
      StandardOutput.show(page)
      return .done
    }
    openInMan(page)
    StandardOutput.show(help)
    return .done
  }

  /// Executes man in place of this process, with the page as its input; returns only on failure.
  private static func openInMan(_ page: String) {
    guard let stream = unsafe tmpfile() else { return }
    let file = unsafe fileno(stream)
    let bytes = Array(page.utf8)
    guard unsafe write(file, bytes, bytes.count) == bytes.count,
      lseek(file, 0, SEEK_SET) == 0, dup2(file, STDIN_FILENO) == STDIN_FILENO
    else { return }
    let words = ["man", "-l", "-"]
    var pointers = unsafe words.map { word in unsafe strdup(word) }
    unsafe pointers.append(nil)
    unsafe execvp("man", pointers)
    for index in unsafe pointers.indices { unsafe free(pointers[index]) }
  }
}
