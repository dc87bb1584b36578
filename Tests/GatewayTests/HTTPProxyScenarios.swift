// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import TestBroker
import Testing

/// HTTP behind a proxy that is trusted, and from everybody else.
@Suite(.blocking) struct HTTPProxyScenarios {
  private static let token = "0123456789abcdef0123456789abcdef"
  /// What Home Assistant's ingress adds to a browser's request.
  private let ingress = [
    "-H", "Host: homeassistant.local:8123", "-H", "Origin: http://homeassistant.local:8123",
    "-H", "X-Forwarded-Host: homeassistant.local:8123", "-H", "X-Forwarded-Proto: http",
    "-H", "X-Forwarded-For: 192.168.1.9", "-H", "X-Ingress-Path: /api/hassio_ingress/abc",
    "-H", "Sec-Fetch-Site: same-origin",
  ]

  private func set(_ curl: Curl, _ headers: [String], unix: String? = nil) throws -> Answer {
    let socket = unix.map { ["--unix-socket", $0] } ?? []
    return try curl.start(
      "/v1/devices/desk-lamp/brightness",
      ["-X", "PUT", "--json", #"{"value":50}"#] + headers + socket
    ).answer()
  }

  @Test func `the browser behind a trusted proxy needs no token, and may be anywhere`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.lamp(),
      http: ", trusted: 127.0.0.0/8"
    )
    defer { withExtendedLifetime(bench) {} }

    let page = try curl.start("/", ingress).answer()
    #expect(page.status == 200)
    #expect(page.headers["content-security-policy"]?.hasSuffix("frame-ancestors 'self'") == true)
    #expect(try set(curl, ingress).status == 202)
    let description = try curl.start("/v1/openapi.json", ingress).answer().json
    #expect(description["servers"] == .array([.object(["url": "/api/hassio_ingress/abc/"])]))
    // A page of another site, through the same proxy.
    let others = ingress.map { $0.hasPrefix("Origin") ? "Origin: http://evil.example" : $0 }
    let refused = try set(curl, others)
    #expect(refused.status == 403)
    #expect(refused.json["code"] == "wrong_origin")
    let crossing = ingress.map { $0.hasPrefix("Sec-") ? "Sec-Fetch-Site: cross-site" : $0 }
    #expect(try set(curl, crossing).status == 403)
    // nginx, as most people write it: the Host is the gateway's, the Origin is the browser's.
    #expect(try set(curl, ["-H", "Origin: https://house.example"]).status == 202)
    #expect(try bench.running().log().contains("peer=192.168.1.9"))
  }

  @Test func `from everybody else the headers of a proxy change nothing`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.lamp(),
      http: ", trusted: 10.0.0.1"
    )
    defer { withExtendedLifetime(bench) {} }

    #expect(try curl.start("/", ingress + ["-H", "Accept: text/html"]).answer().status == 421)
    #expect(try set(curl, ingress).status == 421)
    let local = ingress.filter { $0 != "-H" && !$0.hasPrefix("Host") }.flatMap { ["-H", $0] }
    #expect(try set(curl, local).json["code"] == "wrong_origin")
    let page = try curl("/")
    #expect(page.headers["content-security-policy"]?.hasSuffix("frame-ancestors 'none'") == true)
    // The files of the page are no secret; a browser sends an origin for each module.
    #expect(try curl("/panel/panel.js", "-H", "Origin: https://house.example").status == 200)
  }

  @Test func `events name the person whom a trusted proxy names, and no other`() throws {
    for (trusted, person) in [("127.0.0.0/8", "Anna Löwe"), ("10.0.0.1", nil)] {
      let (bench, curl) = try Bench.serving(
        devices: DeviceText.lamp(),
        http: ", trusted: \(trusted)"
      )
      defer { withExtendedLifetime(bench) {} }
      let names = ["-H", "X-Remote-User-Name: anna", "-H", "X-Remote-User-Display-Name: Anna Löwe"]

      let value = ["-X", "PUT", "--json", #"{"value":50,"wait":"sent"}"#]
      let event = try curl.start("/v1/devices/desk-lamp/brightness", value + names).answer().json
      #expect(event["by"]?.string == person)
      #expect(event["source"] == "http")
      // What the request itself says counts for nothing: anyone can write it.
      let lines = ["-H", "Content-Type: application/x-ndjson", "--data-binary"]
      let line = #"{"key":"desk-lamp/brightness","set":51,"source":"panel","by":"Bert"}"#
      let batch = try curl.start("/v1/changes", lines + [line] + names).answer()
      #expect(batch.json["source"] == "panel")
      #expect(batch.json["by"]?.string == person)
      let reply = try bench.client().ask(#"{"log":"desk-lamp/brightness"}"#)
      let log = JSONWriter.text(reply)
      #expect(log.contains("Anna") == (person != nil))
      #expect(!log.contains("Bert"))
    }
  }

  @Test func `a page that is refused says what to write where`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.lamp())
    defer { withExtendedLifetime(bench) {} }

    let page = try curl("/", "-H", "Host: <house>.example:80", "-H", "Accept: text/html,*/*")
    #expect(page.status == 421)
    #expect(page.headers["content-type"] == "text/html; charset=utf-8")
    #expect(page.text.contains("hosts: [&lt;house&gt;.example]"))
    #expect(page.text.contains("trusted: [127.0.0.1]"))
    #expect(!page.text.contains("<house>"))
    let program = try curl("/", "-H", "Host: house.example")
    #expect(program.headers["content-type"] == "application/problem+json")
  }

  @Test func `a gateway that other machines reach through a proxy refuses all who come directly`()
    throws
  {
    let bench = try Bench.running(
      devices: DeviceText.lamp(),
      settings:
        "http: {listen: [\"127.0.0.1:0\", \"0.0.0.0:0\", \"unix:h.sock\"], trusted: [10.0.0.1, unix]}\n"
    )
    let curl = Curl(port: try bench.running().httpPort())

    for headers in [[], ["-H", "Authorization: Bearer \(Self.token)"]] {
      let refused = try set(curl, headers)
      #expect(refused.status == 401)
      #expect(refused.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
    }
    #expect(try curl("/healthz").status == 200)
    // A proxy on the Unix socket passes on what its clients send.
    let socket = bench.folder + "/h.sock"
    #expect(try set(curl, ingress, unix: socket).status == 202)
    let others = ingress.map { $0.hasPrefix("Origin") ? "Origin: http://evil.example" : $0 }
    #expect(try set(curl, others, unix: socket).status == 403)
  }
}
