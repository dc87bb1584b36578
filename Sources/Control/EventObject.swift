// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// One event of a command's life cycle, the same object on every surface.
package struct EventObject: ListedObject, Hashable, Sendable {
  /// The caller's identifier, or the gateway's.
  package var id = ""
  package var key = ""
  package var phase = Phase.accepted
  /// The value of the command; `nil` where there is none, as for a rejected toggle.
  package var value: JSONValue?
  /// Changes to this key that were replaced since its last run or cancel.
  package var collapsed = 0
  package var source: String?
  /// The wall-clock time, such as `2026-11-21T08:00:00.123Z`.
  package var at = ""
  /// The number of the attempt, from 1; retries increase it.
  package var attempt = 1
  /// The reason in words, if the phase alone does not explain it.
  package var reason: String?
  /// The group whose command this is a part of.
  package var group: String?
  /// The member of the cluster that drives the device; `nil` without a cluster.
  package var gateway: String?
  /// The person who asked, where a proxy or the requester says so.
  package var by: String?
  /// In the answer to a change of several properties: how many answers it has, one for each.
  package var of: Int?

  package init() {}

  package init(
    id: String,
    key: String,
    phase: Phase,
    value: JSONValue?,
    collapsed: Int = 0,
    source: String? = nil,
    at: String,
    reason: String? = nil
  ) {
    self.id = id
    self.key = key
    self.phase = phase
    self.value = value
    self.collapsed = collapsed
    self.source = source
    self.at = at
    self.reason = reason
  }
}

extension EventObject {
  package mutating func list(_ members: inout MemberList) {
    members.member("id", &id, isNeeded: true, read: ControlRequest.text) { .string($0) }
    members.text("key", &key, isNeeded: true)
    members.word("phase", &phase, isNeeded: true)
    members.value("value", &value)
    members.count("collapsed", &collapsed)
    members.text("source", &source)
    members.text("at", &at, isNeeded: true)
    members.count("attempt", &attempt)
    members.text("reason", &reason)
    members.text("group", &group, isShort: true)
    members.text("gateway", &gateway, isShort: true)
    members.text("by", &by, isShort: true)
    members.member("of", &of, read: { .some($0.count) }) { _ in nil }
  }

  /// The object's text.
  package var bytes: [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  /// Appends the object, members in the contract's order.
  ///
  /// `replyID` replaces the identifier if the caller's is not a text.
  package func append(to output: inout [UInt8], replyID: JSONValue? = nil) {
    EventText.append(
      id: { JSONWriter.append(replyID ?? .string(id), to: &$0) },
      key: key,
      phase: phase,
      value: value,
      collapsed: collapsed,
      source: source,
      at: { JSONWriter.appendString(at, to: &$0) },
      attempt: attempt,
      reason: reason,
      group: group,
      gateway: gateway,
      by: by,
      to: &output
    )
  }
}

/// Writes an event of a command's life cycle, members in the contract's order.
package enum EventText {
  /// Appends the object; `id` and `at` each append a JSON value, without an intermediate string.
  package static func append(
    id: (inout [UInt8]) -> Void,
    key: String,
    phase: Phase,
    value: JSONValue?,
    collapsed: Int,
    source: String?,
    at: (inout [UInt8]) -> Void,
    attempt: Int,
    reason: String?,
    group: String? = nil,
    gateway: String? = nil,
    by: String? = nil,
    to output: inout [UInt8]
  ) {
    output.append(literal: #"{"id":"#)
    id(&output)
    output.append(literal: #","key":"#)
    JSONWriter.appendString(key, to: &output)
    output.append(literal: phase.member)
    output.append(literal: #","value":"#)
    JSONWriter.append(value ?? .null, to: &output)
    output.append(literal: #","collapsed":"#)
    JSONWriter.appendInteger(Int64(collapsed), to: &output)
    output.append(literal: #","source":"#)
    append(source, to: &output)
    output.append(literal: #","at":"#)
    at(&output)
    if attempt == 1, reason == nil, group == nil, gateway == nil, by == nil {
      return output.append(literal: #","attempt":1,"reason":null}"#)
    }
    output.append(literal: #","attempt":"#)
    JSONWriter.appendInteger(Int64(attempt), to: &output)
    output.append(literal: #","reason":"#)
    append(reason, to: &output)
    append(#","group":"#, group, to: &output)
    append(#","gateway":"#, gateway, to: &output)
    append(#","by":"#, by, to: &output)
    output.append(UInt8(ascii: "}"))
  }

  /// Appends a member that an event has only where there is something to say.
  private static func append(_ name: StaticString, _ text: String?, to output: inout [UInt8]) {
    guard let text else { return }
    output.append(literal: name)
    JSONWriter.appendString(text, to: &output)
  }

  private static func append(_ text: String?, to output: inout [UInt8]) {
    if let text {
      JSONWriter.appendString(text, to: &output)
    } else {
      output.append(literal: "null")
    }
  }
}

extension Phase {
  fileprivate var member: StaticString {
    switch self {
    case .accepted: #","phase":"accepted""#
    case .superseded: #","phase":"superseded""#
    case .unchanged: #","phase":"unchanged""#
    case .cancelled: #","phase":"cancelled""#
    case .rejected: #","phase":"rejected""#
    case .sending: #","phase":"sending""#
    case .sent: #","phase":"sent""#
    case .confirmed: #","phase":"confirmed""#
    case .failed: #","phase":"failed""#
    case .expired: #","phase":"expired""#
    }
  }
}
