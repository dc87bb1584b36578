// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import MQTT
import Operations
import Values

/// Questions about many keys, answered in parts.
extension RequestHandler {
  /// Goes on with `walk` until `limit` units of work are used up, or to its end.
  ///
  /// Rows show the state at the time at which they are written.
  ///
  /// - Returns: The work that was done; see ``TurnBudget``.
  func advance(_ walk: inout KeyWalk, limit: Int, to output: inout [UInt8]) -> Int {
    let now = EventLoop.now()
    var left = limit
    if !walk.hasBegun {
      walk.hasBegun = true
      walk.rows.begin(to: &output)
    }
    if walk.appendWords(of: context.registry, work: &left, to: &output) {
      if walk.isDone { walk.rows.end(to: &output) }
      return limit - left
    }
    if case .devices = walk.operation {
      while let number = walk.nextDevice(in: context.registry, work: &left) {
        walk.rows.append(row(ofDevice: number, at: now).json, to: &output)
        left -= TurnBudget.Cost.description
      }
    }
    while let key = walk.next(in: context.registry, work: &left) {
      switch walk.operation {
      case .get:
        walk.rows.append(TargetRow(key, in: context.core, at: now).json, to: &output)
        left -= TurnBudget.Cost.row
      case .pending:
        guard let status = pendingStatus(key, at: now, work: &left) else { continue }
        walk.rows.append(PendingRow(status, in: context.registry, at: now).json, to: &output)
        left -= TurnBudget.Cost.row
      case .log:
        for event in log(of: key, at: now) {
          walk.rows.append(event.json, to: &output)
          left -= TurnBudget.Cost.row
        }
      case .describe:
        walk.rows.append(PropertyRow(key, in: context.core).json, to: &output)
        left -= TurnBudget.Cost.description
      case .flush, .cancel, .set, .step, .toggle, .scene, .watch, .record, .reload, .status,
        .devices:
        preconditionFailure("Only questions about several keys are answered in parts.")
      }
    }
    if walk.isDone { walk.rows.end(to: &output) }
    return limit - left
  }

  /// What waits for `key`, and when it is sent.
  private func pendingStatus(
    _ key: KeyIndex,
    at now: Moment,
    work: inout Int
  ) -> PendingStatus? {
    guard var status = context.core.pending(key) else {
      return nil
    }
    guard status.waits == .lane else { return status }
    if !forecast.isUsable(for: key, at: now) {
      let times = context.core.sendTimes(after: now)
      forecast = LaneForecast(times, at: now)
      work -= forecast.cost
    }
    status.due = forecast[key]
    return status
  }
}

/// When the values that wait in lanes are sent, as worked out at one time.
///
/// That takes time in proportion to all of them, so the parts of a reply share it, and so do
/// replies that are written soon after each other.
struct LaneForecast {
  private let times: [KeyIndex: Moment]
  private let at: Moment

  init(_ times: [KeyIndex: Moment] = [:], at: Moment = .zero) {
    self.times = times
    self.at = at
  }

  /// The work that it took; see ``TurnBudget``.
  var cost: Int { times.count * 2 }

  subscript(key: KeyIndex) -> Moment? { times[key] }

  /// Whether it is new enough: the more values wait, the longer it is used.
  func isUsable(for key: KeyIndex, at now: Moment) -> Bool {
    if at == now { return true }
    guard times[key] != nil else { return false }
    return at.duration(to: now) < .microseconds(10 * times.count)
  }
}

/// Scenes: values of several devices at one instant.
extension RequestHandler {
  /// Sets the values of the scene that the request names.
  ///
  /// Each value is accepted or rejected for itself, and has an answer of its own.
  func setScene(
    _ request: ControlRequest,
    for requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    let registry = context.registry
    let scene: Scene
    do throws(ValidationError) {
      scene = try registry.scene(request.key)
    } catch {
      let error = suggesting(error, at: now)
      requester.setRejection(error)
      host.emitReady()
      let failure = ErrorReply(.unknownKey, error.description, line: line)
      return requester.send(.failure(failure, id: request.replyID))
    }
    let all = scene.values(in: registry)
    requester.expect(parts: all.count)
    let values = all.filter { context.isHere($0.key) }
    host.passOn(all.filter { !context.isHere($0.key) }, of: request, for: requester, at: now)
    let origin = requester.origin(of: request, parts: all.count)
    for _ in values {
      requester.owesReply()
      if origin.wantsPhases { requester.beginWait() }
    }
    let options = ChangeOptions(origin: origin, ttl: request.ttl, skipsQuiet: request.now)
    context.set(values, options, at: now) { requester.setRejection($0) }
  }
}

extension GatewayContext {
  /// Whether this gateway executes changes of a key by a group or a scene: it drives its device, or
  /// the key is a group's.
  func isHere(_ key: KeyIndex) -> Bool {
    let device = registry.device(of: key)
    return core.executesParts(ofDevice: device) || registry.devices[device].group != nil
  }

  /// Sets the values of a scene; each that is rejected has an event that says so.
  func set(
    _ values: [(key: KeyIndex, value: Value)],
    _ options: ChangeOptions,
    at now: Moment,
    onRejection: (ValidationError) -> Void = { _ in }
  ) {
    for (key, _) in values { counters[registry.device(of: key)].changes += 1 }
    let results = core.changeEach(values, at: now, options)
    for ((key, value), error) in zip(values, results) {
      guard let error else { continue }
      onRejection(error)
      let number = core.reject(key, reason: error.description, at: now, origin: options.origin)
      encoder.keepRejectedValue(value.json, ofEvent: number)
    }
  }
}

