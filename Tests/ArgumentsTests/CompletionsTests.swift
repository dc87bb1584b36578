// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Testing

struct CompletionsTests {
  private struct Send: Command {
    static let name = "send"
    static let summary = "Send it, don't wait."
    static let parameters: [Parameter<Self>] = [
      .argument("key", { $0.key = $1 }, completion: .keys, help: "The key."),
      .argument("value", { $0.value = $1 }, completion: .values, help: "The value."),
      .option(
        "wait",
        { $0.wait = $1 },
        value: "PHASE",
        alone: "sent",
        completion: .words(["sent", "confirmed"]),
        help: "Wait."
      ),
      .option("socket", { $0.socket = $1 }, value: "PATH", completion: .files, help: "The socket."),
      .option("count", { $0.count = $1 }, value: "N", help: "How often."),
      .flag("json", { $0.json = true }, help: "JSON."),
    ]
    var key = ""
    var value = ""
    var wait = ""
    var socket = ""
    var count = 0
    var json = false
  }

  private struct Serve: Command {
    static let name = "serve"
    static let summary = "Serve."
    static let parameters: [Parameter<Self>] = [
      .option("config", { $0.config = $1 }, value: "FILE", completion: .files, help: "Settings."),
      .flag("verbose", short: "v", { $0.isVerbose = true }, help: "Talk."),
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
      local place=0 key= socket=
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
      [[ -z $start ]] || COMPREPLY=("${COMPREPLY[@]/#/$start}")
    }
    _tool_own() {
      case "${COMP_WORDS[1]} $before" in
      'send --wait=') COMPREPLY=($(compgen -W "sent confirmed" -- "$word")); return ;;
      'send --socket'|'send --socket=') _tool_paths -f; return ;;
      'send --count'|'send --count=') return ;;
      esac
      case "${COMP_WORDS[1]} $word" in
      'send -'*) COMPREPLY=($(compgen -W "--wait --wait=sent --wait=confirmed --socket --count --json --help" -- "$word")) ;;
      'send '*)
        _tool_scan '--socket --count'
        case $place in
        0) COMPREPLY=($(ask --keys=any --starting="$word" ${socket:+"$socket"} 2>/dev/null)); [[ ${COMPREPLY[*]} != *[=/] ]] || compopt -o nospace 2>/dev/null ;;
        1) COMPREPLY=($(compgen -W "$(ask --values="$key" ${socket:+"$socket"} 2>/dev/null)" -- "$word")); [[ ${COMPREPLY[*]} != *[=/] ]] || compopt -o nospace 2>/dev/null ;;
        esac ;;
      esac
    }
    _tool_paths() {
      local IFS=$'\n' PREFIX=$word  # where zsh looks
      COMPREPLY=($(compgen $1 -- "$word"))
      compopt -o filenames 2>/dev/null
    }
    # Counts the arguments before the word, options and their values left out.
    _tool_scan() {
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

  private static let offer = #"""
    # Offers words, each with its description.
    _tool_offer() {
      local name help width=0
      local -a names shown
      for name help; do ((${#name} <= width)) || width=${#name}; done
      for name help; do
        help="${(r:width:)name}  $help"
        names+=("$name") shown+=("${help[1,COLUMNS-1]}")
      done
      compadd -l -d shown - "${names[@]}"
    }

    """#

  /// What zsh's script has beside that of bash.
  private static func zsh(more: String = "", passed: String = "") -> String {
    offer + #"""
      _tool_zsh() {
        if ((CURRENT == 2)); then
          _tool_offer send 'Send it, don'\''t wait.'\#(more) --help 'Show this, or a command'\''s help.' --version 'Show the version.'
        elif [[ $PREFIX == -* && $PREFIX != *=* ]]; then
          case ${words[2]} in
      \#(passed)    *) _tool_own_described ;;
          esac
        else
          _bash_complete -F _tool
        fi
      }
      _tool_own_described() {
        case ${words[2]} in
        send) _tool_offer --wait 'Wait.' --wait=sent 'Wait.' --wait=confirmed 'Wait.' --socket 'The socket.' --count 'How often.' --json 'JSON.' --help 'Show this help.' ;;
        esac
      }
      compdef _tool_zsh tool

      """#
  }

  private static let zshPart = #"""
    _tool_passed_described() {
      case ${words[2]} in
      serve) _tool_offer --config 'Settings.' --verbose 'Talk.' --help 'Show this help.' ;;
      esac
    }

    """#

  private static let zshStart = "#compdef tool\nautoload -U +X bashcompinit && bashcompinit\n"
  private static let zshEnd = "[[ ${funcstack[1]} == _tool ]] && _tool_zsh\n:\n"

  private static let fish = #"""
    # Prints the command and its arguments; options and their values, which it gets, are left out.
    function __tool_words
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
    function __tool_socket
      set -l before
      for word in (commandline -opc)
        string match -q -- '--socket=*' $word; and echo $word
        test "$before" = --socket; and echo "--socket=$word"
        set before $word
      end
    end
    complete -c tool -f
    complete -c tool -s h -l help -d 'Show help.'
    complete -c tool -n __fish_use_subcommand -l version -d 'Show the version.'
    complete -c tool -n __fish_use_subcommand -a send -d 'Send it, don\'t wait.'
    complete -c tool -n '__fish_seen_subcommand_from send; and test (count (__tool_words --socket --count)) = 1' -a '(ask --keys=any --starting=(commandline -ct | string replace -r "^--[^=]*=" "") (__tool_socket) 2>/dev/null)'
    complete -c tool -n '__fish_seen_subcommand_from send; and test (count (__tool_words --socket --count)) = 2' -a '(ask --values=(__tool_words --socket --count)[2] (__tool_socket) 2>/dev/null)'
    complete -c tool -n '__fish_seen_subcommand_from send' -l wait -d 'Wait.' -a 'sent confirmed'
    complete -c tool -n '__fish_seen_subcommand_from send' -l socket -r -d 'The socket.' -F
    complete -c tool -n '__fish_seen_subcommand_from send' -l count -x -d 'How often.'
    complete -c tool -n '__fish_seen_subcommand_from send' -l json -d 'JSON.'

    """#

  @Test(arguments: [
    (Completions.Shell.bash, bash(names: "send")),
    (.zsh, zshStart + bash(names: "send") + zsh() + zshEnd),
    (.fish, fish),
  ])
  func `completion is generated from the table of parameters`(
    shell: Completions.Shell,
    script: String
  ) {
    #expect(Completions(for: Self.whole, asking: "ask").script(for: shell) == script)
  }

  @Test(arguments: [
    (Completions.Shell.bash, bash(names: "send serve", passed: "  serve) _tool_passed ;;\n"), part),
    (
      .zsh,
      zshStart + bash(names: "send serve", passed: "  serve) _tool_passed ;;\n")
        + zsh(more: " serve 'Serve.'", passed: "    serve) _tool_passed_described ;;\n"),
      part + zshPart + zshEnd
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
    let front = Completions(for: Self.front, asking: "ask")
    let back = Completions(for: Self.back, asking: ":")
    #expect(front.script(for: shell) == script)
    #expect(back.part(for: shell, of: ["serve"]) == part)
  }
}
