// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
package import LastOut

/// A message that asks a device for its state.
package struct StateRequestMessage: Hashable, Sendable {
  package let device: Int
  package let topic: String
  package private(set) var payload: [UInt8]
  /// The keys whose state it asks for.
  package private(set) var keys: [KeyIndex] = []

  /// Composes the next message for a device; `nil` when nothing of it is wanted.
  ///
  /// It asks for the first property that is wanted, and for all others whose requests fit into the
  /// same message: equal ones, and JSON objects for the same topic.
  init?(ofDevice device: Int, _ requests: borrowing StateRequests, in registry: Registry) {
    var lead: StateRequest?
    var members: [JSONValue.Member]?
    var keys: [KeyIndex] = []
    for raw in registry.indices(ofDevice: device) {
      let key = KeyIndex(raw)
      let left = requests.wanted(key)
      guard left > 0, let next = registry[key].property.request(left: left) else { continue }
      guard let lead else {
        lead = next
        members = next.members
        keys.append(key)
        continue
      }
      guard next.topic == lead.topic else { continue }
      if let known = members, let more = next.members {
        guard let union = Self.union(known, more) else { continue }
        members = union
      } else if next != lead {
        continue
      }
      keys.append(key)
    }
    guard let lead else { return nil }
    self.device = device
    self.keys = keys
    topic = lead.topic
    payload = members.map { JSONWriter.bytes(.object($0)) } ?? lead.payload
  }

  /// The members of both; `nil` where they contradict each other.
  private static func union(
    _ left: [JSONValue.Member],
    _ right: [JSONValue.Member]
  ) -> [JSONValue.Member]? {
    var all = left
    for member in right {
      guard let known = left.first(where: { $0.name == member.name }) else {
        all.append(member)
        continue
      }
      guard known.value == member.value else { return nil }
    }
    return all
  }
}

extension Property {
  /// The request to send next when the last `left` ones remain.
  fileprivate func request(left: Int) -> StateRequest? {
    let requests = states.compactMap(\.get)
    return left <= requests.count ? requests[requests.count - left] : requests.last
  }
}