/// Answers to "why": the details of a property, the message of a value, the last commands of a key.
extension RequestHandler {
  /// The row of one key with its details.
  func described(_ key: KeyIndex, at now: Moment) -> PropertyRow {
    var row = PropertyRow(key, in: context.core)
    row.details = details(of: key, at: now)
    return row
  }

  /// Answers a change that is not to be made.
  func sendPreview(
    _ request: ControlRequest,
    to requester: any Requester,
    line: Int,
    at now: Moment
  ) {
    do throws(ValidationError) {
      let messages = try ChangePreview(context, host, at: now).messages(for: request)
      requester.send(.previewed(messages, id: request.replyID))
    } catch {
      let message = "\(request.key): \(suggesting(error, at: now).description)"
      requester.send(.failure(ErrorReply(.badValue, message, line: line), id: request.replyID))
    }
  }

  /// What `describe` of one key says beside its row.
  func details(of key: KeyIndex, at now: Moment) -> PropertyDetails {
    let registry = context.registry
    let entry = registry[key]
    let device = registry.devices[entry.device]
    let property = entry.property
    var details = PropertyDetails()
    details.out.topic = property.command.topic
    details.out.qos = property.command.qos
    details.ttlMilliseconds = Int(property.ttl.wholeNanoseconds / 1_000_000)
    details.lane = device.lane
    details.members = registry.groups.members(of: key).map { registry[$0].key }
    details.states = property.states.map {
      .init(topic: $0.topic, pointer: $0.value.text, acknowledges: $0.acknowledges)
    }
    details.availability = device.availability.map(\.topic)
    details.awake = device.awake?.topic
    details.retries = property.confirm?.retries ?? 0
    details.backoff = property.confirm?.backoff ?? 1
    details.excludes = property.excludes.map { "\(device.id)/\($0)" }
    details.implies = property.implies.map { .init("\(device.id)/\($0.property)", $0.value.json) }
    if let rule = property.hold {
      details.holdMilliseconds = Int(rule.duration.wholeNanoseconds / 1_000_000)
      details.hands = rule.hands
    }
    if let (source, until) = context.core.holder(of: key, at: now) {
      details.heldBy = source
      details.heldMilliseconds = now.milliseconds(to: until)
    }
    details.obstacle = host.obstacle(to: entry.device, at: now)
    let status = context.core.status(key)
    if !property.isReadOnly, device.group == nil || !property.command.topic.isEmpty,
      let value = status.target ?? status.actual ?? property.kind.example
    {
      details.message = ChangePreview(context, host, at: now).messages([(key, value)]).first
    }
    return details
  }

  /// The last commands of a key as events, the oldest first.
  func log(of key: KeyIndex, at now: Moment) -> [EventObject] {
    context.synchronizeEncoder(at: now)
    let name = context.registry[key].key
    return context.history.entries(of: key).map { context.encoder.object($0, key: name) }
  }

  /// The row of `devices`.
  func row(ofDevice number: Int, at now: Moment) -> DeviceRow {
    let device = context.registry.devices[number]
    let isOnline = context.core.isOnline(device: number)
    var row = DeviceRow()
    row.id = device.id
    row.name = device.name
    row.properties = device.properties.map(\.id)
    row.types = device.properties.map(\.kind.name)
    row.availability = !isOnline ? .offline : device.availability.isEmpty ? .unknown : .online
    row.topic = DeviceRow.shared(device.properties.map(\.command.topic).filter { !$0.isEmpty })
    row.area = device.area
    row.readOnly = device.properties.filter(\.isReadOnly).map(\.id)
    row.lane = device.lane
    row.members = device.group?.members ?? []
    row.sleeps = device.awake != nil
    row.isHeard = !context.core.isUnheard(device: number)
    row.obstacle = host.obstacle(to: number, at: now)
    row.awayMilliseconds = isOnline ? nil : context.awaySince[number]?.milliseconds(to: now)
    return row
  }
}

extension GatewayHost {
  /// Why nothing can be sent to a device at the moment; `nil` if it can.
  func obstacle(to device: Int, at now: Moment) -> String? {
    if !isConnected {
      let client = mqtt.own.client
      let age = AgeText.text(mqtt.own.since.milliseconds(to: now))
      let reason = client.trouble.map { ": \($0.reason)" } ?? ""
      return "the broker \(client.endpoint) is not connected for \(age)\(reason)"
    }
    let description = context.registry.devices[device]
    guard !context.core.isOnline(device: device) else {
      if context.core.awaitsAvailability(of: device) {
        return "the availability of the device \(description.id) is not known yet"
      }
      guard description.awake != nil else { return nil }
      let age = context.awakeSince[device].map {
        ", and was awake \(AgeText.text($0.milliseconds(to: now))) ago"
      }
      return "the device \(description.id) is asleep\(age ?? "")"
    }
    let age = context.awaySince[device].map { " for \(AgeText.text($0.milliseconds(to: now)))" }
    return "the device \(description.id) is offline\(age ?? "")"
  }
}

extension ValueKind {
  /// A value that a property of this type may have.
  fileprivate var example: Value? {
    switch self {
    case .number(let rule), .integer(let rule):
      .number(rule.range.map { rule.snapped(($0.lowerBound + $0.upperBound) / 2) } ?? 1)
    case .boolean: .boolean(true)
    case .choice(let words), .action(let words): words.first.map { .text($0) }
    case .text, .color: nil
    }
  }
}
