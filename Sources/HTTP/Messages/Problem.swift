// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

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
