// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import JSON
import Testing

@Suite struct ProblemTests {
  @Test func `a problem is an RFC 9457 document with extra members`() throws {
    let problem = Problem(
      422,
      "bad_value",
      "300 is outside 0 to 254",
      members: [.init("allowed", "0 to 254")],
      headers: [HTTPHeader("Retry-After", "5")]
    )

    let response = problem.response
    guard case .bytes(let bytes) = response.body else {
      Issue.record("no bytes")
      return
    }
    let json = try JSONParser.parse(bytes.span)
    #expect(response.status == 422)
    #expect(response.headers.contains(HTTPHeader("Content-Type", "application/problem+json")))
    #expect(response.headers.contains(HTTPHeader("Retry-After", "5")))
    #expect(json["type"] == "urn:settle:problem:bad_value")
    #expect(json["title"] == "Unprocessable Content")
    #expect(json["status"] == 422)
    #expect(json["detail"] == "300 is outside 0 to 254")
    #expect(json["code"] == "bad_value")
    #expect(json["allowed"] == "0 to 254")
  }

  @Test func `a closing message is a whole HTTP answer`() throws {
    let text = String(
      decoding: Problem(503, "limit", "full", headers: [HTTPHeader("Retry-After", "5")])
        .closingMessage,
      as: UTF8.self
    )
    let body = try #require(text.split(separator: "\r\n\r\n").last)

    #expect(text.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
    #expect(text.contains("\r\nRetry-After: 5\r\n"))
    #expect(text.contains("\r\nContent-Length: \(body.utf8.count)\r\n"))
    #expect(text.contains("\r\nConnection: close\r\n"))
  }

  @Test func `a header is found in any case, and a media type without its parameters`() throws {
    var request = HTTPRequest(method: "PUT", target: try RequestTarget("/"))
    request.headers = [
      HTTPHeader("content-TYPE", " Application/JSON ; charset=utf-8"),
      HTTPHeader("Content-Length", "12"),
    ]
    #expect(request.mediaType == "application/json")
    #expect(request.contentLength == 12)
    #expect(request.hasBody)
  }
}
