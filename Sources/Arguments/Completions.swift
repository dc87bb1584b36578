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

  let program: Program
  /// A shell command that prints keys with `--keys` and `--starting`, and values with `--values`,
  /// one per line.
  let asking: String

  package init(for program: Program, asking: String) {
    self.program = program
    self.asking = asking
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
    case .zsh: return function(passedName, commands) + described(passedName, commands) + zshEnd
    case .fish: return commands.map { fishParameters(of: $0) }.joined()
    }
  }

  var passedName: String { "_\(program.name)_passed" }
  var ownName: String { "_\(program.name)_own" }
  private var pathsName: String { "_\(program.name)_paths" }
  private var scanName: String { "_\(program.name)_scan" }

  /// The options of a command that are followed by their value.
  static func valued(_ parameters: [ParameterDescription]) -> String {
    parameters.filter { $0.kind == .option }.map { "--\($0.name)" }.joined(separator: " ")
  }
}

// MARK: - Bash

extension Completions {
  func bash() -> String {
    let names = program.commands.map(\.name).joined(separator: " ")
    let own = program.commands.filter { !$0.isPassed }
    let passed = program.commands.filter(\.isPassed).map(\.name).joined(separator: "|")
    var text = """
      _\(program.name)() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} start=
        local place=0 key= socket=
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
    text += "  [[ -z $start ]] || COMPREPLY=(\"${COMPREPLY[@]/#/$start}\")\n}\n"
    text += function(ownName, own)
    text += """
      \(pathsName)() {
        local IFS=$'\\n' PREFIX=$word  # where zsh looks
        COMPREPLY=($(compgen $1 -- "$word"))
        compopt -o filenames 2>/dev/null
      }
      # Counts the arguments before the word, options and their values left out.
      \(scanName)() {
        local i=2
        while ((i < COMP_CWORD)); do
          case ${COMP_WORDS[i]} in
          --socket=*) socket=${COMP_WORDS[i]} ;;
          --*)
            if [[ ${COMP_WORDS[i+1]} == = ]]; then
              [[ ${COMP_WORDS[i]} != --socket ]] || socket=--socket=${COMP_WORDS[i+2]}
              ((i += 2))
            elif [[ " $1 " == *" ${COMP_WORDS[i]} "* ]]; then
              [[ ${COMP_WORDS[i]} != --socket ]] || socket=--socket=${COMP_WORDS[i+1]}
              ((i += 1))
            fi ;;
          -[!0-9.]*) ;;
          *)
            [[ -n $key ]] || key=${COMP_WORDS[i]}
            ((place += 1)) ;;
          esac
          ((i += 1))
        done
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
        case .argument, .optionalArgument, .arguments, .flag: break
        }
      }
      let options = parameters.filter { !$0.isPositional }
      let spellings = (options.flatMap(Self.spellings) + ["--help"]).joined(separator: " ")
      words +=
        "  '\(command.name) -'*) COMPREPLY=($(compgen -W \"\(spellings)\" -- \"$word\")) ;;\n"
      words += arguments(of: command, parameters)
    }
    var text = "\(name)() {\n"
    if !values.isEmpty { text += "  case \"${COMP_WORDS[1]} $before\" in\n\(values)  esac\n" }
    return text + "  case \"${COMP_WORDS[1]} $word\" in\n\(words)  esac\n}\n"
  }

  /// The lines that complete a command's arguments by their place; empty if none has completions.
  private func arguments(
    of command: CommandEntry,
    _ parameters: [ParameterDescription]
  ) -> String {
    let positional = parameters.filter(\.isPositional)
    let replies = positional.map { reply($0.completion) }
    guard replies.contains(where: { !$0.isEmpty }) else { return "" }
    var text = "  '\(command.name) '*)\n    \(scanName) '\(Self.valued(parameters))'\n"
    text += "    case $place in\n"
    for (place, reply) in replies.enumerated() where !reply.isEmpty {
      let pattern = positional[place].kind == .arguments ? "*" : "\(place)"
      text += "    \(pattern)) \(reply) ;;\n"
    }
    return text + "    esac ;;\n"
  }

  /// `--wait --wait=sent --wait=confirmed`.
  static func spellings(_ option: ParameterDescription) -> [String] {
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
    case .keys: keyReply("any")
    case .keysOf(let command): keyReply(command)
    case .values: answerReply(#"--values="$key""#) + withoutSpace
    case .members: answerReply(#"--values="$key/""#) + withoutSpace
    case .commands: wordReply(program.commands.map(\.name))
    case .words(let words): wordReply(words)
    }
  }

  /// NAME= waits for its value, and DEVICE/ for its property.
  private var withoutSpace: String {
    "; [[ ${COMPREPLY[*]} != *[=/] ]] || compopt -o nospace 2>/dev/null"
  }

  /// The keys that start with the word, which `compgen` need not filter: it takes 0.1 s for 40,000.
  private func keyReply(_ keys: String) -> String {
    "COMPREPLY=(\(answer(#"--keys=\#(keys) --starting="$word""#)))" + withoutSpace
  }

  private func answerReply(_ question: String) -> String {
    #"COMPREPLY=($(compgen -W "\#(answer(question))" -- "$word"))"#
  }

  private func answer(_ question: String) -> String {
    #"$(\#(asking) \#(question) ${socket:+"$socket"} 2>/dev/null)"#
  }

  private func wordReply(_ words: [String]) -> String {
    #"COMPREPLY=($(compgen -W "\#(words.joined(separator: " "))" -- "$word"))"#
  }
}

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

