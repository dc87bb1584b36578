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
import Values

/// Executes the requests of the control socket and of HTTP.
///
/// Replies go to the requester, in the order of its requests.
final class RequestHandler {
  let context: GatewayContext
  let events: EventDistributor
  unowned let host: GatewayHost
  /// Bounds the work for suggestions to people; MQTT gets none.
  private var suggestions = SuggestionLimiter()
  /// When values in lanes are sent; see ``advance(_:limit:to:)``.
  var forecast = LaneForecast()

  init(_ context: GatewayContext, events: EventDistributor, host: GatewayHost) {
    self.context = context
    self.events = events
    self.host = host
  }

  /// Executes one line of a client of the control socket.
  func receive(_ line: LineFramer.Output, from connection: ControlConnection) {
    switch line {
    case .line(let bytes, let number):
      do throws(GrammarError) {
        perform(try ControlRequest(line: bytes.span), for: connection, line: number)
      } catch {
        fail(ErrorReply(error, line: number), id: error.replyID, to: connection)
      }
    case .tooLong(let number):
      let limit = context.configuration.limits.line
      fail(
        ErrorReply(.lineTooLong, "the line has more than \(limit) bytes", line: number),
        to: connection
      )
    }
  }

  /// Executes a request, or passes it on to the gateways of the cluster that drive its devices.
  func perform(_ request: ControlRequest, for requester: any Requester, line: Int) {
    if host.cluster != nil, refuseInvalid(request, of: requester) { return }
    if host.passOn(request, for: requester, at: EventLoop.now()) { return }
    performHere(request, for: requester, line: line)
  }

  /// Rejects a change here that no gateway would accept; `false` for any other request.
  private func refuseInvalid(_ request: ControlRequest, of requester: any Requester) -> Bool {
    guard !requester.isPeer, request.operation.isOfOneKey, request.deviceMembers == nil else {
      return false
    }
    do throws(ValidationError) {
      _ = try request.change(of: try context.registry.index(of: request.key), in: context.registry)
      return false
    } catch {
      guard !request.isDryRun else { return false }
      let now = EventLoop.now()
      reject(request, of: requester, reason: suggesting(error, at: now), at: now)
      return true
    }
  }

  /// Executes a request on this gateway.
  func performHere(_ request: ControlRequest, for requester: any Requester, line: Int) {
    let now = EventLoop.now()
    switch request.operation {
    case .set, .step, .toggle, .scene:
      guard request.isDryRun else {
        return change(request, for: requester, line: line, at: now)
      }
      host.emitReady()
      return sendPreview(request, to: requester, line: line, at: now)
    case .watch, .record, .reload, .status, .get, .pending, .describe, .log, .devices, .flush,
      .cancel:
      break
    }
    var request = request
    if request.operation != .devices {
      request.key = context.registry.pattern(for: request.key)
    }
    host.emitReady()  // Replies to earlier changes precede this one.
    do throws(ValidationError) {
      switch request.operation {
      case .set, .step, .toggle, .scene: break
      case .watch, .record: try observe(request, by: requester, line: line, at: now)
      case .reload: host.reloads.reload(for: requester, id: request.replyID, line: line)
      case .status where requester.hasStoppedReading: break
      case .status: requester.send(.status(host.status(at: now), id: request.replyID))
      case .get where requester.hasStoppedReading, .pending where requester.hasStoppedReading,
        .describe where requester.hasStoppedReading, .log where requester.hasStoppedReading,
        .devices where requester.hasStoppedReading:
        break  // Nobody reads the reply.
      case .devices where request.completion == nil && Pattern(request.key).isLiteral:
        let device = try context.registry.deviceIndex(of: request.key)
        requester.send(.devices([row(ofDevice: device, at: now)], id: request.replyID))
      case .get, .pending, .describe, .log, .devices, .flush, .cancel:
        if let client = requester as? ControlConnection,
          !Pattern(request.key).isLiteral || request.completion != nil, let walk = KeyWalk(request)
        {
          return client.begin(walk)
        }
        requester.send(reply(to: request, about: try keys(request.key), at: now))
      }
    } catch {
      let message = suggesting(error, at: now).description
      let failure = ErrorReply(.unknownKey, message, line: line)
      requester.send(.failure(failure, id: request.replyID))
    }
  }

