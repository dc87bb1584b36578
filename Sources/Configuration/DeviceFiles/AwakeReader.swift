// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import LastOut

/// Reads `awake:`, the topic on which a device that sleeps reports itself.
struct AwakeReader {
  /// How long values wait for a sleeping device at least, where its file does not say.
  static let standardTTL = Duration.seconds(24 * 3600)

  let placeholders: Placeholders
  let problems: Problems

  /// Reads the mapping; `none` means that the device does not sleep.
  func source(_ section: Section) -> AwakeSource? {
    guard let node = section["awake"], node.text != "none",
      let fields = section.nested("awake", .awake),
      let topic = fields.topic("topic", placeholders)
    else { return nil }
    guard let value = fields["value"] else { return AwakeSource(topic: topic) }
    let words = (value.elements ?? [value]).compactMap(\.scalarJSON).filter { $0 != .null }
    guard !words.isEmpty, words.count == value.elements?.count ?? 1 else {
      return fields.reject(
        value,
        "value",
        expected: "the payload, which is a word, number, true or false, or a list of them; without "
          + "'value' any payload counts"
      )
    }
    return AwakeSource(topic: topic, value: words.count == 1 ? words[0] : .array(words))
  }
}
