// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import LastOut
import Operations
import Routing
import Values

/// Devices that appear with their first message: which are new, and what waits for them.
///
/// A new device is added to the definitions by a step of its own, which takes a moment. Until then
/// the newest message of each topic that named a new device is kept, so that it counts as the
/// device's first report.
struct DeviceArrivals {
  /// A device that a message named: the identifier of its template, and what fills it in.
  struct Arrival: Hashable, Sendable {
    let template: String
    let fillings: [Int: DeviceTemplate.Filling]
  }

  /// A message that waits for the device that it named.
  struct Message {
    let topic: String
    let payload: [UInt8]
  }

  /// How many bytes of messages are kept; a device whose message is not kept appears all the same.
  private static let messageLimit = 16 << 20
  /// How many topics are remembered that were logged.
  private static let loggedLimit = 1000

  private(set) var sources: [DeviceSource]
  /// The devices that have appeared, in order.
  private(set) var created: [Arrival] = []
  /// How many messages named a device that was refused.
  private(set) var refusedCount: UInt64 = 0
  /// New devices by identifier, and in order.
  private var waiting: [String: Arrival] = [:]
  private var order: [Arrival] = []
  /// How many devices are about to be added: neither in ``order`` any more nor defined yet.
  private var addingCount = 0
  /// The newest message of each topic, with the device that it named, and the topics in order.
  private var messages: [String: (payload: [UInt8], device: String)] = [:]
  private var topics: [String] = []
  private var messageBytes = 0
  private var logged: Set<String> = []
  private var isLimitLogged = false
  /// When the next devices may be added at the earliest.
  private var next = Moment.zero
  private let log: Logger

  init(_ sources: [DeviceSource], log: Logger) {
    self.sources = sources
    self.log = log
  }

  var isActive: Bool { !sources.isEmpty }

  /// When new devices can be added; `nil` while there are none.
  var deadline: Moment? { order.isEmpty ? nil : next }

  // MARK: - Messages

  /// Receives a message; `false` if no new device is in its topic.
  ///
  /// The device is about to appear, or is refused. The log has the topic of each refusal once, and
  /// the limit of devices once.
  mutating func receive(
    _ topic: String,
    _ payload: Span<UInt8>,
    in registry: Registry,
    limit: Int
  ) -> Bool {
    if let known = messages[topic] {
      keep(topic, payload, of: known.device)
      return true
    }
    var namesDevice = false
    for source in sources {
      guard let fillings = source.fillings(from: topic) else { continue }
      let id = source.template.id(fillings)
      if registry.deviceIndex(ofID: id.utf8.span) != nil { continue }
      // An empty message removes what was retained; no device sends it.
      if payload.isEmpty { continue }
      namesDevice = true
      if let problem = source.problem(with: fillings) {
        refusedCount += 1
        logRefusal(of: topic, problem)
      } else if waiting[id] == nil,
        registry.deviceNumbers.count + addingCount + order.count >= limit
      {
        refusedCount += 1
        if !isLimitLogged {
          isLimitLogged = true
          let reason = "limits.devices allows \(limit), and there are so many"
          log.warning(
            "Too many devices: further ones that messages name are ignored",
            ["topic": Excerpt.of(topic), "reason": reason]
          )
        }
      } else {
        add(Arrival(template: source.template.pattern.id, fillings: fillings), id)
        keep(topic, payload, of: id)
      }
    }
    return namesDevice
  }

  private mutating func add(_ arrival: Arrival, _ id: String) {
    guard waiting[id] == nil else { return }
    waiting[id] = arrival
    order.append(arrival)
  }

  private mutating func keep(_ topic: String, _ payload: Span<UInt8>, of device: String) {
    let known = messages[topic]?.payload.count
    let bytes = messageBytes + payload.count - (known ?? 0)
    guard bytes <= Self.messageLimit else { return }
    messageBytes = bytes
    if known == nil { topics.append(topic) }
    messages[topic] = (Bytes.of(payload), device)
  }

  private mutating func logRefusal(of topic: String, _ reason: String) {
    guard logged.count < Self.loggedLimit, logged.insert(topic).inserted else { return }
    log.warning(
      "A message names a device that cannot be",
      ["topic": Excerpt.of(topic), "reason": reason]
    )
  }

  // MARK: - New devices

  /// The devices to add now, once.
  mutating func popNew(at now: Moment) -> [Arrival] {
    guard !order.isEmpty, next <= now else { return [] }
    defer { order = [] }
    addingCount = order.count
    return order
  }

  /// New devices count from now on, after a step that took `duration`.
  ///
  /// The next ones wait four times as long, so that many devices that appear one after the other
  /// cost a fifth of the time at most.
  mutating func added(_ arrivals: [Arrival], after duration: Duration, at now: Moment) {
    created += arrivals
    addingCount = 0
    next = now.advanced(by: min(duration * 4, .seconds(10)))
  }

  /// Whether messages may wait for a device.
  func isNew(_ id: String) -> Bool { waiting[id] != nil }

  /// Some of the messages whose device has appeared, in order; none once there are no more.
  mutating func popMessages(_ limit: Int, in registry: Registry) -> [Message] {
    var popped: [Message] = []
    var looked = 0
    while looked < topics.count, popped.count < limit,
      let message = messages[topics[looked]],
      registry.deviceIndex(ofID: message.device.utf8.span) != nil
    {
      popped.append(Message(topic: topics[looked], payload: message.payload))
      looked += 1
    }
    for message in popped {
      messageBytes -= message.payload.count
      messages[message.topic] = nil
    }
    topics.removeFirst(looked)
    return popped
  }

  /// All messages of devices that have appeared were received.
  mutating func finish(in registry: Registry) {
    waiting = waiting.filter { registry.deviceIndex(ofID: $0.key.utf8.span) == nil }
  }

  // MARK: - Reload

  /// Continues with other templates; devices whose template is gone are gone too.
  mutating func replaceSources(_ sources: [DeviceSource]) {
    self.sources = sources
    let templates = Set(sources.map(\.template.pattern.id))
    created = created.filter { templates.contains($0.template) }
    order = order.filter { templates.contains($0.template) }
    waiting = waiting.filter { templates.contains($0.value.template) }
    // A message of a device that cannot appear any more would keep those behind it from theirs.
    topics = topics.filter { waiting[messages[$0]?.device ?? ""] != nil }
    messages = messages.filter { waiting[$0.value.device] != nil }
    messageBytes = messages.values.reduce(0) { $0 + $1.payload.count }
    isLimitLogged = false
  }

  /// The devices of some arrivals, by the templates of today; those without a template are left
  /// out.
  static func devices(_ arrivals: [Arrival], of sources: [DeviceSource]) -> [DeviceInstance] {
    var templates: [String: TemplateDevices] = [:]
    for source in sources {
      templates[source.template.pattern.id] = TemplateDevices(source.template)
    }
    return arrivals.compactMap { templates[$0.template]?.device($0.fillings) }
  }
}
