// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Configuration
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import MQTT
import Operations
import Routing
import Values

/// Receiving messages: the roles of their topic decide how they are read.
extension MQTTSurface {
  /// Receives one message; topic and payload are borrowed for the call.
  func receive(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    from broker: Int
  ) {
    let now = EventLoop.now()
    let announcesGroups = routes.readAnnouncement(topic, payload, from: broker)
    if announcesGroups, broker == 0, sessions != nil, context.receivingPartition == nil {
      // The session of a route that forwards it receives it too.
      return
    }
    let isAnnouncement = broker == 0 && (onAnnouncement?(topic, payload, now) ?? false)
    var isKnown = broker == 0 && (discovery?.receive(topic, payload, message) ?? false)
    guard payload.count <= payloadLimit else {
      if isKnown { return }
      let isOurs =
        broker == 0
        && (!topics.roles(of: topic).isEmpty
          || topics.commandRole(of: topic, in: context.registry) != nil)
      let isForwarded = !isOurs && routes.forward(topic, payload, message, from: broker, at: now)
      if isForwarded || announcesGroups || isAnnouncement { return }
      let size = payload.count
      return context.core.reject(
        .tooLarge,
        topic: Text.of(topic),
        reason: "\(size) bytes, \(payloadLimit) allowed",
        at: now
      )
    }
    if broker == 0 {
      if sessions != nil, context.receivingPartition == nil,
        receiveMemberStatus(topic, payload)
      {
        return
      }
      if let role = topics.commandRole(of: topic, in: context.registry) {
        isKnown = true
        if case .command(let command) = role {
          if !ignoresRetained(message, on: topic) {
            receive(command, topic, payload, message, at: now)
          }
        } else if case .deviceGet(let device) = role {
          context.core.repeatTargets(ofDevice: device)
        }
      }
      let roles = topics.roles(of: topic)
      if !roles.isEmpty {
        isKnown = true
        receive(topic, payload, message, for: roles, at: now)
      }
      if context.arrivals.isActive, receiveArrival(topic, payload) { isKnown = true }
    }
    let isRouted = routes.receive(topic, payload, message, from: broker, at: now)
    if isRouted || announcesGroups || isAnnouncement { isKnown = true }
    if !isKnown, broker == 0 { receiveUnknown(topic, message, at: now) }
  }

  private func receive(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    for roles: [TopicTable.Role],
    at now: Moment
  ) {
    // Parsed once, however many properties share the topic.
    var document: JSONValue?
    for role in roles {
      switch role {
      case .command(let command):
        if ignoresRetained(message, on: topic) { continue }
        receive(command, topic, payload, message, at: now)
      case .state, .availability:
        if payload.isEmpty || !concerns(role) { continue }
        let known = document ?? StatePayload.read(payload)
        document = known
        receiveReport(known, payload, for: role, among: roles, at: now)
      case .awake(let device):
        if !concerns(role) { continue }
        // A retained message says that the device was awake, not that it is.
        if message.flags.retained { continue }
        let known = document ?? StatePayload.read(payload)
        document = known
        deviceReports.receiveAwake(of: device, known, at: now)
      case .deviceGet(let device): context.core.repeatTargets(ofDevice: device)
      case .busy(let lane):
        if message.flags.retained { continue }
        let known = document ?? StatePayload.read(payload)
        document = known
        if context.configuration.lanes[lane]?.busy?.matches(known) ?? false {
          context.core.laneIsBusy(lane, at: now)
        }
      case .status: receiveStatus(payload, isRetained: message.flags.retained)
      case .marker:
        receiveMarker(payload, at: now)
      }
    }
  }

  /// What was published behind the messages that a broker retains came back on the same connection.
  private func receiveMarker(_ payload: Span<UInt8>, at now: Moment) {
    let partition = context.receivingPartition
    let link = partition.flatMap { sessions?[$0]?.link } ?? own
    guard Bytes.areEqual(payload, link.marker) else { return }
    let devices = partition.map { context.places?.devices(of: $0) ?? [] }
    context.core.retainedMessagesCompleted(of: devices, at: now)
  }

