// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Routing

/// Command topics, which are read rather than looked up: `base/device/property/set`.
extension TopicMap {
  /// The role of a command topic of a device that exists; `nil` for any other topic.
  func commandRole(of topic: Span<UInt8>, in registry: Registry) -> TopicTable.Role? {
    let start = baseBytes.count + 1
    guard topic.count > start, topic[start - 1] == UInt8(ascii: "/") else { return nil }
    for place in baseBytes.indices where topic[place] != baseBytes[place] { return nil }
    var end = topic.count - 1
    while end > start, topic[end] != UInt8(ascii: "/") { end -= 1 }
    guard end > start else { return nil }
    let name = topic.extracting(start..<end)
    let verb = topic.extracting(end + 1..<topic.count)
    // Identifiers have no slash, so that a name with one is a key.
    for place in name.indices where name[place] == UInt8(ascii: "/") {
      guard let known = KeyVerb(verb) else { return nil }
      if let key = registry.index(ofKey: name) { return .command(known.command(key)) }
      return known == .set ? light(name, in: registry).map { .command(.light($0)) } : nil
    }
    if Bytes.areEqual(verb, Self.set) {
      return registry.deviceIndex(ofID: name).map { .command(.deviceSet($0)) }
    }
    if Bytes.areEqual(verb, Self.get) {
      return registry.deviceIndex(ofID: name).map { .deviceGet($0) }
    }
    return nil
  }

  /// The key in the name of a lamp: `device/property/light`.
  private func light(_ name: Span<UInt8>, in registry: Registry) -> KeyIndex? {
    let ending = Self.light
    guard subscriptions.hasLights, name.count > ending.count else { return nil }
    let start = name.count - ending.count
    guard Bytes.areEqual(name.extracting(start..<name.count), ending) else { return nil }
    return registry.index(ofKey: name.extracting(0..<start))
  }

  private static let light = Array("/light".utf8)
  private static let set = Array("set".utf8)
  private static let get = Array("get".utf8)
}

/// The last level of a key's command topics.
private enum KeyVerb {
  case set
  case step
  case toggle
  case flush
  case cancel

  init?(_ word: Span<UInt8>) {
    // No two of them have both the length and the first byte in common.
    switch (word.count, word.isEmpty ? 0 : word[0]) {
    case (3, UInt8(ascii: "s")) where Bytes.areEqual(word, Self.setWord): self = .set
    case (4, UInt8(ascii: "s")) where Bytes.areEqual(word, Self.stepWord): self = .step
    case (6, UInt8(ascii: "t")) where Bytes.areEqual(word, Self.toggleWord): self = .toggle
    case (5, UInt8(ascii: "f")) where Bytes.areEqual(word, Self.flushWord): self = .flush
    case (6, UInt8(ascii: "c")) where Bytes.areEqual(word, Self.cancelWord): self = .cancel
    default: return nil
    }
  }

  func command(_ key: KeyIndex) -> TopicTable.Command {
    switch self {
    case .set: .set(key)
    case .step: .step(key)
    case .toggle: .toggle(key)
    case .flush: .flush(key)
    case .cancel: .cancel(key)
    }
  }

  private static let setWord = Array("set".utf8)
  private static let stepWord = Array("step".utf8)
  private static let toggleWord = Array("toggle".utf8)
  private static let flushWord = Array("flush".utf8)
  private static let cancelWord = Array("cancel".utf8)
}
