// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import JSON
import LastOut
import Operations

/// What the control socket asks, and HTTP after it.
extension Gateway {
  /// Answers one line of a client.
  func answer(_ line: ControlConnection.Line, on connection: ControlConnection) {
    switch line {
    case .whole(let bytes, let number):
      do throws(GrammarError) {
        let request = try ControlRequest(line: bytes.span)
        perform(request, on: connection, line: number)
      } catch {
        tellOwed()
        connection.send(.failure(ErrorReply(error, line: number), id: error.replyID))
      }
    case .tooLong(let number):
      tellOwed()
      let limit = configuration.limits.line
      connection.send(
        .failure(
          ErrorReply(.lineTooLong, "the line has more than \(limit) bytes", line: number),
          id: nil
        )
      )
    case .incomplete(let number):
      tellOwed()
      connection.send(
        .failure(
          ErrorReply(.incompleteLine, "the input ended inside a line", line: number),
          id: nil
        )
      )
    }
  }

  /// Does what a request asks; the replies go to `connection`, that to a change perhaps only when
  /// its command has left.
  func perform(
    _ request: ControlRequest,
    on connection: any Asker,
    line: Int
  ) {
    let now = EventLoop.now()
    if owesReplies { distribute(at: now) }
    advanceIfDue(at: now)
    let id = request.replyID
    switch request.operation {
    case .set, .step, .toggle: change(request, on: connection, line: line, at: now)
    case .watch, .record:
      guard let listener = connection as? ControlConnection else {
        preconditionFailure("Only clients of the control socket watch or record.")
      }
      do throws(ValidationError) {
        let pattern = try watched(request.key)
        if request.operation == .record {
          recordAppliedSteps()  // What came before belongs to those who were there.
          listener.recordings.append(.init(pattern: pattern, id: id, start: now))
          updateRecording()
        } else {
          listener.watches.append(.init(pattern: pattern, id: id))
          updateWatching()
        }
      } catch {
        connection.send(
          .failure(ErrorReply(.unknownKey, error.description, line: line), id: id)
        )
      }
    case .reload: reload(for: connection, id: id, line: line)
    case .get where connection.isDeaf, .pending where connection.isDeaf,
      .describe where connection.isDeaf:
      break  // Nobody reads the answer.
    case .get, .pending, .describe, .flush, .cancel:
      do throws(ValidationError) {
        let keys = try keys(request.key)
        connection.send(reply(to: request, about: keys, at: now))
      } catch {
        connection.send(
          .failure(ErrorReply(.unknownKey, error.description, line: line), id: id)
        )
      }
    }
    if canReplyLater { owesReplies = true } else { distribute(at: now) }
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
      let rows = machine.pendingStatuses(of: keys, at: now).map { pendingRow($0, at: now) }
      return .pending(rows, id: id)
    case .describe: return .described(keys.map(propertyRow), id: id)
    case .flush:
      var count = 0
      for key in keys where flush(key, at: now, source: source) { count += 1 }
      return .flushed(count, id: id)
    case .cancel:
      var count = 0
      for key in keys where cancel(key, at: now, source: source) { count += 1 }
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

  private func change(
    _ request: ControlRequest,
    on connection: any Asker,
    line: Int,
    at now: Moment
  ) {
    let origin = connection.origin(of: request)
    do throws(ValidationError) {
      let key = try registry.index(of: request.key)
      if request.wait == .confirmed,
        registry.properties[Int(key.rawValue)].property.confirm == nil
      {
        connection.send(
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
        preconditionFailure("Only changes are taken here.")
      }
      if origin.wantsPhases { connection.beginWait() }
      do throws(ValidationError) {
        try take(
          change,
          of: key,
          at: now,
          origin: origin,
          ttl: request.ttl,
          skipsQuiet: request.now
        )
      } catch {
        refuse(request, on: connection, reason: error, at: now)
        if origin.wantsPhases { connection.endWait() }
      }
    } catch {
      refuse(request, on: connection, reason: error, at: now)
    }
  }

  /// A change that could be read but not taken is answered with its event.
  private func refuse(
    _ request: ControlRequest,
    on connection: any Asker,
    reason: ValidationError,
    at now: Moment
  ) {
    var value: JSONValue?
    if case .set(let given) = request.operation { value = given }
    tieClocks(at: now)
    let object = identifiers.rejection(
      of: request,
      value: value,
      reason: reason.description,
      at: now,
      number: machine.nextNumber()
    )
    connection.note(reason)
    connection.send(.event(object, id: request.replyID))
    onEvent?(object)
    controlSocket?.tellWatchers(object)
    http?.append(object)
    // A key that does not exist has no topic.
    guard let key = try? registry.index(of: request.key) else { return }
    tallies.devices[registry[key].device].rejected += 1
    let topic = surface.eventTopic(registry.properties[Int(key.rawValue)].key)
    links[0].enqueue(.init(topic: topic, payload: object.bytes, qos: 0))
  }
}
