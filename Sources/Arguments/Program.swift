// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Values

/// A program with commands: reads its command line, and writes its help.
package struct Program: Sendable {
  package let name: String
  package let version: String
  package let summary: String
  package let discussion: String
  package let examples: [Example]
  package let commands: [CommandEntry]

  package init(
    name: String,
    version: String,
    summary: String,
    discussion: String = "",
    examples: [Example] = [],
    commands: [CommandEntry]
  ) {
    self.name = name
    self.version = version
    self.summary = summary
    self.discussion = discussion
    self.examples = examples
    self.commands = commands
  }

  /// Parses the arguments after the program's name, without running or printing anything.
  ///
  /// - Throws: The first mistake, with a suggestion if a known word is similar.
  package func parse(_ arguments: [String]) throws(UsageError) -> Invocation {
    guard let first = arguments.first else {
      throw UsageError(path: name, message: "a command is missing")
    }
    switch first {
    case "--help", "-h": return .help(help)
    case "--version": return .version
    case "help": return try parseHelp(Array(arguments.dropFirst()))
    default: break
    }
    let entry = try command(first)
    let path = "\(name) \(entry.name)"
    return try entry.read(path, Array(arguments.dropFirst())) ?? .help(help(of: entry))
  }

  /// `help` and `help COMMAND`.
  private func parseHelp(_ arguments: [String]) throws(UsageError) -> Invocation {
    guard let word = arguments.first else { return .help(help) }
    let entry = try command(word)
    return try entry.read("\(name) \(entry.name)", ["--help"]) ?? .help(help(of: entry))
  }

  /// The command with this name; `path` is what was called, for the error message.
  ///
  /// - Throws: If there is none, with the most similar command or a list of all.
  package func command(
    _ word: String,
    calledAs path: String? = nil
  ) throws(UsageError) -> CommandEntry {
    if let entry = commands.first(where: { $0.name == word }) { return entry }
    if word.hasPrefix("-") {
      throw UsageError(
        path: path ?? name,
        message: #"unknown option "\#(Excerpt.of(word))"; options follow the command"#
      )
    }
    throw UsageError(
      path: path ?? name,
      message: #"unknown command "\#(Excerpt.of(word))""# + hint(for: word)
    )
  }

  /// The most similar command, otherwise all commands.
  private func hint(for word: String) -> String {
    let names = commands.map(\.name)
    guard let meant = Suggestion.nearest(to: word, in: names) else {
      return "; there are \(names.joined(separator: ", "))"
    }
    return Suggestion.question(meant)
  }

  /// The names and summaries of the commands under each heading, in the order of the commands.
  var sections: [(title: String, rows: [(name: String, help: String)])] {
    var found: [(title: String, rows: [(name: String, help: String)])] = []
    for command in commands {
      let row = (name: command.name, help: command.summary)
      if let place = found.firstIndex(where: { $0.title == command.section }) {
        found[place].rows.append(row)
      } else {
        found.append((title: command.section, rows: [row]))
      }
    }
    return found
  }

  /// The help of the whole program.
  package var help: String {
    var text = HelpText()
    text.paragraph("OVERVIEW", summary)
    text.paragraphs(discussion)
    text.usage(name, ["COMMAND", "[ARGUMENTS]"])
    for section in sections { text.table(section.title, section.rows) }
    text.table(
      "OPTIONS",
      [("-h, --help", "Show this, or a command's help."), ("--version", "Show the version.")]
    )
    text.examples(examples)
    return text.text
  }

  /// The help of one command.
  package func help(of command: CommandEntry) -> String {
    var text = HelpText()
    let details = command.details()
    let options = details.parameters.filter { !$0.isPositional }
    let arguments = details.parameters.filter(\.isPositional)
    text.paragraph("OVERVIEW", command.summary)
    text.paragraphs(details.discussion)
    text.usage("\(name) \(command.name)", (options + arguments).map(\.usage))
    text.table("ARGUMENTS", arguments.map { ($0.spelling, $0.help) })
    text.table(
      "OPTIONS",
      options.map { ($0.spelling, $0.help) } + [("-h, --help", "Show this help.")]
    )
    text.examples(details.examples)
    return text.text
  }
}

extension Program {
  /// Parses the process's command line, runs the command, and ends the process.
  ///
  /// Help and version go to standard output; a mistake goes to standard error, with exit code 64.
  package func main() -> Never {
    StandardStreams.openMissing()
    exit(run(Array(CommandLine.arguments.dropFirst())).rawValue)
  }

  private func run(_ arguments: [String]) -> ExitCode {
    guard !arguments.isEmpty else {
      // As git does: the commands, and the exit code of a mistake.
      StandardOutput.show(help)
      return .usage
    }
    do throws(UsageError) {
      switch try parse(arguments) {
      case .help(let text): StandardOutput.print(String(text.dropLast()))
      case .version: StandardOutput.print("\(name) \(version)")
      case .run(let run): return run()
      }
      return .done
    } catch {
      StandardError.write(error.description)
      return .usage
    }
  }
}