/// The script for zsh: that for bash, which zsh can run, with descriptions of commands and options.
extension Completions {
  /// The first line is for a folder in `fpath`.
  func zsh() -> String {
    let passed = program.commands.filter(\.isPassed).map(\.name)
    var text = "#compdef \(program.name)\nautoload -U +X bashcompinit && bashcompinit\n" + bash()
    text += """
      # Offers words, each with its description.
      \(offerName)() {
        local name help width=0
        local -a names shown
        for name help; do ((${#name} <= width)) || width=${#name}; done
        for name help; do
          help="${(r:width:)name}  $help"
          names+=("$name") shown+=("${help[1,COLUMNS-1]}")
        done
        compadd -l -d shown - "${names[@]}"
      }
      \(zshName)() {
        if ((CURRENT == 2)); then
          \(offer(program.commands.map { ($0.name, $0.summary) } + Self.ownOptions))
        elif [[ $PREFIX == -* && $PREFIX != *=* ]]; then
          case ${words[2]} in

      """
    if !passed.isEmpty {
      text += "    \(passed.joined(separator: "|"))) \(passedName)_described ;;\n"
    }
    text += """
          *) \(ownName)_described ;;
          esac
        else
          _bash_complete -F _\(program.name)
        fi
      }

      """
    text += described(ownName, program.commands.filter { !$0.isPassed })
    text += "compdef \(zshName) \(program.name)\n"
    return text + (passed.isEmpty ? zshEnd : "")
  }

  /// The first completion loads the script from such a folder, and the script must answer it too.
  var zshEnd: String { "[[ ${funcstack[1]} == _\(program.name) ]] && \(zshName)\n:\n" }

  /// A function that offers the options of these commands.
  func described(_ name: String, _ commands: [CommandEntry]) -> String {
    var text = "\(name)_described() {\n  case ${words[2]} in\n"
    for command in commands {
      let options = command.details().parameters.filter { !$0.isPositional }.flatMap { option in
        Self.spellings(option).map { ($0, option.help) }
      }
      text += "  \(command.name)) \(offer(options + [("--help", "Show this help.")])) ;;\n"
    }
    return text + "  esac\n}\n"
  }

  private var zshName: String { "_\(program.name)_zsh" }
  private var offerName: String { "_\(program.name)_offer" }

  private static let ownOptions = [
    ("--help", "Show this, or a command's help."), ("--version", "Show the version."),
  ]

  private func offer(_ words: [(name: String, help: String)]) -> String {
    words.reduce(offerName) { text, word in
      "\(text) \(word.name) \(Self.zshQuoted(Self.firstSentence(of: word.help)))"
    }
  }

  /// The sentence up to its full stop, if another follows.
  private static func firstSentence(of help: String) -> String {
    let words = help.split(separator: " ")
    let end = words.firstIndex { $0.hasSuffix(".") } ?? words.endIndex - 1
    return words.prefix(through: max(0, end)).joined(separator: " ")
  }

  private static func zshQuoted(_ text: String) -> String {
    let parts = text.split(separator: "'", omittingEmptySubsequences: false)
    return "'" + parts.joined(separator: #"'\''"#) + "'"
  }
}
