// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// A device as it was announced, in the words of a device file.
struct ImportedDevice: Hashable, Sendable {
  /// What stays the same when the device is renamed.
  var identity: String
  var name: String
  /// What it is, for the comment above it: maker and model, where it was announced.
  var comment: String
  /// A topic that all its topics begin with; `nil`: none.
  var topic: String?
  /// A built-in profile that fits; what equals it is not written.
  var profile: String?
  /// One without properties, for where the former does not fit after all.
  var plainProfile: String?
  var lane: String?
  var merge = false
  var options: [String] = []
  /// The sources, as a device file has them; empty: none is known.
  var availability: [JSONValue] = []
  var properties: [ImportedProperty] = []

  init(identity: String, name: String, comment: String) {
    self.identity = identity
    self.name = name
    self.comment = comment
  }

  /// Where its commands go, placeholders filled in.
  var commandTopics: [String] {
    properties.compactMap { property in
      property["command"]?["topic"]?.string.map { DollarText.expanded($0, topic: topic ?? "") }
    }
  }
}