  /// Whether this gateway handles a message in this role.
  private func concerns(_ role: TopicTable.Role) -> Bool {
    guard sessions != nil else { return true }
    return switch role {
    case .state(let key, _): context.concerns(device: context.registry.device(of: key))
    case .availability(let device, _), .awake(let device), .deviceGet(let device):
      context.concerns(device: device)
    case .command, .busy, .status, .marker: true
    }
  }

  /// Receives what a member of the cluster says of itself; `false` for any other topic.
  private func receiveMemberStatus(_ topic: Span<UInt8>, _ payload: Span<UInt8>) -> Bool {
    guard let member = topics.member(inStatusTopic: topic) else { return false }
    if member == context.configuration.cluster?.member {
      // Another process of this name has ended.
      if Bytes.areEqual(payload, Array("offline".utf8)) { publishStatus() }
      return true
    }
    onMemberStatus?(member, Bytes.areEqual(payload, Array("online".utf8)))
    return true
  }

  /// Receives what a device reports; other roles have no report.
  ///
  /// `roles` are all of the topic.
  func receiveReport(
    _ document: JSONValue,
    _ payload: Span<UInt8>,
    for role: TopicTable.Role,
    among roles: [TopicTable.Role],
    at now: Moment
  ) {
    switch role {
    case .state(let key, let source):
      deviceReports.receiveState(of: key, source: source, document, payload, at: now)
    case .availability(let device, let source):
      let isChanged = deviceReports.receiveAvailability(
        of: device,
        source: source,
        document,
        isShared: TopicTable.Role.shareAvailability(roles),
        at: now
      )
      guard isChanged else { return }
      context.availabilityChanged(of: device, at: now)
      onAvailability?(device)
      discovery?.availabilityChanged(of: device)
    case .command, .awake, .deviceGet, .busy, .status, .marker: break
    }
  }

  private func receive(
    _ command: TopicTable.Command,
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) {
    do throws(ValidationError) {
      let origin = self.origin(of: message)
      try commandMessages.receive(command, topic, payload, origin, at: now)
    } catch {
      let reason = error.description
      context.core.reject(
        RejectionLog.Kind(error),
        topic: Text.of(topic),
        reason: reason,
        at: now
      )
      if case .deviceSet(let device) = command {
        let id = context.registry.id(ofDevice: device)
        let origin = self.origin(of: message)
        let object = rejection(key: id, of: origin, reason: reason, at: now)
        if !commandMessages.namesProperty(payload, ofDevice: device) {
          onRejection?(object, device)
        }
        reply(object, to: origin)
      }
    }
  }

  // MARK: - Rejected messages

  /// Rejects a command for a device or property that does not exist.
  private func receiveUnknown(
    _ topic: Span<UInt8>,
    _ message: borrowing InboundMessage,
    at now: Moment
  ) {
    let name = Text.of(topic)
    guard topics.isCommandTopic(name) else { return }
    if ignoresRetained(message, on: topic) { return }
    var key = topics.key(ofCommandTopic: name)
    let reason: String
    if key.utf8.count > KeySyntax.longest {
      // Nothing more is done with it: a sender could keep the gateway busy with long topics.
      reason = "the topic names a key of \(key.utf8.count) bytes; \(KeySyntax.longest) are allowed"
      key = Excerpt.of(key)
    } else {
      reason = unknownKeyReason(key)
      key = key.split(separator: "/").joined(separator: "/")
    }
    context.core.reject(.unknownKey, topic: name, reason: reason, at: now)
    guard let origin = self.origin(of: message) else { return }
    reply(rejection(key: key, of: origin, reason: reason, at: now), to: origin)
  }

  /// Which device, property or scene does not exist; nobody reads a suggestion here.
  private func unknownKeyReason(_ key: String) -> String {
    do throws(ValidationError) {
      if let scene = TopicMap.scene(inKey: key) {
        _ = try context.registry.scene(scene)
      } else if key.utf8.contains(UInt8(ascii: "/")) {
        _ = try context.registry.index(of: key)
      } else {
        _ = try context.registry.deviceIndex(of: key)
      }
      return "no such key"
    } catch {
      return error.description
    }
  }