  /// The pattern to watch; events carry the name of a key, never an alias.
  func watchPattern(_ text: String) throws(ValidationError) -> Pattern {
    let pattern = Pattern(context.registry.pattern(for: text))
    guard pattern.isLiteral else { return pattern }
    return Pattern(context.registry[try context.registry.index(named: text)].key)
  }

  /// The error with a suggestion, if it is about an unknown key and a search may be made.
  func suggesting(_ error: ValidationError, at now: Moment) -> ValidationError {
    suggestions.suggesting(error, from: context.registry, at: now)
  }

  // MARK: - Changes

  private func change(
    _ request: ControlRequest,
    for requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    if request.operation == .scene {
      return setScene(request, for: requester, line: line, at: now)
    }
    if let members = request.deviceMembers {
      return set(members, request, for: requester, line: line, at: now)
    }
    let origin = requester.origin(of: request)
    do throws(ValidationError) {
      let registry = context.registry
      let key = try registry.index(of: request.key)
      if request.wait == .confirmed, !canConfirm(key) {
        return cannotConfirm(request.key, request, for: requester, line: line)
      }
      let change = try request.change(of: key, in: registry)
      context.counters[registry.device(of: key)].changes += 1
      try context.core.change(
        change,
        of: key,
        at: now,
        ChangeOptions(origin: origin, ttl: request.ttl, skipsQuiet: request.now)
      )
      requester.owesReply()
      if origin.wantsPhases { requester.beginWait() }
    } catch {
      reject(request, of: requester, reason: suggesting(error, at: now), at: now)
    }
  }

  /// Whether the device reports the property, so that a command can be confirmed.
  func canConfirm(_ key: KeyIndex) -> Bool {
    context.registry.definition(of: key).property.confirm != nil
  }

  /// Refuses to wait for a confirmation that never comes.
  func cannotConfirm(
    _ key: String,
    _ request: ControlRequest,
    for requester: any Requester,
    line: Int
  ) {
    let message = "nothing can confirm \(key): it has no state topic"
    fail(ErrorReply(.cannotConfirm, message, line: line), id: request.replyID, to: requester)
  }

  /// Rejects a change with an event that no command has.
  func reject(
    _ request: ControlRequest,
    of requester: any Requester,
    reason: ValidationError,
    at now: Moment
  ) {
    let event = answer(to: request, of: requester, reason: reason, at: now)
    events.deliver(event, key: try? context.registry.index(of: request.key))
  }

  /// Answers the requester that a change is rejected, and returns the event.
  func answer(
    to request: ControlRequest,
    of requester: any Requester,
    reason: ValidationError,
    at now: Moment
  ) -> EventObject {
    host.emitReady()
    var value: JSONValue?
    if case .set(let given) = request.operation { value = given }
    context.synchronizeEncoder(at: now)
    let event = context.encoder.rejection(
      of: request,
      value: value,
      reason: reason.description,
      at: now,
      number: context.core.nextNumber()
    )
    requester.setRejection(reason)
    requester.send(.event(event, id: request.replyID))
    return event
  }

  /// Reports that a request cannot be executed, after the replies to those before it.
  private func fail(_ error: ErrorReply, id: JSONValue? = nil, to requester: any Requester) {
    host.emitReady()
    requester.send(.failure(error, id: id))
  }

  // MARK: - Observers

  private func observe(
    _ request: ControlRequest,
    by requester: any Requester,
    line: Int,
    at now: Moment
  ) throws(ValidationError) {
    guard let client = requester as? ControlConnection else {
      preconditionFailure("Only clients of the control socket watch or record.")
    }
    let pattern = try watchPattern(request.key)
    guard client.canObserveMore else {
      let limit = ControlConnection.observationLimit
      let message = "a client may watch and record \(limit) patterns on one connection"
      let failure = ErrorReply(.limit, message, line: line)
      return client.send(.failure(failure, id: request.replyID))
    }
    if request.operation == .record {
      client.recordings.append(.init(pattern: pattern, id: request.replyID, start: now))
    } else {
      client.watches.append(.init(pattern: pattern, id: request.replyID))
    }
    events.updateObservers()
  }

