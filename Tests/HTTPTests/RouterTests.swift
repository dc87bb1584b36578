// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HTTP
import JSON
import Testing

@Suite struct RouterTests {
  @Test(arguments: [
    ("GET", "/v1/devices", Endpoint.devices),
    ("HEAD", "/v1/devices", .devices),
    ("GET", "/v1/devices/desk-lamp", .device("desk-lamp")),
    ("GET", "/v1/devices/desk-lamp/brightness", .property("desk-lamp/brightness")),
    ("PUT", "/v1/devices/desk-lamp/brightness?wait=sent", .property("desk-lamp/brightness")),
    ("POST", "/v1/devices/desk-lamp/brightness/step", .step("desk-lamp/brightness")),
    ("POST", "/v1/devices/desk-lamp/power/toggle", .toggle("desk-lamp/power")),
    ("POST", "/v1/changes", .changes),
    ("GET", "/v1/pending", .pending),
    ("GET", "/v1/history?key=desk-lamp/power", .history),
    ("PUT", "/v1/panel", .panelDocument),
    ("GET", "/v1/status", .status),
    ("POST", "/v1/flush", .flush),
    ("POST", "/v1/cancel", .cancel),
    ("GET", "/v1/events", .events),
    ("GET", "/v1/openapi.json", .openAPI),
    ("GET", "/metrics", .metrics),
    ("GET", "/healthz", .health),
    ("GET", "/readyz", .readiness),
    ("GET", "http://localhost:8484/v1/devices", .devices),
    ("GET", "/v1/%64evices", .devices),
    ("GET", "/", .panel(nil)),
    ("HEAD", "/panel/panel.js", .panel("panel.js")),
    ("GET", "/panel/1a2b/panel.js", .panel("panel.js", version: "1a2b")),
  ])
  func `a path and a method name an endpoint`(
    method: String,
    target: String,
    expected: Endpoint
  ) throws {
    #expect(try Router.endpoint(method, RequestTarget(target).path) == expected)
  }

  @Test(arguments: [
    ("/v1/device", "/v1/devices"), ("/v1/Events", "/v1/events"), ("/metric", "/metrics"),
    ("/v1/devices/a/b/c", nil), ("/v1/devices/a/b/step/d", nil), ("/v1", nil), ("/panel", nil),
    ("/panel/", nil), ("/panel/a/b/c", nil), ("//", nil),
    ("/v1/devices/", "/v1/devices"), ("/v1//devices", "/v1/devices"),
    ("/v1/pending/x", "/v1/pending"),
  ])
  func `an unknown path is not found, with a near miss`(target: String, meant: String?) throws {
    let problem = try #require(throws: Problem.self) {
      try Router.endpoint("GET", RequestTarget(target).path)
    }

    #expect(problem.status == 404)
    #expect(problem.json["suggestion"]?.string == meant)
  }

  @Test(arguments: [
    ("DELETE", "/v1/devices", "GET, HEAD, OPTIONS"),
    ("POST", "/v1/devices/a/b", "GET, HEAD, PUT, OPTIONS"),
    ("GET", "/v1/flush", "POST, OPTIONS"),
    ("put", "/v1/devices/a/b", "GET, HEAD, PUT, OPTIONS"),
  ])
  func `a method that a path does not allow is refused with the allowed ones`(
    method: String,
    target: String,
    allowed: String
  ) throws {
    let problem = try #require(throws: Problem.self) {
      try Router.endpoint(method, RequestTarget(target).path)
    }

    #expect(problem.status == 405)
    #expect(problem.headers == [HTTPHeader("Allow", allowed)])
  }
}
