// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices

/// Devices that appear with their first message on a topic: `from:` in a device file.
package struct DeviceSource: Hashable, Sendable {
  /// A topic filter with `+` for what differs from device to device.
  package let filter: String
  package let template: DeviceTemplate

  /// The bytes before the first wildcard and after the last.
  private let ends: [[UInt8]]

  package init(filter: String, template: DeviceTemplate) {
    self.filter = filter
    self.template = template
    let parts = filter.utf8.split(separator: UInt8(ascii: "+"), omittingEmptySubsequences: false)
    ends = [parts.first, parts.last].map { Array($0 ?? "".utf8[...]) }
  }

  /// Whether the filter may match a topic, from its first and last bytes.
  package func mayMatch(_ topic: Span<UInt8>) -> Bool {
    guard topic.count >= ends[0].count + ends[1].count else { return false }
    for place in ends[0].indices where topic[place] != ends[0][place] { return false }
    let start = topic.count - ends[1].count
    for place in ends[1].indices where topic[start + place] != ends[1][place] { return false }
    return true
  }

  /// What fills the placeholders of the device that a topic names; `nil` for a foreign topic.
  package func fillings(from topic: String) -> [Int: DeviceTemplate.Filling]? {
    guard let captures = Topic.captures(filter: filter, name: topic) else { return nil }
    return [Int: DeviceTemplate.Filling](
      uniqueKeysWithValues: captures.enumerated().map { ($0 + 1, DeviceTemplate.Filling($1)) }
    )
  }

  /// Why no device can have the identifier that `fillings` make; `nil` if one can.
  package func problem(with fillings: [Int: DeviceTemplate.Filling]) -> String? {
    if fillings.values.contains(where: \.text.isEmpty) { return "a level of the topic is empty" }
    return Identifiers.problem(inDevice: template.id(fillings))?.message
  }
}
