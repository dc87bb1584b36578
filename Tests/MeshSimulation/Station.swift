// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Values

/// The gateway's command machine, a ``Mesh`` behind it, and the clock of both.
///
/// Each device has one property, so that the number of a device is that of its key. A value is a
/// whole number of the caller's choice.
struct Station: ~Copyable {
  /// The name of the lane that devices share.
  static let lane = "mesh"

  var machine: CommandStateMachine
  private(set) var mesh: Mesh
  private(set) var now = Moment(nanoseconds: 1_000_000_000)
  private(set) var isConnected = true
  /// What each device reported while nobody listened.
  private var missed: [Int: Int] = [:]
  /// What each device has.
  private(set) var shown: [Int: Int] = [:]

  /// The key of the group of all devices, if there is one.
  private let group: KeyIndex?

  /// - Parameters:
  ///   - devices: The devices, numbered from 0.
  ///   - limits: The limits of their lane.
  ///   - mesh: The mesh between the gateway and the devices.
  ///   - isGrouped: Whether there is a group of all devices, which one message reaches.
  init(
    _ devices: [Device],
    _ limits: LaneLimits?,
    _ mesh: Mesh,
    isGrouped: Bool = false
  ) {
    self.mesh = mesh
    group = isGrouped ? KeyIndex(Int32(devices.count)) : nil
    let devices = devices + (isGrouped ? [Self.group(of: devices)] : [])
    var settings = CommandSettings()
    if let limits { settings.lanes[Self.lane] = limits }
    machine = CommandStateMachine(registry: Registry(devices), settings: settings)
    machine.log.isWatched = true
    machine.connectionChanged(isUp: true, at: now)
  }

  /// A device with one property, which confirms by its report and gets two more attempts.
  static func device(
    _ id: String,
    policy: Policy,
    ttl: Duration = .seconds(60),
    sleeps: Bool = false
  ) -> Device {
    var level = Property(
      id: "level",
      kind: .integer(NumberRule(range: 0...1_000_000, step: 1)),
      policy: policy,
      command: CommandEndpoint(topic: "\(id)/set", payload: PayloadTemplate("$value"))
    )
    level.state = StateSource(topic: id, value: .whole)
    level.confirm = Confirmation(within: .seconds(5), retries: 2)
    level.urgent = [.number(0)]
    level.ttl = ttl
    var device = Device(id: id, name: id, properties: [level])
    device.lane = lane
    if sleeps { device.awake = AwakeSource(topic: id) }
    return device
  }

  private static func group(of devices: [Device]) -> Device {
    var group = Device(
      id: "all",
      name: "all",
      properties: DeviceGroup.sharedProperties(of: devices)
    )
    group.group = DeviceGroup(members: devices.map(\.id))
    group.properties[0].command.topic = "all/set"
    return group
  }

  /// When something happens next.
  var next: Moment? { Moment.earlier(meshNext, machine.nextDeadline(after: now)) }

  private var meshNext: Moment? {
    mesh.next.map { Moment(nanoseconds: UInt64(($0 * 1e6).rounded(.up))) }
  }

  /// The lane, if it has a limit.
  var lane: LaneStatus? { machine.sendQueue.laneStatuses.first }

  /// Somebody asks the gateway for a value.
  ///
  /// `part` is the command of the group that it is a part of.
  mutating func change(_ device: Int, to value: Int, part: GroupPart? = nil) {
    do {
      try machine.change(
        .set(.number(Double(value))),
        of: KeyIndex(Int32(device)),
        at: now,
        ChangeOptions(origin: part.map { ChangeOrigin(wantsPhases: true, group: $0) })
      )
    } catch {
      preconditionFailure("A value is rejected: \(error)")
    }
    machine.advance(to: now)
  }

  /// Somebody asks the gateway for a value of the group: each device, in this order, gets a change.
  mutating func changeGroup(_ devices: [Int], to value: Int) {
    guard let group else { preconditionFailure("There is no group.") }
    let number = machine.log.nextNumber()
    let part = GroupPart(key: group, number: number, name: "all")
    for device in devices { change(device, to: value, part: part) }
  }

  /// Hands the adapter all that may leave now.
  ///
  /// - Returns: The values, and how many of them the adapter dropped.
  mutating func send() -> (values: [Int], dropped: Int) {
    var (values, dropped) = ([Int](), 0)
    while let publish = machine.nextPublish(at: now) {
      machine.finish(publish.token, .acknowledged, at: now)
      let device = Int(publish.keys[0].rawValue)
      let value = Int(String(decoding: publish.payload, as: UTF8.self)) ?? 0
      values.append(value)
      let isForAll = publish.keys.count > 1
      if isForAll ? publishToAll(value) : self.publish(value, to: device) { dropped += 1 }
    }
    return (values, dropped)
  }

  /// Hands the adapter a value for all devices; returns whether the adapter dropped it.
  private mutating func publishToAll(_ value: Int) -> Bool {
    let lamps = machine.registry.devices.count - 1
    let event = mesh.sendToAll(value, lamps: lamps, at: Double(now.nanoseconds) / 1e6)
    if case .dropped = event { return true }
    return false
  }

  /// Hands the adapter a value without asking the gateway.
  ///
  /// - Returns: Whether the adapter dropped it.
  mutating func publish(_ value: Int, to device: Int) -> Bool {
    let event = mesh.send(value, to: device, at: Double(now.nanoseconds) / 1e6)
    if case .dropped = event { return true }
    return false
  }

  /// What happened to commands since the last call.
  mutating func takeEvents() -> [CommandEvent] {
    defer {
      machine.log.events.removeAll(keepingCapacity: true)
      machine.log.statuses.changedKeys.removeAll(keepingCapacity: true)
    }
    return machine.log.events
  }

  /// Moves the clock, at most to ``next``.
  ///
  /// - Returns: The device that got a value.
  mutating func pass(to moment: Moment) -> Int? {
    let isMesh = meshNext.map { $0 <= moment } ?? false
    now = max(now, moment)
    defer { machine.advance(to: now) }
    guard isMesh else { return nil }
    switch mesh.step() {
    case .arrived(let device, let value):
      shown[device] = value
      return device
    case .reported(let device, let value): report(value, of: device)
    case .dropped, nil: break
    }
    return nil
  }

  private mutating func report(_ value: Int, of device: Int) {
    guard isConnected else {
      missed[device] = value
      return
    }
    know(value, of: device)
    machine.advance(to: now)
    machine.deviceAwoke(device, at: now)
  }

  private mutating func know(_ value: Int, of device: Int) {
    machine.reported(KeyIndex(Int32(device)), .integer(Int64(value)), at: now)
  }

  /// The broker goes away, or comes back; then the adapter publishes again what it heard meanwhile.
  ///
  /// A valve that reported meanwhile sleeps again.
  mutating func connect(_ isUp: Bool) {
    isConnected = isUp
    machine.connectionChanged(isUp: isUp, at: now)
    guard isUp else { return }
    for (device, value) in missed.sorted(by: { $0.key < $1.key }) { know(value, of: device) }
    missed = [:]
  }
}
