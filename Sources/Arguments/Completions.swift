// Settle
// SPDX-License-Identifier: Apache-2.0

/// Writes shell scripts that complete a program's commands, options and values.
///
/// Commands that another program runs are completed by that program's part of the script, which is
/// appended.
package struct Completions: Sendable {
  package enum Shell: String, CaseIterable, ArgumentValue {
    case bash, zsh, fish
  }

  private let program: Program
  /// A shell command that prints the keys, one per line.
  private let listing: String

  package init(for program: Program, listingKeysWith listing: String) {
    self.program = program
    self.listing = listing
  }

  /// The script of the whole program, without the part that another program adds.
  package func script(for shell: Shell) -> String {
    switch shell {
    case .bash: bash()
    case .zsh: zsh()
    case .fish: fish()
    }
  }

  /// The part to append to the script of a program that passes these commands to this one.
  package func part(for shell: Shell, of names: [String]) -> String {
    let commands = program.commands.filter { names.contains($0.name) }
    switch shell {
    case .bash: return function(passedName, commands)
    case .zsh: return function(passedName, commands) + zshEnd
    case .fish: return commands.map { fishParameters(of: $0) }.joined()
    }
  }

  private var passedName: String { "_\(program.name)_passed" }
  private var ownName: String { "_\(program.name)_own" }
  private var pathsName: String { "_\(program.name)_paths" }
}

// MARK: - Bash

extension Completions {
  private func bash() -> String {
    let names = program.commands.map(\.name).joined(separator: " ")
    let own = program.commands.filter { !$0.isPassed }
    let passed = program.commands.filter(\.isPassed).map(\.name).joined(separator: "|")
    var text = """
      _\(program.name)() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} start=
        COMPREPLY=()
        if ((COMP_CWORD == 1)); then
          COMPREPLY=($(compgen -W "\(names) --help --version" -- "$word"))
          return
        fi
        # Where "=" ends a word, as in bash, --name=VALUE is three of them; in zsh it is one.
        if [[ $word == = ]]; then
          before+== word=
        elif [[ $before == = ]]; then
          before=${COMP_WORDS[COMP_CWORD-2]}=
        elif [[ $word == --*=* ]]; then
          start=${word%%=*}= before=$start word=${word#*=}
        fi
        case "${COMP_WORDS[1]}" in

      """
    if !passed.isEmpty { text += "  \(passed)) \(passedName) ;;\n" }
    text += "  *) \(ownName) ;;\n  esac\n"
    text += "  COMPREPLY=(\"${COMPREPLY[@]/#/$start}\")\n}\n"
    text += function(ownName, own)
    text += """
      \(pathsName)() {
        local IFS=$'\\n' PREFIX=$word  # where zsh looks
        COMPREPLY=($(compgen $1 -- "$word"))
        compopt -o filenames 2>/dev/null
      }

      """
    return text + "complete -F _\(program.name) \(program.name)\n"
  }

  /// A shell function that completes these commands; its caller sets `word` and `before`.
  private func function(_ name: String, _ commands: [CommandEntry]) -> String {
    var values = ""
    var words = ""
    for command in commands {
      let parameters = command.details().parameters
      for option in parameters {
        let reply = reply(option.completion)
        let action = reply.isEmpty ? "return" : "\(reply); return"
        let spelled = "'\(command.name) --\(option.name)"
        switch option.kind {
        case .option: values += "  \(spelled)'|\(spelled)=') \(action) ;;\n"
        case .optionalValue: values += "  \(spelled)=') \(action) ;;\n"
        case .argument, .optionalArgument, .flag: break
        }
      }
      let options = parameters.filter { !$0.isPositional }
      let spellings = (options.flatMap(Self.spellings) + ["--help"]).joined(separator: " ")
      words +=
        "  '\(command.name) -'*) COMPREPLY=($(compgen -W \"\(spellings)\" -- \"$word\")) ;;\n"
      let positional = parameters.filter(\.isPositional)
      if let reply = positional.first.map({ reply($0.completion) }), !reply.isEmpty {
        // If others follow, the first is the word after the command or a flag.
        let place =
          positional.count > 1 ? "[[ $before == \(command.name) || $before == -* ]] && " : ""
        words += "  '\(command.name) '*) \(place)\(reply) ;;\n"
      }
    }
    var text = "\(name)() {\n"
    if !values.isEmpty { text += "  case \"${COMP_WORDS[1]} $before\" in\n\(values)  esac\n" }
    return text + "  case \"${COMP_WORDS[1]} $word\" in\n\(words)  esac\n}\n"
  }

