// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// What a route recognizes a message by, in `pass` and `urgent`.
package enum MessagePattern: Hashable, Sendable {
  /// `STOP`: the whole payload.
  case payload([UInt8])
  /// `/brightness_step`: a JSON object that has this member.
  case member(JSONPointer)
  /// `{/state: STOP}`: a JSON object whose member has this value.
  case value(JSONPointer, JSONValue)

  /// Whether only the payload as JSON can match.
  var needsDocument: Bool {
    switch self {
    case .payload: false
    case .member, .value: true
    }
  }

  /// Whether a message matches; `document` is its payload as JSON, if it is JSON.
  func matches(_ payload: Span<UInt8>, _ document: JSONValue?) -> Bool {
    switch self {
    case .payload(let bytes): Bytes.areEqual(payload, bytes)
    case .member(let pointer): document.flatMap { pointer.value(in: $0) } != nil
    case .value(let pointer, let value): document.flatMap { pointer.value(in: $0) } == value
    }
  }
}
