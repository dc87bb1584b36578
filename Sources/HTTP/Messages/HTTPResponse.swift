// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

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

/// One header field.
package struct HTTPHeader: Hashable, Sendable {
  package var name: String
  package var value: String

  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }

  /// Whether the name is one: a token, without blanks in front of the colon.
  var isNamed: Bool {
    !name.isEmpty
      && name.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "a")...UInt8(ascii: "z"):
          true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  /// Whether this is the header `name`, in any case.
  package func isCalled(_ name: String) -> Bool {
    self.name.utf8.elementsEqual(name.utf8) { $0.lowercasedASCII == $1.lowercasedASCII }
  }
}

extension UInt8 {
  /// An ASCII letter in lower case; any other byte unchanged.
  var lowercasedASCII: UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
  }
}

/// Why a request failed: an RFC 9457 problem document.
package struct Problem: Error, Hashable, Sendable {
  package var status: Int
  /// A short stable word for programs.
  package var code: String
  /// A sentence for people: what was found, where, what is allowed.
  package var detail: String
  /// Further members, such as `allowed` or `suggestion`.
  package var members: [JSONValue.Member]
  package var headers: [HTTPHeader]

  package init(
    _ status: Int,
    _ code: String,
    _ detail: String,
    members: [JSONValue.Member] = [],
    headers: [HTTPHeader] = []
  ) {
    self.status = status
    self.code = code
    self.detail = detail
    self.members = members
    self.headers = headers
  }

  /// The media type of the document.
  package static let mediaType = "application/problem+json"

  /// The reason phrase of the status.
  package var title: String {
    switch status {
    case 400: "Bad Request"
    case 401: "Unauthorized"
    case 403: "Forbidden"
    case 404: "Not Found"
    case 405: "Method Not Allowed"
    case 408: "Request Timeout"
    case 409: "Conflict"
    case 410: "Gone"
    case 413: "Content Too Large"
    case 415: "Unsupported Media Type"
    case 421: "Misdirected Request"
    case 422: "Unprocessable Content"
    case 429: "Too Many Requests"
    case 431: "Request Header Fields Too Large"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    default: status < 500 ? "Request Refused" : "Gateway Trouble"
    }
  }

  package var json: JSONValue {
    .object(
      [
        .init("type", .string("urn:settle:problem:\(code)")), .init("title", .string(title)),
        .init("status", .integer(Int64(status))), .init("detail", .string(detail)),
        .init("code", .string(code)),
      ] + members
    )
  }

  package var response: HTTPResponse {
    HTTPResponse(
      status: status,
      headers: [HTTPHeader("Content-Type", Self.mediaType)] + headers,
      body: .bytes(JSONWriter.bytes(json))
    )
  }

  /// A complete response with which the connection is closed.
  package var closingMessage: [UInt8] {
    let body = JSONWriter.bytes(json)
    var lines = ["HTTP/1.1 \(status) \(title)", "Content-Type: \(Self.mediaType)"]
    lines += headers.map { "\($0.name): \($0.value)" }
    lines += ["Content-Length: \(body.count)", "Connection: close"]
    return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
  }
}
