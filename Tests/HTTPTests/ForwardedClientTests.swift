// Settle
// SPDX-License-Identifier: Apache-2.0

import HTTP
import Testing

/// What a trusted proxy says about its client.
@Suite struct ForwardedClientTests {
  private func request(_ headers: [(String, String)], method: String = "POST") throws -> HTTPRequest
  {
    HTTPRequest(
      method: method,
      target: try RequestTarget("/v1/flush"),
      headers: headers.map { HTTPHeader($0.0, $0.1) }
    )
  }

  @Test(arguments: [
    ("https://house.example", "house.example", true),
    ("http://house.example", "house.example:443", true),
    ("https://house.example:443", "house.example", true),
    ("HTTP://HOUSE.example", "house.EXAMPLE:80", true),
    ("http://house.example:8123", "house.example:8123", true),
    ("https://x.ui.nabu.casa", "x.ui.nabu.casa", true),
    ("http://[fd00::1]:8123", "[fd00::1]:8123", true),
    ("http://192.168.1.5:8123", "192.168.1.5:8123", true),
    ("http://house.example", "house.example, 172.30.32.1", true),
    ("http://evil.example", "house.example", false), ("null", "house.example", false),
    ("http://house.example:8123", "house.example", false), ("file://", "house.example", false),
    ("http://172.30.32.1", "house.example, 172.30.32.1", false),
  ])
  func `an origin is compared with the host that the proxy says`(
    origin: String,
    host: String,
    isOwn: Bool
  ) throws {
    let request = try request([
      ("Host", "127.0.0.1:8484"), ("X-Forwarded-Host", host), ("Origin", origin),
    ])

    #expect((OriginRule.mistake(in: request, from: ForwardedClient(request)) == nil) == isOwn)
    // From anyone else the header means nothing.
    #expect(OriginRule.mistake(in: request) != nil)
  }

  @Test func `a proxy that names no host has judged the origin itself`() throws {
    let request = try request([("Host", "127.0.0.1:8484"), ("Origin", "https://house.example")])

    #expect(OriginRule.mistake(in: request, from: ForwardedClient(request)) == nil)
    #expect(OriginRule.mistake(in: request) != nil)
  }

  @Test(arguments: ["cross-site", "same-site"])
  func `the browser's word about the site counts behind every proxy`(site: String) throws {
    let change = try request([("X-Forwarded-Host", "house"), ("Sec-Fetch-Site", site)])
    let link = try request([("Sec-Fetch-Site", site)], method: "GET")

    #expect(OriginRule.mistake(in: change, from: ForwardedClient(change)) != nil)
    #expect(OriginRule.mistake(in: link, from: ForwardedClient(link)) == nil)
  }

  @Test(arguments: [
    ([], "10.0.0.1"), (["192.168.1.9"], "192.168.1.9"), (["1.1.1.1, 192.168.1.9"], "192.168.1.9"),
    (["192.168.1.9, 10.0.0.7"], "192.168.1.9"), (["192.168.1.9", "10.0.0.7"], "192.168.1.9"),
    (["10.0.0.7"], "10.0.0.1"), ([" "], "10.0.0.1"),
  ])
  func `the client is the last address that is not trusted`(list: [String], client: String) throws {
    let request = try request(list.map { ("X-Forwarded-For", $0) })

    let found = ForwardedClient.address(in: request, behind: "10.0.0.1") { $0.hasPrefix("10.") }
    #expect(found == client)
  }

  @Test(arguments: [
    (["X-Ingress-Path": "/api/hassio_ingress/abc"], "/api/hassio_ingress/abc"),
    (["X-Forwarded-Prefix": "/settle/"], "/settle"), (["X-Forwarded-Prefix": "/"], ""),
    (["X-Ingress-Path": "//evil.example"], ""), (["X-Ingress-Path": "http://evil.example"], ""),
    (["X-Ingress-Path": "/a\"b"], ""), (["X-Ingress-Path": "/a?b"], ""), ([:], ""),
    (["X-Ingress-Path": "//evil.example", "X-Forwarded-Prefix": "/a"], "/a"),
  ])
  func `a prefix is a path of this server`(headers: [String: String], prefix: String) throws {
    #expect(ForwardedClient(try request(headers.map { ($0.key, $0.value) })).prefix == prefix)
  }

  @Test func `the person's displayed name is preferred`() throws {
    let both = try request([
      ("X-Remote-User-Name", "anna"), ("X-Remote-User-Display-Name", "Anna Müller"),
    ])
    let odd = try request([
      ("X-Remote-User-Name", "anna"),
      ("X-Remote-User-Display-Name", String(repeating: "x", count: 300)),
    ])

    #expect(ForwardedClient(both).person == "Anna Müller")
    #expect(ForwardedClient(odd).person == "anna")
    #expect(ForwardedClient(try request([])).person == nil)
  }
}