  /// `--wait --wait=sent --wait=confirmed`.
  private static func spellings(_ option: ParameterDescription) -> [String] {
    guard case .optionalValue = option.kind, case .words(let words) = option.completion else {
      return ["--\(option.name)"]
    }
    return ["--\(option.name)"] + words.map { "--\(option.name)=\($0)" }
  }

  private func reply(_ completion: ParameterDescription.Completion) -> String {
    switch completion {
    case .none: ""
    case .files: "\(pathsName) -f"
    case .directories: "\(pathsName) -d"
    case .keys: #"COMPREPLY=($(compgen -W "$(\#(listing))" -- "$word"))"#
    case .commands: wordReply(program.commands.map(\.name))
    case .words(let words): wordReply(words)
    }
  }

  private func wordReply(_ words: [String]) -> String {
    #"COMPREPLY=($(compgen -W "\#(words.joined(separator: " "))" -- "$word"))"#
  }
}

// MARK: - Zsh

extension Completions {
  /// The script for bash, which zsh can run; the first line is for a folder in `fpath`.
  private func zsh() -> String {
    let isWhole = !program.commands.contains(where: \.isPassed)
    return "#compdef \(program.name)\nautoload -U +X bashcompinit && bashcompinit\n" + bash()
      + (isWhole ? zshEnd : "")
  }

  /// The first completion loads the script from such a folder, and the script must answer it too.
  private var zshEnd: String {
    "[[ ${funcstack[1]} == _\(program.name) ]] && _bash_complete -F _\(program.name)\n:\n"
  }
}

// MARK: - Fish

extension Completions {
  private func fish() -> String {
    let start = "complete -c \(program.name)"
    var text = "\(start) -f\n\(start) -s h -l help -d 'Show help.'\n"
    text += "\(start) -n __fish_use_subcommand -l version -d 'Show the version.'\n"
    for command in program.commands {
      text += "complete -c \(program.name) -n __fish_use_subcommand -a \(command.name)"
      text += " -d \(Self.quoted(command.summary))\n"
      if !command.isPassed { text += fishParameters(of: command) }
    }
    return text
  }

  private func fishParameters(of command: CommandEntry) -> String {
    var text = ""
    let condition = Self.quoted("__fish_seen_subcommand_from \(command.name)")
    let start = "complete -c \(program.name) -n \(condition)"
    let parameters = command.details().parameters
    let positional = parameters.filter(\.isPositional)
    if let values = positional.first.map({ fishValues($0.completion) }), !values.isEmpty {
      // If others follow, the first is the word after the command or a flag.
      let place =
        positional.count > 1
        ? #"; and string match -qr -- "^(\#(command.name)|-.*)\$" (commandline -opc)[-1]"# : ""
      text += "complete -c \(program.name)"
      text +=
        " -n \(Self.quoted("__fish_seen_subcommand_from \(command.name)\(place)")) \(values)\n"
    }
    for parameter in parameters {
      let values = fishValues(parameter.completion)
      if !parameter.isPositional {
        // -x is -r without files.
        let value = parameter.completion == .files ? " -r" : " -x"
        let needsValue = parameter.kind == .option ? value : ""
        let short = parameter.short.map { " -s \($0)" } ?? ""
        text += "\(start)\(short) -l \(parameter.name)\(needsValue)"
        text += " -d \(Self.quoted(parameter.help))\(values.isEmpty ? "" : " \(values)")\n"
      }
    }
    return text
  }

  private func fishValues(_ completion: ParameterDescription.Completion) -> String {
    switch completion {
    case .none: ""
    case .files: "-F"
    case .directories:
      // The completed text may follow --name=.
      #"-a '(__fish_complete_directories (commandline -ct | string replace -r "^--[^=]*=" ""))'"#
    case .keys: "-a \(Self.quoted("(\(listing))"))"
    case .commands: "-a \(Self.quoted(program.commands.map(\.name).joined(separator: " ")))"
    case .words(let words): "-a \(Self.quoted(words.joined(separator: " ")))"
    }
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
