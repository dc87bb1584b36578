// Settle
// SPDX-License-Identifier: Apache-2.0

/// The answer to a request.
package struct HTTPResponse {
  /// What follows the head.
  package enum Body {
    case bytes([UInt8])
    /// Bytes as they come, of a length that nobody knows yet.
    case stream(any ResponseStream)
  }

  package var status: Int
  package var headers: [HTTPHeader]
  package var body: Body

  package init(status: Int, headers: [HTTPHeader] = [], body: Body) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// An answer in one piece.
  package init(status: Int = 200, type: String, _ bytes: [UInt8]) {
    self.init(status: status, headers: [HTTPHeader("Content-Type", type)], body: .bytes(bytes))
  }
}

/// Where the body of a long answer comes from.
package protocol ResponseStream: AnyObject {
  /// Gives at most `room` further bytes.
  func next(_ room: Int) -> ResponsePiece
}

/// What a stream has to say when it is asked.
package enum ResponsePiece {
  case bytes([UInt8])
  /// Nothing for now: whoever has more calls ``HTTPExchange/wake()``.
  case wait
  case end
  /// The connection is closed in the middle of the answer, so that nobody takes it for whole.
  case abort
}
