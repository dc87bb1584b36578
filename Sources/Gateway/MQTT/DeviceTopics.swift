// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import MQTTTopics

/// The filters for what devices report.
///
/// A hundred devices of a list share one filter with wildcards for each topic that names the device in
/// whole levels. Fewer do not: such a filter may match topics of devices that are not in the list.
/// Devices that appear with their first message do not either: what is retained on their topics
/// would arrive before they do.
struct DeviceTopics {
  /// How many devices of a template share filters.
  private static let sharers = 100

  /// Where states and availability are reported.
  private(set) var states: [String] = []
  /// Where sleeping devices report themselves.
  private(set) var awake: [String] = []
  /// The definitions all of whose topics devices share.
  private var whole: Set<ObjectIdentifier> = []
  /// The filter of each topic of a definition that devices share.
  private var shared: [ObjectIdentifier: [String: String]] = [:]

  /// Collects the topics of all devices; no shared filter matches what any of `others` does.
  init(_ registry: Registry, apartFrom others: [String]) {
    for template in registry.templates
    where template.count >= Self.sharers && template.definition.marks == [TemplateMark.item] {
      share(template.definition, apartFrom: others)
    }
    let rest = registry.deviceNumbers.filter {
      !whole.contains(ObjectIdentifier(registry.definition(ofDevice: $0)))
    }
    for number in rest { addStates(ofDevice: number, in: registry) }
    for number in rest { addOthers(ofDevice: number, in: registry) }
  }

  /// Adds the filters that the devices of a template share.
  private mutating func share(_ definition: DeviceDefinition, apartFrom others: [String]) {
    var filters: [String: String] = [:]
    var isWhole = true
    func filter(_ topic: String) -> String? {
      guard let marked = MarkedTopic(topic, marks: definition.marks), marked.hasWholeLevels,
        !others.contains(where: { Topic.overlaps($0, marked.filter) })
      else {
        isWhole = false
        return nil
      }
      filters[topic] = marked.filter
      return marked.filter
    }
    let pattern = definition.pattern
    for property in pattern.properties { states += property.states.compactMap { filter($0.topic) } }
    states += pattern.availability.compactMap { filter($0.topic) }
    if let topic = pattern.awake.flatMap({ filter($0.topic) }) { awake.append(topic) }
    shared[ObjectIdentifier(definition)] = filters
    if isWhole { whole.insert(ObjectIdentifier(definition)) }
  }

  private mutating func addStates(ofDevice number: Int, in registry: Registry) {
    let definition = registry.definition(ofDevice: number)
    let filters = definition.isShared ? shared[ObjectIdentifier(definition)] ?? [:] : [:]
    for property in definition.pattern.properties {
      for source in property.states where filters[source.topic] == nil {
        states.append(registry.filled(source.topic, ofDevice: number))
      }
    }
  }

  private mutating func addOthers(ofDevice number: Int, in registry: Registry) {
    let definition = registry.definition(ofDevice: number)
    let filters = definition.isShared ? shared[ObjectIdentifier(definition)] ?? [:] : [:]
    for source in definition.pattern.availability where filters[source.topic] == nil {
      states.append(registry.filled(source.topic, ofDevice: number))
    }
    if let topic = definition.pattern.awake?.topic, filters[topic] == nil {
      awake.append(registry.filled(topic, ofDevice: number))
    }
  }
}
