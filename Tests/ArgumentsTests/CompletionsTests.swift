// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Testing

struct CompletionsTests {
  private struct Send: Command {
    static let name = "send"
    static let summary = "Send it, don't wait."
    static let parameters: [Parameter<Self>] = [
      .argument("key", \.key, completion: .keys, help: "The key."),
      .option(
        "wait",
        \.wait,
        value: "PHASE",
        alone: "sent",
        completion: .words(["sent", "confirmed"]),
        help: "Wait."
      ),
      .option("socket", \.socket, value: "PATH", completion: .files, help: "The socket."),
      .option("count", \.count, value: "N", help: "How often."),
      .flag("json", \.json, help: "JSON."),
    ]
    var key = ""
    var wait = ""
    var socket = ""
    var count = 0
    var json = false
  }

  private struct Serve: Command {
    static let name = "serve"
    static let summary = "Serve."
    static let parameters: [Parameter<Self>] = [
      .option("config", \.config, value: "FILE", completion: .files, help: "Settings."),
      .flag("verbose", short: "v", \.isVerbose, help: "Talk."),
    ]
    var config = ""
    var isVerbose = false
  }

  private static let whole = Program(
    name: "tool",
    version: "1.2.3",
    summary: "A tool.",
    commands: [CommandEntry(Send.self) { _ in .done }]
  )

  /// As `whole`, with a command that another program does.
  private static let front = Program(
    name: "tool",
    version: "1.2.3",
    summary: "A tool.",
    commands: whole.commands + [CommandEntry(passing: "serve", summary: "Serve.") { _ in .done }]
  )

  private static let back = Program(
    name: "tool",
    version: "1.2.3",
    summary: "Does it.",
    commands: whole.commands + [CommandEntry(Serve.self) { _ in .done }]
  )

  private static func bash(names: String, passed: String = "") -> String {
    #"""
    _tool() {
      local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} start=
      COMPREPLY=()
      if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "\#(names) --help --version" -- "$word"))
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
    \#(passed)  *) _tool_own ;;
      esac
      COMPREPLY=("${COMPREPLY[@]/#/$start}")
    }
    _tool_own() {
      case "${COMP_WORDS[1]} $before" in
      'send --wait=') COMPREPLY=($(compgen -W "sent confirmed" -- "$word")); return ;;
      'send --socket'|'send --socket=') _tool_paths -f; return ;;
      'send --count'|'send --count=') return ;;
      esac
      case "${COMP_WORDS[1]} $word" in
      'send -'*) COMPREPLY=($(compgen -W "--wait --wait=sent --wait=confirmed --socket --count --json --help" -- "$word")) ;;
      'send '*) COMPREPLY=($(compgen -W "$(keys)" -- "$word")) ;;
      esac
    }
    _tool_paths() {
      local IFS=$'\n' PREFIX=$word  # where zsh looks
      COMPREPLY=($(compgen $1 -- "$word"))
      compopt -o filenames 2>/dev/null
    }
    complete -F _tool tool

    """#
  }

  private static let part = #"""
    _tool_passed() {
      case "${COMP_WORDS[1]} $before" in
      'serve --config'|'serve --config=') _tool_paths -f; return ;;
      esac
      case "${COMP_WORDS[1]} $word" in
      'serve -'*) COMPREPLY=($(compgen -W "--config --verbose --help" -- "$word")) ;;
      esac
    }

    """#

  private static let zshStart = "#compdef tool\nautoload -U +X bashcompinit && bashcompinit\n"
  private static let zshEnd = "[[ ${funcstack[1]} == _tool ]] && _bash_complete -F _tool\n:\n"

  private static let fish = #"""
    complete -c tool -f
    complete -c tool -s h -l help -d 'Show help.'
    complete -c tool -n __fish_use_subcommand -l version -d 'Show the version.'
    complete -c tool -n __fish_use_subcommand -a send -d 'Send it, don\'t wait.'
    complete -c tool -n '__fish_seen_subcommand_from send' -a '(keys)'
    complete -c tool -n '__fish_seen_subcommand_from send' -l wait -d 'Wait.' -a 'sent confirmed'
    complete -c tool -n '__fish_seen_subcommand_from send' -l socket -r -d 'The socket.' -F
    complete -c tool -n '__fish_seen_subcommand_from send' -l count -x -d 'How often.'
    complete -c tool -n '__fish_seen_subcommand_from send' -l json -d 'JSON.'

    """#

  @Test(arguments: [
    (Completions.Shell.bash, bash(names: "send")),
    (.zsh, zshStart + bash(names: "send") + zshEnd),
    (.fish, fish),
  ])
  func `completion is generated from the table of parameters`(
    shell: Completions.Shell,
    script: String
  ) {
    #expect(Completions(for: Self.whole, listingKeysWith: "keys").script(for: shell) == script)
  }

  @Test(arguments: [
    (Completions.Shell.bash, bash(names: "send serve", passed: "  serve) _tool_passed ;;\n"), part),
    (
      .zsh, zshStart + bash(names: "send serve", passed: "  serve) _tool_passed ;;\n"),
      part + zshEnd
    ),
    (
      .fish, fish + "complete -c tool -n __fish_use_subcommand -a serve -d 'Serve.'\n",
      #"""
      complete -c tool -n '__fish_seen_subcommand_from serve' -l config -r -d 'Settings.' -F
      complete -c tool -n '__fish_seen_subcommand_from serve' -s v -l verbose -d 'Talk.'

      """#
    ),
  ])
  func `a command that another program does is completed by that program's part`(
    shell: Completions.Shell,
    script: String,
    part: String
  ) {
    let front = Completions(for: Self.front, listingKeysWith: "keys")
    let back = Completions(for: Self.back, listingKeysWith: ":")
    #expect(front.script(for: shell) == script)
    #expect(back.part(for: shell, of: ["serve"]) == part)
  }
}