  // MARK: - Several keys

  /// The keys that a pattern matches; a literal key that does not exist is an error.
  private func keys(_ pattern: String) throws(ValidationError) -> [KeyIndex] {
    let keys = context.registry.indices(matching: pattern)
    if keys.isEmpty, Pattern(pattern).isLiteral {
      return [try context.registry.index(named: pattern)]
    }
    return keys
  }

  private func reply(
    to request: ControlRequest,
    about keys: [KeyIndex],
    at now: Moment
  ) -> ControlReply {
    let id = request.replyID
    let source = request.source ?? "socket"
    switch request.operation {
    case .get: return .targets(keys.map { TargetRow($0, in: context.core, at: now) }, id: id)
    case .pending:
      let rows = context.core.pending(keys, at: now).map {
        PendingRow($0, in: context.registry, at: now)
      }
      return .pending(rows, id: id)
    case .describe: return .described(keys.map { described($0, at: now) }, id: id)
    case .log: return .logged(keys.flatMap { log(of: $0, at: now) }, id: id)
    case .devices:
      let pattern = Pattern(request.key)
      let devices = context.registry.deviceNumbers.filter {
        pattern.matches(context.registry.id(ofDevice: $0))
      }
      return .devices(devices.map { row(ofDevice: $0, at: now) }, id: id)
    case .flush:
      var count = 0
      for key in keys
      where context.core.flush(key, at: now, source: source, isHereOnly: true) { count += 1 }
      return .flushed(count, id: id)
    case .cancel:
      var count = 0
      for key in keys
      where context.core.cancel(key, at: now, source: source, isHereOnly: true) { count += 1 }
      return .cancelled(count, id: id)
    case .set, .step, .toggle, .scene, .watch, .record, .reload, .status:
      preconditionFailure("Only requests about several keys are answered here.")
    }
  }
}

extension ControlRequest.Operation {
  /// Whether it changes the value of one key.
  fileprivate var isOfOneKey: Bool {
    switch self {
    case .set, .step, .toggle: true
    case .scene, .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload, .status,
      .log,
      .devices:
      false
    }
  }
}

/// Changes of several properties of a device at one instant.
extension RequestHandler {
  /// Sets properties of the device that the request names.
  ///
  /// The requester gets one answer for each property, or one rejection for all.
  func set(
    _ members: [JSONValue.Member],
    _ request: ControlRequest,
    for requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    let device: Int
    do throws(ValidationError) {
      device = try context.registry.deviceIndex(of: request.key)
    } catch {
      return reject(request, of: requester, reason: suggesting(error, at: now), at: now)
    }
    let set = DeviceSet(device: device, members: members, written: request.written)
    do throws(ValidationError) {
      let changes = try set.changes(in: context.registry)
      if request.wait == .confirmed, let mute = changes.values.first(where: { !canConfirm($0.key) })
      {
        return cannotConfirm(context.registry[mute.key].key, request, for: requester, line: line)
      }
      let origin = requester.origin(of: request, parts: changes.values.count)
      try context.core.change(
        changes.values,
        at: now,
        ChangeOptions(
          origin: origin,
          ttl: request.ttl,
          members: changes.options.isEmpty ? nil : changes.options,
          skipsQuiet: request.now
        )
      )
      context.counters[device].changes += UInt64(changes.values.count)
      requester.expect(parts: changes.values.count)
      for _ in changes.values {
        requester.owesReply()
        if origin.wantsPhases { requester.beginWait() }
      }
    } catch {
      reject(set, request, for: requester, reason: suggesting(error, at: now), at: now)
    }
  }

  /// Rejects the whole set: each property that it names has an event, and the requester one answer.
  private func reject(
    _ set: DeviceSet,
    _ request: ControlRequest,
    for requester: any Requester,
    reason: ValidationError,
    at now: Moment
  ) {
    let origin = ChangeOrigin(
      id: request.replyID,
      source: request.source ?? "socket",
      by: request.by
    )
    let isNamed = set.reject(because: reason.description, origin: origin, in: context, at: now)
    let event = answer(to: request, of: requester, reason: reason, at: now)
    if !isNamed { events.deliver(event, ofDevice: set.device) }
  }
}
