// Settle
// SPDX-License-Identifier: Apache-2.0

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
