// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// A machine under test with its clock, and a shorthand for what it said.
struct Bench: ~Copyable {
  var machine: CommandStateMachine
  private(set) var now = Moment(nanoseconds: 1_000_000_000)

  /// Connected, and watched, unless told otherwise.
  init(
    _ devices: [Device],
    isConnected: Bool = true,
    settings: CommandSettings = .init()
  ) {
    machine = CommandStateMachine(registry: Registry(devices), settings: settings)
    machine.log.isWatched = true
    machine.connectionChanged(isUp: isConnected, at: now)
  }

  /// One device called `d`.
  init(
    _ properties: Property...,
    isConnected: Bool = true,
    adjust: (inout Device) -> Void = { _ in }
  ) {
    var device = Device(id: "d", name: "D", properties: properties)
    adjust(&device)
    self.init([device], isConnected: isConnected)
  }

  func key(_ name: String) throws -> KeyIndex {
    try machine.registry.index(of: name.contains("/") ? name : "d/\(name)")
  }

  mutating func pass(_ milliseconds: Int) {
    now = now.advanced(by: .milliseconds(milliseconds))
    machine.advance(to: now)
  }

  mutating func pass(to moment: Moment) {
    now = moment
    machine.advance(to: now)
  }

  mutating func set(
    _ name: String,
    _ value: Value,
    origin: ChangeOrigin? = nil,
    ttl: Duration? = nil,
    options: [JSONValue.Member]? = nil,
    now isNow: Bool = false
  ) throws {
    try machine.change(
      .set(value),
      of: key(name),
      at: now,
      ChangeOptions(origin: origin, ttl: ttl, members: options, skipsQuiet: isNow)
    )
  }

  mutating func step(_ name: String, _ amount: Double, origin: ChangeOrigin? = nil) throws {
    try machine.change(.step(amount), of: key(name), at: now, ChangeOptions(origin: origin))
  }

  mutating func toggle(_ name: String) throws {
    try machine.change(.toggle, of: key(name), at: now)
  }

  mutating func report(_ name: String, _ wire: JSONValue) throws {
    machine.reported(try key(name), wire, at: now)
  }

  mutating func acknowledge(_ name: String, _ wire: JSONValue) throws {
    machine.acknowledged(try key(name), wire, at: now)
  }

  mutating func reply(_ name: String, to message: Int64, problem: String? = nil) throws {
    machine.replied(try key(name), to: message, problem: problem, at: now)
  }

  mutating func connect(_ isUp: Bool) { machine.connectionChanged(isUp: isUp, at: now) }

  mutating func online(_ isOnline: Bool, device: Int = 0) {
    machine.availabilityChanged(of: device, source: 0, isOnline: isOnline, at: now)
  }

  /// Everything that may leave now.
  mutating func publishes() -> [CommandPublish] {
    var found: [CommandPublish] = []
    while let publish = machine.nextPublish(at: now) { found.append(publish) }
    return found
  }

  /// The payloads of everything that may leave now; never acknowledged.
  mutating func payloads() -> [String] {
    publishes().map { String(decoding: $0.payload, as: UTF8.self) }
  }

  mutating func finish(
    _ publishes: [CommandPublish],
    _ outcome: PublishOutcome = .acknowledged
  ) {
    for publish in publishes { machine.finish(publish.token, outcome, at: now) }
  }

  /// Lets everything leave and be acknowledged; returns the payloads.
  @discardableResult
  mutating func send() -> [String] {
    let leaving = publishes()
    finish(leaving)
    return leaving.map { String(decoding: $0.payload, as: UTF8.self) }
  }

  mutating func dequeueEvents() -> [CommandEvent] {
    defer { machine.log.events.removeAll() }
    return machine.log.events
  }

  /// What happened since the last look, such as `level sent 40` and `level failed 40: reason`.
  mutating func told() -> [String] {
    dequeueEvents().map { event in
      let name = machine.registry[event.key].key.split(separator: "/")[1]
      let value = event.value.map { " \($0.bareText)" } ?? ""
      return "\(name) \(event.phase)\(value)\(event.reason.map { ": \($0)" } ?? "")"
    }
  }

  var isDrained: Bool { machine.isDrained }
  var hasUnsent: Bool { machine.hasUnsent }

  func target(_ name: String) throws -> Value? { machine.status(try key(name)).target }
  func actual(_ name: String) throws -> Value? { machine.status(try key(name)).actual }
  func phase(_ name: String) throws -> Phase? { machine.status(try key(name)).phase }

  /// Milliseconds from now to the next deadline; `nil` for none.
  func wait() -> Int? {
    machine.nextDeadline(after: now).map {
      Int(now.duration(to: $0).wholeNanoseconds / 1_000_000)
    }
  }
}

extension Property {
  /// A number from 0 to 100 in steps of 1, 300 ms of quiet, without a state topic.
  static func level(
    _ id: String = "level",
    delay: Int = 300,
    adjust: (inout Property) -> Void = { _ in }
  ) -> Property {
    var property = Property(
      id: id,
      kind: .number(NumberRule(range: 0...100, step: 1)),
      policy: Policy(delay: .milliseconds(delay)),
      command: CommandEndpoint(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
    adjust(&property)
    return property
  }

  /// The same with a state topic, confirmed within 5 s.
  static func seen(
    _ id: String = "level",
    retries: Int = 0,
    adjust: (inout Property) -> Void = { _ in }
  ) -> Property {
    level(id) { property in
      property.state = StateSource(topic: "\(id)/state", value: .whole)
      property.confirm = Confirmation(retries: retries)
      adjust(&property)
    }
  }

  /// A level whose messages are numbered, with replies.
  static func numbered(_ id: String = "level") -> Property {
    seen(id) { property in
      property.command.payload = PayloadTemplate(.object(["id": "$id", "v": "$value"]))
      property.states.append(
        StateSource(
          topic: "replies",
          value: .whole,
          acknowledges: true,
          reply: ReplySource(id: .whole)
        )
      )
    }
  }

  static func word(
    _ id: String,
    kind: ValueKind = .text,
    delay: Int = 20,
    adjust: (inout Property) -> Void = { _ in }
  ) -> Property {
    var property = Property(
      id: id,
      kind: kind,
      policy: Policy(delay: .milliseconds(delay)),
      command: CommandEndpoint(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
    adjust(&property)
    return property
  }
}

extension Device {
  /// A device with one ``Property/level(_:delay:adjust:)`` for each name.
  static func of(
    _ id: String,
    lane: String? = nil,
    _ properties: [Property],
    hasAvailability: Bool = true
  ) -> Device {
    var device = Device(id: id, name: id, properties: properties)
    device.lane = lane
    if hasAvailability {
      device.availability = [
        AvailabilitySource(
          topic: "\(id)/status",
          value: .whole,
          online: "online",
          offline: "offline"
        )
      ]
    }
    return device
  }
}
