// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The topics of templates, each of which stands for the topics of all its devices.
///
/// A topic is found by what is left of it without the levels that name the device. So a message
/// takes one look-up for each choice of such levels, however many templates and devices there are.
struct TopicPatterns: ~Copyable {
  /// A topic of a template.
  private struct Entry {
    let topic: MarkedTopic
    let definition: DeviceDefinition
    let role: Role
  }

  /// What the topic of one device is.
  private enum Role {
    case state(property: Int, source: Int)
    case availability(source: Int)
    case awake
  }

  /// The topics with `+` in place of the levels that name the device.
  private var filters = KeyTable()
  /// By filter.
  private var topics = KeyArray<[Entry]>()
  /// The positions of the levels that name the device, each choice once.
  private var shapes: [[Int]] = []
  /// The levels of the topic that is looked up, and the bytes of its filter.
  private var levels: [Range<Int>] = []
  private var filter: [UInt8] = []

  var isEmpty: Bool { shapes.isEmpty }

  /// Adds the topics of a template.
  mutating func add(_ definition: DeviceDefinition) {
    // In the order of ``TopicMap/add(_:of:)``.
    for (place, property) in definition.pattern.properties.enumerated() {
      for (number, source) in property.states.enumerated() {
        add(.state(property: place, source: number), source.topic, of: definition)
      }
    }
    for (number, source) in definition.pattern.availability.enumerated() {
      add(.availability(source: number), source.topic, of: definition)
    }
    if let awake = definition.pattern.awake { add(.awake, awake.topic, of: definition) }
  }

  private mutating func add(_ role: Role, _ text: String, of definition: DeviceDefinition) {
    guard let topic = MarkedTopic(text, marks: definition.marks) else { return }
    let shape = topic.levels.map(\.position)
    if !shapes.contains(shape) { shapes.append(shape) }
    let index = filters.intern(topic.filter)
    topics.extend(toInclude: index, with: [])
    topics[index].append(Entry(topic: topic, definition: definition, role: role))
  }

  /// The roles of a topic; empty for one of no device of a template.
  mutating func roles(of topic: Span<UInt8>, in registry: Registry) -> [TopicTable.Role] {
    split(topic)
    var roles: [TopicTable.Role] = []
    for shape in shapes {
      guard let last = shape.last, last < levels.count else { continue }
      replace(shape, of: topic)
      guard let index = filters.find(filter.span) else { continue }
      for entry in topics[index] {
        guard
          let device = entry.topic.device(
            topic,
            levels: levels,
            of: entry.definition,
            in: registry
          )
        else { continue }
        switch entry.role {
        case .state(let place, let source):
          let key = KeyIndex(registry.indices(ofDevice: device)[place])
          roles.append(.state(key, source: source))
        case .availability(let source):
          roles.append(.availability(device: device, source: source))
        case .awake: roles.append(.awake(device: device))
        }
      }
    }
    return roles
  }

  private mutating func split(_ topic: Span<UInt8>) {
    levels.removeAll(keepingCapacity: true)
    var start = 0
    for place in topic.indices where topic[place] == UInt8(ascii: "/") {
      levels.append(start..<place)
      start = place + 1
    }
    levels.append(start..<topic.count)
  }

  /// Makes the filter that has wildcards in place of some levels.
  private mutating func replace(_ shape: [Int], of topic: Span<UInt8>) {
    filter.removeAll(keepingCapacity: true)
    var wild = shape[...]
    for (position, level) in levels.enumerated() {
      if position > 0 { filter.append(UInt8(ascii: "/")) }
      if wild.first == position {
        wild.removeFirst()
        filter.append(UInt8(ascii: "+"))
      } else {
        for place in level { filter.append(topic[place]) }
      }
    }
  }
}
