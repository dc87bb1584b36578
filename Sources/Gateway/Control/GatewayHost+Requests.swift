// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import Operations

/// Requests of the control socket and of HTTP.
extension GatewayHost {
  /// Answers one line of a client.
  func answer(_ line: ControlConnection.Line, on connection: ControlConnection) {
    switch line {
    case .whole(let bytes, let number):
      do throws(GrammarError) {
        let request = try ControlRequest(line: bytes.span)
        perform(request, on: connection, line: number)
      } catch {
        emitReady()
        connection.send(.failure(ErrorReply(error, line: number), id: error.replyID))
      }
    case .tooLong(let number):
      emitReady()
      let limit = configuration.limits.line
      connection.send(
        .failure(
          ErrorReply(.lineTooLong, "the line has more than \(limit) bytes", line: number),
          id: nil
        )
      )
    case .incomplete(let number):
      emitReady()
      connection.send(
        .failure(
          ErrorReply(.incompleteLine, "the input ended inside a line", line: number),
          id: nil
        )
      )
    }
  }

  /// Executes a request; replies go to `requester`, in the order of its requests.
  func perform(
    _ request: ControlRequest,
    on requester: any Requester,
    line: Int
  ) {
    let now = EventLoop.now()
    let id = request.replyID
    switch request.operation {
    case .set, .step, .toggle: return change(request, on: requester, line: line, at: now)
    case .watch, .record, .reload, .get, .pending, .describe, .flush, .cancel: break
    }
    emitReady()  // Replies to earlier changes come first.
    switch request.operation {
    case .set, .step, .toggle: break
    case .watch, .record:
      guard let listener = requester as? ControlConnection else {
        preconditionFailure("Only clients of the control socket watch or record.")
      }
      do throws(ValidationError) {
        let pattern = try watched(request.key)
        if request.operation == .record {
          listener.recordings.append(.init(pattern: pattern, id: id, start: now))
        } else {
          listener.watches.append(.init(pattern: pattern, id: id))
        }
        updateWatching()
      } catch {
        listener.send(
          .failure(ErrorReply(.unknownKey, error.description, line: line), id: id)
        )
      }
    case .reload: reload(for: requester, id: id, line: line)
    case .get where requester.isDeaf, .pending where requester.isDeaf,
      .describe where requester.isDeaf:
      break  // Nobody reads the reply.
    case .get, .pending, .describe, .flush, .cancel:
      do throws(ValidationError) {
        let keys = try keys(request.key)
        requester.send(reply(to: request, about: keys, at: now))
      } catch {
        requester.send(
          .failure(ErrorReply(.unknownKey, error.description, line: line), id: id)
        )
      }
    }
  }

  /// The keys a pattern names; a literal key that does not exist is an error.
  private func keys(_ pattern: String) throws(ValidationError) -> [KeyIndex] {
    let keys = registry.indices(matching: pattern)
    if keys.isEmpty, Pattern(pattern).isLiteral { return [try registry.index(of: pattern)] }
    return keys
  }

  /// The pattern of a watch; an alias is watched by the name that events carry.
  func watched(_ text: String) throws(ValidationError) -> Pattern {
    let pattern = Pattern(text)
    guard pattern.isLiteral else { return pattern }
    return Pattern(registry.properties[Int(try registry.index(of: text).rawValue)].key)
  }

  private func reply(
    to request: ControlRequest,
    about keys: [KeyIndex],
    at now: Moment
  ) -> ControlReply {
    let id = request.replyID
    let source = request.source ?? "socket"
    switch request.operation {
    case .get: return .targets(keys.map { targetRow($0, at: now) }, id: id)
    case .pending:
      let rows = core.commands.pendingStatuses(of: keys, at: now).map { pendingRow($0, at: now) }
      return .pending(rows, id: id)
    case .describe: return .described(keys.map(propertyRow), id: id)
    case .flush:
      var count = 0
      for key in keys where core.flush(key, at: now, source: source) { count += 1 }
      return .flushed(count, id: id)
    case .cancel:
      var count = 0
      for key in keys where core.cancel(key, at: now, source: source) { count += 1 }
      return .cancelled(count, id: id)
    case .set, .step, .toggle, .watch, .record, .reload:
      preconditionFailure("Only requests about several keys are answered here.")
    }
  }

  func pendingRow(
    _ status: CommandStateMachine.PendingStatus,
    at now: Moment
  ) -> PendingRow {
    let waits: PendingRow.Waits =
      switch status.waits {
      case .quiet: .quiet
      case .lane: .lane
      case .inFlight: .inFlight
      case .offline: .offline
      }
    return PendingRow(
      key: registry.properties[Int(status.key.rawValue)].key,
      value: status.value.json,
      collapsed: status.collapsed,
      waits: waits,
      dueMilliseconds: status.due.map {
        Int(max($0, now).nanoseconds - now.nanoseconds) / 1_000_000
      }
    )
  }

  /// What `get` shows of a key.
  func targetRow(_ key: KeyIndex, at now: Moment) -> TargetRow {
    let status = core.status(key)
    return TargetRow(
      key: registry[key].key,
      target: status.target?.json,
      actual: status.actual?.json,
      phase: status.phase,
      ageMilliseconds: status.since.map {
        Int(Int64(bitPattern: now.nanoseconds &- $0.nanoseconds) / 1_000_000)
      }
    )
  }

  private func change(
    _ request: ControlRequest,
    on requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    let origin = requester.origin(of: request)
    do throws(ValidationError) {
      let key = try registry.index(of: request.key)
      if request.wait == .confirmed, registry[key].property.confirm == nil {
        emitReady()
        requester.send(
          .failure(
            ErrorReply(
              .cannotConfirm,
              "nothing can confirm \(request.key): it has no state topic",
              line: line
            ),
            id: request.replyID
          )
        )
        return
      }
      let change: CommandStateMachine.Change
      switch request.operation {
      case .set(let value): change = .set(try registry.value(from: value, of: key))
      case .step(let amount): change = .step(amount)
      case .toggle: change = .toggle
      case .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload:
        preconditionFailure("Only changes are made here.")
      }
      tallies.devices[registry[key].device].changes += 1
      try core.change(
        change,
        of: key,
        at: now,
        ChangeOptions(origin: origin, ttl: request.ttl, skipsQuiet: request.now)
      )
      requester.owesReply()
      if origin.wantsPhases { requester.beginWait() }
    } catch {
      reject(request, on: requester, reason: error, at: now)
    }
  }

  /// Replies to a change that was read and rejected with its event.
  private func reject(
    _ request: ControlRequest,
    on requester: any Requester,
    reason: ValidationError,
    at now: Moment
  ) {
    emitReady()
    var value: JSONValue?
    if case .set(let given) = request.operation { value = given }
    tieClocks(at: now)
    let object = encoder.rejection(
      of: request,
      value: value,
      reason: reason.description,
      at: now,
      number: core.nextNumber()
    )
    requester.note(reason)
    requester.send(.event(object, id: request.replyID))
    onEvent?(object)
    controlSocket?.sendToWatchers(object)
    http?.append(object)
    // A key that does not exist has no topic.
    guard let key = try? registry.index(of: request.key) else { return }
    tallies.devices[registry[key].device].rejected += 1
    let topic = topics.event(registry[key].key)
    links[0].enqueue(.init(topic: topic, payload: object.bytes, qos: 0))
  }
}
