// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import Values

/// What a device was read from: its entry in a file, and the item of a template.
struct DeviceEntry {
  let pair: YAMLNode.Pair
  var item: String?

  /// The device as it would be with another `topic`; `nil` after a mistake, which goes to the
  /// decoder's problems.
  func device(withTopic topic: YAMLNode, _ decoder: DeviceDecoder) -> Device? {
    var pairs = pair.value.pairs ?? []
    pairs.removeAll { $0.key == "topic" }
    pairs.append(.init(key: "topic", keyPosition: topic.position, value: topic))
    let node = YAMLNode(.mapping(pairs), at: pair.value.position)
    var decoder = decoder
    let device = decoder.device(
      .init(key: pair.key, keyPosition: pair.keyPosition, value: node),
      count: 1
    )
    guard let item else { return device }
    return device.map { TemplateDevices(DeviceTemplate($0)).device(item: item).device }
  }
}
