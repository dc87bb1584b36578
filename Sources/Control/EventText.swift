// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

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
    if attempt == 1, reason == nil, group == nil, gateway == nil {
      return output.append(literal: #","attempt":1,"reason":null}"#)
    }
    output.append(literal: #","attempt":"#)
    JSONWriter.appendInteger(Int64(attempt), to: &output)
    output.append(literal: #","reason":"#)
    append(reason, to: &output)
    if let group {
      output.append(literal: #","group":"#)
      JSONWriter.appendString(group, to: &output)
    }
    if let gateway {
      output.append(literal: #","gateway":"#)
      JSONWriter.appendString(gateway, to: &output)
    }
    output.append(UInt8(ascii: "}"))
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