/// Standard output, for results; unbuffered.
package enum StandardOutput {
  /// The columns of the terminal; `nil` where standard output is none, or does not report them.
  package static var columns: Int? {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 else { return nil }
    return size.ws_col > 0 ? Int(size.ws_col) : nil
  }

  /// Writes one line.
  package static func print(_ line: String) { write(Array((line + "\n").utf8)) }

  /// Writes one line of bytes.
  package static func print(bytes: [UInt8]) { write(bytes + [0x0A]) }

  /// Writes text without a line break.
  package static func show(_ text: String) { write(Array(text.utf8)) }

  /// Writes bytes; ends the process if that fails.
  package static func write(_ bytes: [UInt8]) {
    guard Descriptor.write(bytes, to: STDOUT_FILENO) else {
      exit(ExitCode.failed.rawValue)  // The disk is full, or the reader has closed the pipe.
    }
  }
}

/// Standard error, for messages beside the results.
package enum StandardError {
  /// Writes one line; a failure is ignored.
  package static func write(_ line: String) {
    show(line + "\n")
  }

  /// Writes text without a line break, such as a progress line.
  package static func show(_ text: String) {
    _ = Descriptor.write(Array(text.utf8), to: STDERR_FILENO)
  }
}

/// The three standard streams together.
package enum StandardStreams {
  /// Opens `/dev/null` in place of each standard stream that is closed.
  ///
  /// Otherwise the next descriptor, such as a socket, would get its number and receive what is
  /// written to it. Call it before anything else opens a descriptor.
  package static func openMissing() {
    for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
      // The lowest free number is the missing one.
      _ = unsafe open("/dev/null", O_RDWR)
    }
  }
}

private enum Descriptor {
  /// Writes all of `bytes`; `false` if that is not possible.
  static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
    var written = 0
    while written < bytes.count {
      let count = unsafe bytes[written...].withUnsafeBytes { buffer in
        unsafe Glibc.write(descriptor, buffer.baseAddress, buffer.count)
      }
      if count >= 0 {
        written += count
      } else if errno != EINTR {
        return false
      }
    }
    return true
  }
}

/// Lays out help for 80 columns.
struct HelpText {
  private static let width = 80
  private(set) var text = ""

  /// A heading followed by a sentence.
  mutating func paragraph(_ heading: String, _ sentence: String) {
    append(Self.wrap("\(heading): \(sentence)", indent: 0))
  }

  /// Paragraphs, separated by an empty line; each paragraph is wrapped to the width.
  mutating func paragraphs(_ discussion: String) {
    for paragraph in Self.paragraphs(of: discussion) {
      separate()
      append(Self.wrap(paragraph, indent: 0))
    }
  }

  /// The paragraphs of `text`, which empty lines separate.
  static func paragraphs(of text: String) -> [String] {
    text.split(separator: Character("\n"), omittingEmptySubsequences: false)
      .split(whereSeparator: \.isEmpty)
      .map { $0.joined(separator: "\n") }
  }

  mutating func usage(_ command: String, _ parts: [String]) {
    separate()
    var line = "USAGE: \(command)"
    let indent = line.count
    for part in parts {
      // Parts are not split, so an option stays beside its value.
      if line.count + 1 + part.count > Self.width, line.count > indent {
        text += line + "\n"
        line = String(repeating: " ", count: indent)
      }
      line += " " + part
    }
    text += line + "\n"
  }

  mutating func table(_ heading: String, _ rows: [(name: String, help: String)]) {
    guard !rows.isEmpty else { return }
    separate()
    text += "\(heading):\n"
    let column = min(26, 4 + (rows.map(\.name.count).max() ?? 0))
    for row in rows {
      let start = "  \(row.name)"
      let lines = Self.wrap(row.help, indent: column)
      if start.count + 2 > column {
        text += start + "\n"
        append(lines)
      } else {
        append([start + (lines.first?.dropFirst(start.count) ?? "")] + lines.dropFirst())
      }
    }
  }

  mutating func examples(_ examples: [Example]) {
    guard !examples.isEmpty else { return }
    separate()
    text += "EXAMPLES:\n"
    for example in examples {
      text += "  \(example.line)\n"
      append(Self.wrap(example.meaning, indent: 6))
    }
  }

  private mutating func separate() { if !text.isEmpty { text += "\n" } }

  private mutating func append(_ lines: [String]) {
    for line in lines { text += line + "\n" }
  }

  /// The words of `text` in lines that start with `indent` spaces.
  private static func wrap(_ text: String, indent: Int) -> [String] {
    var lines: [String] = []
    var line = String(repeating: " ", count: indent)
    var isEmpty = true
    for word in text.split(whereSeparator: \.isWhitespace) {
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = String(repeating: " ", count: indent)
        isEmpty = true
      }
      line += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines + [line]
  }
}
