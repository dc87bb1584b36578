// Settle
// SPDX-License-Identifier: Apache-2.0

/// The script for fish.
extension Completions {
  func fish() -> String {
    let start = "complete -c \(program.name)"
    var text = fishFunctions
    text += "\(start) -f\n\(start) -s h -l help -d 'Show help.'\n"
    text += "\(start) -n __fish_use_subcommand -l version -d 'Show the version.'\n"
    for command in program.commands {
      text += "complete -c \(program.name) -n __fish_use_subcommand -a \(command.name)"
      text += " -d \(Self.quoted(command.summary))\n"
      if !command.isPassed { text += fishParameters(of: command) }
    }
    return text
  }

  private var wordsName: String { "__\(program.name)_words" }
  private var socketName: String { "__\(program.name)_socket" }

  /// The functions that read the command line.
  private var fishFunctions: String {
    """
    # Prints the command and its arguments; options and their values, which it gets, are left out.
    function \(wordsName)
      set -l skips no
      for word in (commandline -opc)[2..]
        if test $skips = yes
          set skips no
        else if string match -qr -- '^--[^=]*$' $word
          contains -- $word $argv; and set skips yes
        else if not string match -qr -- '^-[^0-9.]' $word
          echo $word
        end
      end
    end
    function \(socketName)
      set -l before
      for word in (commandline -opc)
        string match -q -- '--socket=*' $word; and echo $word
        test "$before" = --socket; and echo "--socket=$word"
        set before $word
      end
    end

    """
  }

  func fishParameters(of command: CommandEntry) -> String {
    var text = ""
    let condition = Self.quoted("__fish_seen_subcommand_from \(command.name)")
    let start = "complete -c \(program.name) -n \(condition)"
    let parameters = command.details().parameters
    let options = Self.valued(parameters)
    for (place, argument) in parameters.filter(\.isPositional).enumerated() {
      let values = fishValues(argument.completion, options)
      guard !values.isEmpty else { continue }
      let condition =
        "__fish_seen_subcommand_from \(command.name);"
        + " and test (count (\(wordsName) \(options)))"
        + (argument.kind == .arguments ? " -gt \(place)" : " = \(place + 1)")
      text += "complete -c \(program.name) -n \(Self.quoted(condition)) \(values)\n"
    }
    for parameter in parameters where !parameter.isPositional {
      let values = fishValues(parameter.completion, options)
      // -x is -r without files.
      let value = parameter.completion == .files ? " -r" : " -x"
      let needsValue = parameter.kind == .option ? value : ""
      let short = parameter.short.map { " -s \($0)" } ?? ""
      text += "\(start)\(short) -l \(parameter.name)\(needsValue)"
      text += " -d \(Self.quoted(parameter.help))\(values.isEmpty ? "" : " \(values)")\n"
    }
    return text
  }

  /// `options` are the options of the command that are followed by their value.
  private func fishValues(
    _ completion: ParameterDescription.Completion,
    _ options: String
  ) -> String {
    switch completion {
    case .none: ""
    case .files: "-F"
    case .directories:
      "-a '(__fish_complete_directories \(Self.fishWord))'"
    case .keys: fishAnswer("--keys=any --starting=\(Self.fishWord)")
    case .keysOf(let command): fishAnswer("--keys=\(command) --starting=\(Self.fishWord)")
    case .values: fishAnswer("--values=(\(wordsName) \(options))[2]")
    case .members: fishAnswer("--values=(\(wordsName) \(options))[2]/")
    case .commands: "-a \(Self.quoted(program.commands.map(\.name).joined(separator: " ")))"
    case .words(let words): "-a \(Self.quoted(words.joined(separator: " ")))"
    }
  }

  /// The text to complete, which may follow --name=.
  private static let fishWord = #"(commandline -ct | string replace -r "^--[^=]*=" "")"#

  private func fishAnswer(_ question: String) -> String {
    "-a \(Self.quoted("(\(asking) \(question) (\(socketName)) 2>/dev/null)"))"
  }

  private static func quoted(_ text: String) -> String {
    var result = "'"
    for character in text {
      if character == "'" || character == "\\" { result += "\\" }
      result.append(character)
    }
    return result + "'"
  }
}