  /// The event of a message that concerns no single known key.
  private func rejection(
    key: String,
    of origin: ChangeOrigin?,
    reason: String,
    at now: Moment
  ) -> EventObject {
    context.synchronizeEncoder(at: now)
    return context.encoder.rejection(
      key: key,
      source: origin?.source ?? "mqtt",
      reason: reason,
      at: now,
      number: context.core.nextNumber()
    )
  }

  /// Sends an event to the sender of a message, if it wants a reply.
  private func reply(_ event: EventObject, to origin: ChangeOrigin?) {
    guard let origin, let topic = origin.responseTopic else { return }
    reply(event.bytes, on: topic, correlationData: origin.correlationData)
  }

  /// The origin of a message, where it matters: when the sender wants a reply and gets one.
  ///
  /// A value may wait for long, so nothing is kept for a sender that gets no reply.
  private func origin(of message: borrowing InboundMessage) -> ChangeOrigin? {
    guard let topic = message.responseTopic else { return nil }
    let correlationData = message.correlationData
    let isAllowed = replyTopics.allows(topic, correlationData) { topics.isCommandTopic($0) }
    guard isAllowed else { return nil }
    return ChangeOrigin(source: "mqtt", responseTopic: topic, correlationData: correlationData)
  }
}

/// The roles of the topics at the gateway's own broker, found by raw bytes in constant time.
struct TopicTable: ~Copyable {
  enum Role {
    /// Each message is a request; retained ones are ignored.
    case command(Command)
    /// `settle/<device>/get`.
    case deviceGet(Int)
    /// A device's state topic: the property, and which of its sources.
    case state(KeyIndex, source: Int)
    case availability(device: Int, source: Int)
    /// A sleeping device reports itself here.
    case awake(device: Int)
    /// The mesh of a lane says that it is busy.
    case busy(lane: String)
    /// The status of a gateway at this base topic: this one's or another's.
    case status
    /// What follows the messages that the broker retains.
    case marker

    /// Whether a topic with these roles has the availability of several devices.
    static func shareAvailability(_ roles: [Role]) -> Bool {
      let places = roles.indices.lazy.filter {
        if case .availability = roles[$0] { true } else { false }
      }
      return places.prefix(2).count > 1
    }

    /// The order in which the roles of a topic receive a message: a value that a device turns out
    /// to have need not be sent when it reports itself.
    var rank: Int {
      switch self {
      case .command: 0
      case .deviceGet: 1
      case .state: 2
      case .availability: 3
      case .awake: 4
      case .busy: 5
      case .status: 6
      case .marker: 7
      }
    }
  }

  enum Command {
    case set(KeyIndex)
    case step(KeyIndex)
    case toggle(KeyIndex)
    case flush(KeyIndex)
    case cancel(KeyIndex)
    /// `settle/<device>/set`.
    case deviceSet(Int)
    /// `settle/<device>/<property>/light/set`, in Home Assistant's JSON schema.
    case light(KeyIndex)
    /// `settle/scene/<name>/set`.
    case scene(String)
    /// A foreign event that becomes a change.
    case input(Int)
  }

  private var names = KeyTable()
  /// By topic index; most topics have one role, a shared state topic has several.
  private var roles = KeyArray<[Role]>()

  mutating func add(_ role: Role, for topic: String) {
    let index = names.intern(topic)
    roles.extend(toInclude: index, with: [])
    roles[index].append(role)
  }

  /// Removes the roles of the last topics, `limit` of them at most, from a table that is not used
  /// any more: each has memory of its own.
  ///
  /// - Returns: Whether none is left.
  mutating func free(_ limit: Int) -> Bool {
    roles.removeLast(min(limit, roles.count))
    return roles.isEmpty
  }

  /// The roles of a topic; empty for one that has none.
  func roles(of topic: Span<UInt8>) -> [Role] {
    guard let index = names.find(topic) else { return [] }
    return roles[index]
  }
}
