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

  private static let program = Program(
    name: "tool",
    version: "1.2.3",
    summary: "A tool.",
    commands: [CommandEntry(Send.self) { _ in .done }]
  )

  private static let bash = #"""
    _tool() {
      local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
      COMPREPLY=()
      if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "send --help --version" -- "$word"))
        return
      fi
      case "${COMP_WORDS[1]} $before" in
      'send --socket') COMPREPLY=($(compgen -f -- "$word")); return ;;
      'send --count') return ;;
      esac
      case "${COMP_WORDS[1]} $word" in
      'send -'*) COMPREPLY=($(compgen -W "--wait --wait=sent --wait=confirmed --socket --count --json --help" -- "$word")) ;;
      'send '*) COMPREPLY=($(compgen -W "$(keys)" -- "$word")) ;;
      esac
    }
    complete -F _tool tool

    """#

  @Test(arguments: [
    (Completions.Shell.bash, bash),
    (.zsh, "autoload -U +X bashcompinit && bashcompinit\n" + bash),
    (
      .fish,
      #"""
      complete -c tool -f
      complete -c tool -n __fish_use_subcommand -a send -d 'Send it, don\'t wait.'
      complete -c tool -n '__fish_seen_subcommand_from send' -a '(keys)'
      complete -c tool -n '__fish_seen_subcommand_from send' -l wait -d 'Wait.' -a 'sent confirmed'
      complete -c tool -n '__fish_seen_subcommand_from send' -l socket -r -d 'The socket.' -F
      complete -c tool -n '__fish_seen_subcommand_from send' -l count -r -d 'How often.'
      complete -c tool -n '__fish_seen_subcommand_from send' -l json -d 'JSON.'

      """#
    ),
  ])
  func `completion comes from the table of parameters`(shell: Completions.Shell, script: String) {
    #expect(
      Completions.script(for: Self.program, shell: shell, listingKeysWith: "keys") == script
    )
  }
}
