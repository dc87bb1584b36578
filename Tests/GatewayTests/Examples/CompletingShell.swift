// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import TestBroker

/// A shell that has loaded `settle completions`, and returns what it would offer.
enum CompletingShell: String, CaseIterable, Sendable {
  case bash, zsh, fish

  /// Whether the shell is there; bash has to be.
  var isInstalled: Bool { self == .bash || ToolPath.has(rawValue) }

  /// What the shell offers for the last word of each of these command lines, `settle` left out.
  ///
  /// One process answers all of them.
  func offers(for lines: [[String]], in house: ExampleHouse) throws -> [[String]] {
    let questions = lines.map { words in
      "ask settle " + words.map { "'\($0)'" }.joined(separator: " ") + "\necho ';;'\n"
    }
    let script = start + questions.joined()
    let run = try ExampleRun(script, in: house, shell: call)
    guard run.waitForExit() == 0, run.errors.isEmpty else {
      throw GatewayProcess.Failure(description: "\(self): \(run.errors)")
    }
    let answers = run.output.split(separator: ";;\n", omittingEmptySubsequences: false).dropLast()
    return zip(answers, lines).map { answer, words in
      let offered = answer.split(separator: "\n").map(String.init)
      // The shell takes from what zsh's functions give it.
      return self == .zsh ? offered.filter { $0.hasPrefix(words.last ?? "") } : offered
    }
  }

  /// How the shell is called without a person's settings.
  private var call: String {
    switch self {
    case .bash: "bash --norc -c"
    case .zsh: "zsh -f -c"
    case .fish: "fish --no-config -c"
    }
  }

  /// Reads the script, and says what `ask` is.
  private var start: String {
    switch self {
    case .bash:
      // Readline's own word breaks: "=" is a word of its own.
      """
      source <(settle completions bash)
      ask() {
        local words=() word
        for word; do
          case $word in
          --*=*) words+=("${word%%=*}" = "${word#*=}") ;;
          *) words+=("$word") ;;
          esac
        done
        COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1)) COMPREPLY=()
        _settle || :
        ((${#COMPREPLY[@]})) && printf '%s\\n' "${COMPREPLY[@]}"
        :
      }

      """
    case .zsh:
      """
      compdef() { : }
      source <(settle completions zsh)
      compset() { return 1 }
      compadd() {
        while [[ $# -gt 0 && $1 != - ]]; do shift; done
        shift
        (($#)) && print -rl -- "$@"
      }
      ask() {
        local -a words
        words=("$@")
        local CURRENT=$# PREFIX=${words[-1]} IPREFIX= SUFFIX= ISUFFIX= QIPREFIX=
        _settle_zsh
        :
      }

      """
    case .fish:
      """
      settle completions fish | source
      function ask
        complete -C "$argv" | string replace -r \\t'.*' ''
      end

      """
    }
  }
}

/// Programs of other packages.
enum ToolPath {
  static func has(_ tool: String) -> Bool {
    (Variables.all()["PATH"] ?? "").split(separator: ":").contains {
      unsafe access("\($0)/\(tool)", X_OK) == 0
    }
  }
}
