// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Glibc
import Values

struct WatchCommand: PatternCommand {
  static let name = "watch"
  static let summary = "Show every event, live, until interrupted."
  static let discussion = """
    In a pipe the columns are separated by tabs: time, key, phase, value, changes collapsed, \
    source, reason; "-" means none.

    With --retry it goes on when the gateway ends or restarts, and waits for one that does not run \
    yet. Standard error says when the gateway is gone and when it is back; events between the two \
    are missing.
    """
  static let examples = [
    Example("settle watch", "Everything."),
    Example("settle watch boiler --json", "Event objects of one device."),
    Example("settle watch --phase sent,failed --retry", "What leaves and what fails, for days."),
  ]
  static let parameters: [Parameter<Self>] =
    patternParameters(isOptional: true) + [
      .option(
        "phase",
        { $0.phases.formUnion($1) },
        value: "P",
        completion: .words(Phase.allCases.map(\.rawValue)),
        help: "Show only events of this phase, such as failed; several are separated by commas, or"
          + " the option is repeated."
      ),
      .flag("retry", { $0.retries = true }, help: "Connect again when the gateway is gone."),
    ]

  var pattern = "*"
  var phases = PhaseList()
  var retries = false
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    guard retries else { return try follow {} }
    var pause = RetryPause()
    while true {
      do throws(ClientError) {
        let wasGone = pause.isWaiting
        let code = try follow {
          if wasGone { Terminal.complain("the gateway is back; events in between are missing") }
          pause = RetryPause()
        }
        guard code == .unavailable else { return code }
      } catch {
        switch error {
        case .noSocket, .notRunning, .closed, .timedOut, .unreadable:
          if !pause.isWaiting { Terminal.complain("\(error); trying again") }
        case .denied, .pathTooLong, .system: throw error
        }
      }
      pause.wait()
    }
  }

  /// Shows events until the connection ends; `onWatching` is called when the gateway answers.
  private func follow(onWatching: () -> Void) throws(ClientError) -> ExitCode {
    var client = try connection.connect()
    try client.send(ControlRequest(.watch, key: pattern))
    // The answer to a second request shows that the first was taken; no key matches it.
    if retries { try client.send(ControlRequest(.pending, key: "?/*")) }
    while true {
      let reply = try client.next(by: nil)
      if case .pending = reply {
        onWatching()
        continue
      }
      guard case .watched(let event, _) = reply else { return .unexpected(reply) }
      guard phases.contains(event.phase) else { continue }
      EventLine.print(event, asJSON: connection.json, withTime: true)
    }
  }
}

/// The phases to show: those that were named, or all.
struct PhaseList: ArgumentValue {
  private var phases: Set<Phase> = []

  init() {}

  init(argument: String) throws(ArgumentValueError) {
    for word in argument.split(separator: ",", omittingEmptySubsequences: false) {
      phases.insert(try Phase(argument: String(word)))
    }
  }

  mutating func formUnion(_ other: PhaseList) { phases.formUnion(other.phases) }

  func contains(_ phase: Phase) -> Bool { phases.isEmpty || phases.contains(phase) }
}

extension Phase: ArgumentValue {}

/// The pauses between attempts to connect: 200 ms, and twice that each time, up to 2 s.
private struct RetryPause {
  private static let first: UInt32 = 200_000
  private static let longest: UInt32 = 2_000_000
  private var microseconds: UInt32 = 0

  /// Whether the gateway is gone.
  var isWaiting: Bool { microseconds > 0 }

  mutating func wait() {
    microseconds = min(max(Self.first, microseconds * 2), Self.longest)
    usleep(microseconds)
  }
}
