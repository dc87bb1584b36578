// Settle
// SPDX-License-Identifier: Apache-2.0

/// Writes shell scripts that complete a program's commands, options and values.
package enum Completions {
  package enum Shell: String, CaseIterable, ArgumentValue {
    case bash, zsh, fish
  }

  /// The script; `listing` is a shell command that prints the keys, one per line.
  package static func script(
    for program: Program,
    shell: Shell,
    listingKeysWith listing: String
  ) -> String {
    switch shell {
    case .bash: bash(program, listing)
    case .zsh: "autoload -U +X bashcompinit && bashcompinit\n" + bash(program, listing)
    case .fish: fish(program, listing)
    }
  }

  private static func bash(_ program: Program, _ listing: String) -> String {
    let names = program.commands.map(\.name).joined(separator: " ")
    var text = """
      _\(program.name)() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
        COMPREPLY=()
        if ((COMP_CWORD == 1)); then
          COMPREPLY=($(compgen -W "\(names) --help --version" -- "$word"))
          return
        fi
        case "${COMP_WORDS[1]} $before" in

      """
    for command in program.commands {
      for option in command.details().parameters where option.kind == .option {
        let values = reply(option.completion, listing)
        text += "  '\(command.name) --\(option.name)')"
        text += values.isEmpty ? " return ;;\n" : " \(values); return ;;\n"
      }
    }
    text += "  esac\n  case \"${COMP_WORDS[1]} $word\" in\n"
    for command in program.commands {
      let options = command.details().parameters.filter { !$0.isPositional }
      let words = (options.flatMap(spellings) + ["--help"]).joined(separator: " ")
      let positional = command.details().parameters.first { $0.isPositional }
      let other = reply(positional?.completion ?? .files, listing)
      text += "  '\(command.name) -'*) COMPREPLY=($(compgen -W \"\(words)\" -- \"$word\")) ;;\n"
      text += "  '\(command.name) '*) \(other) ;;\n"
    }
    return text + "  esac\n}\ncomplete -F _\(program.name) \(program.name)\n"
  }

  /// `--wait --wait=sent --wait=confirmed`.
  private static func spellings(_ option: ParameterDescription) -> [String] {
    guard case .optionalValue = option.kind, case .words(let words) = option.completion else {
      return ["--\(option.name)"]
    }
    return ["--\(option.name)"] + words.map { "--\(option.name)=\($0)" }
  }

  private static func reply(
    _ completion: ParameterDescription.Completion,
    _ listing: String
  ) -> String {
    switch completion {
    case .none: ""
    case .files: #"COMPREPLY=($(compgen -f -- "$word"))"#
    case .directories: #"COMPREPLY=($(compgen -d -- "$word"))"#
    case .keys: #"COMPREPLY=($(compgen -W "$(\#(listing))" -- "$word"))"#
    case .words(let words):
      #"COMPREPLY=($(compgen -W "\#(words.joined(separator: " "))" -- "$word"))"#
    }
  }

  private static func fish(_ program: Program, _ listing: String) -> String {
    var text = "complete -c \(program.name) -f\n"
    for command in program.commands {
      let start = "complete -c \(program.name) -n"
      text += "\(start) __fish_use_subcommand -a \(command.name) -d \(quoted(command.summary))\n"
      let condition = quoted("__fish_seen_subcommand_from \(command.name)")
      for parameter in command.details().parameters {
        let values = fishValues(parameter.completion, listing)
        if parameter.isPositional {
          if !values.isEmpty { text += "\(start) \(condition) \(values)\n" }
        } else {
          let needsValue = parameter.kind == .option ? " -r" : ""
          text += "\(start) \(condition) -l \(parameter.name)\(needsValue)"
          text += " -d \(quoted(parameter.help))\(values.isEmpty ? "" : " \(values)")\n"
        }
      }
    }
    return text
  }

  private static func fishValues(
    _ completion: ParameterDescription.Completion,
    _ listing: String
  ) -> String {
    switch completion {
    case .none: ""
    case .files: "-F"
    case .directories: "-a '(__fish_complete_directories)'"
    case .keys: "-a \(quoted("(\(listing))"))"
    case .words(let words): "-a \(quoted(words.joined(separator: " ")))"
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
