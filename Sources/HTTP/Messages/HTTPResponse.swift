// Settle
// SPDX-License-Identifier: Apache-2.0

/// The response to a request.
package struct HTTPResponse {
  /// The body.
  package enum Body {
    case bytes([UInt8])
    /// A stream of unknown length.
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

  /// A complete response.
  package init(status: Int = 200, type: String, _ bytes: [UInt8]) {
    self.init(status: status, headers: [HTTPHeader("Content-Type", type)], body: .bytes(bytes))
  }
}

/// The source of a streamed body.
package protocol ResponseStream: AnyObject {
  /// Whether only the client ends it. The stream then sees itself to clients that do not read.
  var isEndless: Bool { get }

  /// Returns some more bytes; those above `room` are copied once more.
  func next(_ room: Int) -> ResponsePiece
}

extension ResponseStream {
  package var isEndless: Bool { false }
}

/// The next piece of a stream.
package enum ResponsePiece {
  case bytes([UInt8])
  /// Nothing for now; the stream calls ``HTTPExchange/wake()`` when it has more.
  case wait
  case end
  /// Close the connection, so that the client sees an incomplete response.
  case abort
}
