// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices

/// Sends one change and prints its events.
struct ChangeFollower {
  private var request: ControlRequest
  private let options: ChangeOptions
  private let json: Bool
  private var last: Phase?

  init(request: ControlRequest, options: ChangeOptions, json: Bool) {
    self.request = request
    self.options = options
    self.json = json
  }

  mutating func run(on client: consuming ControlClient) throws(ClientError) -> ExitCode {
    let limit = options.timeout.map { Deadline(after: $0) }
    try client.send(request)
    while true {
      let reply: ControlReply
      do throws(ClientError) {
        reply = try client.next(by: limit ?? unaskedLimit)
      } catch {
        let phase = last.map { "; the last phase was \($0.rawValue)" } ?? ""
        Terminal.complain("\(error)\(phase)")
        if case .timedOut = error, limit != nil { return .timedOut }
        return .unavailable
      }
      switch reply {
      case .event(let event, _):
        if let code = receive(event) { return code }
      case .failure(let error, _)
      where error.code == ErrorCode.cannotConfirm.rawValue && options.wait == .best
        && request.wait == .confirmed:
        request.wait = .sent
        try client.send(request)
      case .failure, .watched, .recorded, .targets, .pending, .described, .flushed, .cancelled,
        .reloaded:
        return .unexpected(reply)
      }
    }
  }

  /// The deadline without `--timeout`: a gateway must answer in time, and a command that it has
  /// answered may take as long as it needs.
  private var unaskedLimit: Deadline? {
    last == nil ? Deadline(after: ConnectionOptions.replyTimeout) : nil
  }

  /// Prints an event; returns the exit code, or `nil` to go on.
  private mutating func receive(_ event: EventObject) -> ExitCode? {
    last = event.phase
    let isQuiet = request.wait == nil && !Terminal.isInteractive
    if json {
      StandardOutput.print(bytes: event.bytes)
    } else if !isQuiet, event.phase != .rejected {
      let isAwaited = event.phase == .sent && request.wait == .confirmed && Terminal.isInteractive
      StandardOutput.print(
        EventLine.text(event, withTime: false)
          + (isAwaited ? Terminal.colored(", waiting for the device", .faint) : "")
      )
    }
    guard let code = code(for: event.phase) else { return nil }
    if code == .badInput || code == .failed, !Terminal.isInteractive || event.phase == .rejected {
      let reason = event.reason ?? event.phase.rawValue
      let phase = event.phase == .rejected || event.reason == nil ? "" : "\(event.phase.rawValue): "
      Terminal.complain("\(event.key): \(phase)\(reason)")
    }
    return code
  }

  private func code(for phase: Phase) -> ExitCode? {
    switch phase {
    case .rejected: .badInput
    case .accepted, .sending: request.wait == nil ? .done : nil
    case .sent: request.wait == .confirmed ? nil : .done
    case .confirmed, .unchanged: .done
    case .superseded, .cancelled, .failed, .expired: .failed
    }
  }
}
