// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

/// Sends one change and prints its events.
///
/// A change of several properties of a device is done when each of them is.
struct ChangeFollower {
  private var request: ControlRequest
  private let options: ChangeOptions
  private let json: Bool
  private var last: Phase?
  /// How many properties the change sets.
  private var parts = 1
  /// The exit codes of the properties that are done.
  private var codes: [String: ExitCode] = [:]
  /// What was in the way of the command when it was accepted.
  private var obstacle: String?
  private var hasAsked = false
  /// The keys whose confirmation is waited for, where not all keys of the change can confirm.
  private var confirming: Set<String>?

  init(request: ControlRequest, options: ChangeOptions, json: Bool) {
    self.request = request
    self.options = options
    self.json = json
  }

  mutating func run(on client: consuming ControlClient) throws(ClientError) -> ExitCode {
    let limit = options.timeout.map { Deadline(after: $0) }
    if options.wait == .settled {
      return try SettledFollower(request: request, options: options, json: json)
        .run(on: client, by: limit)
    }
    if request.operation == .scene ? request.wait == .confirmed : options.wait == .best && isSet {
      if let code = try readConfirming(from: &client) { return code }
    }
    try client.send(request)
    while true {
      let reply: ControlReply
      do throws(ClientError) {
        reply = try client.next(by: limit ?? unaskedLimit)
      } catch {
        let phase = last.map { "; the last phase was \($0.rawValue)" } ?? ""
        Terminal.complain("\(error)\(phase)\(obstacle.map { "; \($0)" } ?? "")")
        if case .timedOut = error, limit != nil { return .timedOut }
        return .unavailable
      }
      switch reply {
      case .event(let event, _):
        if let code = receive(event) { return code }
        guard event.phase == .accepted, !hasAsked else { continue }
        hasAsked = true
        try client.send(Obstacle.question(about: event.key))
      case .devices(let rows, _): obstacle = Obstacle.show(rows)
      case .failure(let error, _)
      where error.code == ErrorCode.cannotConfirm.rawValue && options.wait == .best
        && request.wait == .confirmed:
        request.wait = .sent
        try client.send(request)
      case .failure, .watched, .recorded, .targets, .pending, .described, .flushed, .cancelled,
        .reloaded, .status, .logged, .words, .previewed:
        return .unexpected(reply)
      }
    }
  }

  /// Whether the change sets several properties of a device.
  private var isSet: Bool { request.deviceMembers != nil }

  /// Asks which properties can confirm; returns an exit code if that fails.
  private mutating func readConfirming(
    from client: inout ControlClient
  ) throws(ClientError) -> ExitCode? {
    // Which keys a scene has is not known.
    let pattern = request.operation == .scene ? "*" : "\(request.key)/*"
    let reply = try client.ask(ControlRequest(.describe, key: pattern))
    guard case .described(let rows, _) = reply else { return .unexpected(reply) }
    confirming = Set(rows.filter { $0.confirmWithin != nil }.map(\.key))
    request.wait = .sent
    return nil
  }

  /// The deadline without `--timeout`: a gateway must answer in time, and a command that it has
  /// answered may take as long as it needs.
  private var unaskedLimit: Deadline? {
    last == nil ? Deadline(after: ConnectionOptions.replyTimeout) : nil
  }

  /// Prints an event; returns the exit code, or `nil` to go on.
  private mutating func receive(_ event: EventObject) -> ExitCode? {
    last = event.phase
    parts = max(parts, event.of ?? 1)
    guard codes[event.key] == nil else { return nil }
    let isQuiet = request.wait == nil && !Terminal.isInteractive
    if json {
      StandardOutput.print(bytes: event.bytes)
    } else if !isQuiet, event.phase != .rejected {
      let isAwaited =
        event.phase == .sent && awaitsConfirmation(of: event.key) && Terminal.isInteractive
      StandardOutput.print(
        EventLine.text(event, withTime: false)
          + (isAwaited ? Terminal.colored(", waiting for the device", .faint) : "")
      )
    }
    guard let code = code(for: event) else { return nil }
    if code == .badInput || code == .failed, !Terminal.isInteractive || event.phase == .rejected {
      let reason = event.reason ?? event.phase.rawValue
      let phase = event.phase == .rejected || event.reason == nil ? "" : "\(event.phase.rawValue): "
      Terminal.complain("\(event.key): \(phase)\(reason)")
    }
    guard parts > 1 else { return code }
    codes[event.key] = code
    // There is one answer for a device that takes none of the properties.
    guard codes.count == parts || event.key == request.key else { return nil }
    if codes.values.contains(.badInput) { return .badInput }
    return codes.values.contains(.failed) ? .failed : .done
  }

  private func awaitsConfirmation(of key: String) -> Bool {
    confirming?.contains(key) ?? (request.wait == .confirmed)
  }

  private func code(for event: EventObject) -> ExitCode? {
    switch event.phase {
    case .rejected: .badInput
    case .accepted, .sending: request.wait == nil ? .done : nil
    case .sent: awaitsConfirmation(of: event.key) ? nil : .done
    case .confirmed, .unchanged: .done
    case .superseded, .cancelled, .failed, .expired: .failed
    }
  }
}

/// What is in the way of a command that is waited for.
enum Obstacle {
  /// Asks the gateway about the device of a key.
  static func question(about key: String) -> ControlRequest {
    ControlRequest(.devices, key: String(key.prefix { $0 != "/" }))
  }

  /// Says on standard error what is in the way, if anything is.
  static func show(_ rows: [DeviceRow]) -> String? {
    let text = rows.first?.obstacle
    if let text { Terminal.complain("waiting: \(text)") }
    return text
  }
}
