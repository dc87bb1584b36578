// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Operations
import TestBroker

/// A real terminal without a user: a shell in its own tmux, with scripted keys and readable cells.
///
/// It ends with this process too, however that ends. Not thread safe.
final class TmuxTerminal {
  private let folder: String
  private let server: SpawnedProcess
  private let lifeline: Lifeline
  private static let prompt = "ready$"

  /// Starts a shell whose environment has these variables beside the usual ones.
  init(columns: Int, rows: Int, environment: [String: String] = [:]) throws {
    folder = try TemporaryFolder.make("settle-tmux")
    lifeline = try Lifeline()
    let script = """
      exec 3<&0
      (read line <&3 || kill -9 $$) >/dev/null 2>&1 &
      exec "$@" </dev/null 3<&-
      """
    var variables = Variables.all().filter { name, _ in
      !name.hasPrefix("SETTLE_") && !name.hasPrefix("TMUX") && !name.hasPrefix("LC_")
    }
    variables["LANG"] = "C.UTF-8"
    variables["NO_COLOR"] = nil
    variables["PS1"] = Self.prompt + " "
    variables["ENV"] = nil
    variables.merge(environment) { $1 }
    let settings = """
      set -g default-shell /bin/sh
      set -g default-terminal screen-256color
      set -g exit-empty off
      set -g status off
      set -s escape-time 0

      """
    try TextFile.write(settings, to: folder + "/tmux.conf")
    server = try SpawnedProcess(
      arguments: ["/bin/sh", "-c", script, "sh", "tmux", "-S", folder + "/s", "-f"]
        + [folder + "/tmux.conf", "-u", "-D"],
      environment: variables,
      input: lifeline.reader,
      output: .discarded,
      errors: .discarded
    )
    // The server may need a moment until it listens.
    var wait = Wait()
    while unsafe access(folder + "/s", F_OK) != 0, wait.remaining() != nil {
      server.wait(milliseconds: 5)
    }
    try tmux("new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", "/bin/sh -i")
    try waitFor("the shell") { $0.first?.hasPrefix(Self.prompt) == true }
  }

  deinit {
    server.signal(SIGKILL)
    server.wait(milliseconds: 5000)
    lifeline.release()
    TemporaryFolder.remove(folder)
  }

  /// Presses keys by the names that tmux has for them, such as `Right`, `C-c` or `x`.
  func press(_ keys: String...) throws { try tmux(["send-keys"] + keys) }

  /// Types without ending the line.
  func type(_ text: String) throws { try tmux("send-keys", "-l", text) }

  /// Types a line into the shell.
  func enter(_ line: String) throws {
    try type(line)
    try tmux("send-keys", "Enter")
  }

  func resize(columns: Int, rows: Int) throws {
    try tmux("resize-window", "-x", "\(columns)", "-y", "\(rows)")
  }

  /// The rows as they are, without the blanks at their ends.
  func screen() throws -> [String] { try tmux("capture-pane", "-p") }

  /// The screen with the sequences that color it.
  func escapes() throws -> String { try tmux("capture-pane", "-p", "-e").joined(separator: "\n") }

  /// A variable of tmux's, such as `cursor_flag`.
  func variable(_ name: String) throws -> String {
    try tmux("display-message", "-p", "#{\(name)}").first ?? ""
  }

  /// Waits until the screen is as it should be, and returns it.
  @discardableResult
  func waitFor(
    _ what: String,
    within limit: Duration = .patience,
    _ condition: ([String]) -> Bool
  ) throws -> [String] {
    var wait = Wait(within: limit)
    while true {
      let rows = try screen()
      if condition(rows) { return rows }
      // Each look starts a program: the others need the processor, too.
      server.wait(milliseconds: 20)
      guard wait.remaining() != nil else {
        throw GatewayProcess.Failure(
          description: "\(what) did not come; the screen:\n" + rows.joined(separator: "\n")
        )
      }
    }
  }

  /// Waits until some row has all of these texts.
  @discardableResult
  func waitForRow(_ texts: String...) throws -> String {
    var found = ""
    try waitFor("a row with \(texts)") { rows in
      let row = rows.first { row in texts.allSatisfy { row.contains($0) } }
      found = row ?? ""
      return row != nil
    }
    return found
  }

  /// Closes the terminal, as closing its window does.
  func hangUp() throws { try tmux("kill-server") }

  /// Waits for the shell's prompt after a program has ended.
  func waitForPrompt() throws {
    try waitFor("the prompt") { rows in
      rows.last { !$0.isEmpty }.map { $0 == Self.prompt } ?? false
    }
  }

  @discardableResult
  private func tmux(_ arguments: String...) throws -> [String] { try tmux(arguments) }

  @discardableResult
  private func tmux(_ arguments: [String]) throws -> [String] {
    let reader = try LineReader()
    let client = try SpawnedProcess(
      arguments: ["tmux", "-u", "-S", folder + "/s"] + arguments,
      output: .descriptor(reader.writer),
      errors: .descriptor(reader.writer)
    )
    reader.closeWriter()
    _ = reader.waitFor(within: .patience) { _ in nil as Bool? }
    guard client.wait() == .exited(code: 0) else {
      throw GatewayProcess.Failure(description: "tmux \(arguments): \(reader.lines)")
    }
    return reader.lines
  }
}
