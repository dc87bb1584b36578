// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// HTTP, every endpoint, good and bad.
@Suite(.blocking) struct HTTPScenarios {
  private let slow = "{delay: 60s, max_wait: none}"
  private let quick = "{delay: 50ms, max_wait: none}"

  @Test func `devices lists the devices and their state`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":40}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "40"))

    let all = try curl("/v1/devices")
    #expect(all.status == 200)
    #expect(all.headers["content-type"] == "application/json")
    #expect(all.headers["x-content-type-options"] == "nosniff")
    guard case .array(let devices) = all.json["devices"] else {
      Issue.record("no devices: \(all.text)")
      return
    }
    #expect(devices.count == 1)
    let device = try curl("/v1/devices/desk-lamp").json
    #expect(device["id"] == devices[0]["id"])
    #expect(device["online"] == true)
    let brightness = try #require(device["properties"]?["brightness"])
    #expect(brightness["key"] == "desk-lamp/brightness")
    #expect(brightness["type"] == "integer")
    #expect(brightness["range"] == [0, 254])
    #expect(brightness["actual"] == 40)
    #expect(brightness["target"] == 40)
    #expect(brightness["can_confirm"] == true)
    #expect(brightness["delay_ms"] == 150)
    let property = try curl("/v1/devices/desk-lamp/brightness")
    #expect(property.status == 200)
    #expect(property.json["actual"] == 40)
    let head = try curl("/v1/devices", "--head")
    #expect(head.status == 200)
    #expect(head.headers["content-length"].flatMap { Int($0) } ?? 0 > 500)
    #expect(head.text.isEmpty)
  }

  @Test func `changes are accepted at once, collapse, and are sent as the last one`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: "{delay: 1h, max_wait: none}")
    )
    let witness = try bench.witness()

    let set = try curl.send("PUT", "/v1/devices/dev0/level", "40", "-H", "X-Other: 1")
    let named = try curl.send(
      "PUT",
      "/v1/devices/dev0/level?source=script",
      #"{"value":41,"id":"mine","source":"body"}"#
    )
    let step = try curl.send("POST", "/v1/devices/dev0/level/step", "5")
    let last = try curl.send("POST", "/v1/devices/dev0/level/step?now=true", #"{"step":-1.0}"#)

    #expect(set.status == 202)
    #expect(set.json["phase"] == "accepted")
    #expect(set.json["source"] == "http")
    #expect(named.json["id"] == "mine")
    #expect(named.json["source"] == "script")
    #expect(step.json["value"] == 46)
    #expect(last.status == 202)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":45}"#])
    #expect(witness.waitFor { $0.contains { $0.text.contains(#""collapsed":3"#) } })
  }

  @Test func `a request may wait for the broker or for the device`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.lamp(policy: quick))
    let witness = try bench.witness()

    let sent = try curl.send("PUT", "/v1/devices/desk-lamp/brightness?wait=sent", "40")
    #expect(sent.status == 200)
    #expect(sent.json["phase"] == "sent")

    let call = try curl.start(
      "/v1/devices/desk-lamp/brightness?wait=confirmed",
      ["-X", "PUT", "--json", "50"]
    )
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":50}"#))
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":50}"#)
    let confirmed = try call.answer()
    #expect(confirmed.status == 200)
    #expect(confirmed.json["phase"] == "confirmed")

    let same = try curl.send("PUT", "/v1/devices/desk-lamp/brightness?wait=confirmed", "50")
    #expect(same.status == 200)
    #expect(same.json["phase"] == "unchanged")

    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF"}"#)
    #expect(witness.waitFor("settle/desk-lamp/power", "false"))
    let toggled = try curl("/v1/devices/desk-lamp/power/toggle?wait=sent", "-X", "POST")
    #expect(toggled.status == 200)
    #expect(toggled.json["value"] == true)
  }

  @Test func `a change that failed is a problem with its event`() throws {
    let (bench, curl) = try Bench.serving(
      devices: """
        lamp:
          properties:
            level: {type: number, range: [0, 100], policy: {delay: 50ms}, \
        command: {topic: cmd/lamp, payload: $value}, state: {topic: state/lamp}, \
        confirm: {within: 100ms}}
            slow: {type: number, range: [0, 100], policy: {delay: 60s, max_wait: none}, \
        command: {topic: cmd/slow, payload: $value}}

        """
    )
    let failed = try curl.send("PUT", "/v1/devices/lamp/level?wait=confirmed", "7")
    #expect(failed.status == 502)
    #expect(failed.headers["content-type"] == "application/problem+json")
    #expect(failed.json["code"] == "failed")
    #expect(failed.json["event"]?["phase"] == "failed")

    let call = try curl.start("/v1/devices/lamp/slow?wait=sent", ["-X", "PUT", "--json", "1"])
    #expect(try awaitPending(curl) == 1)
    let newer = try curl.send("PUT", "/v1/devices/lamp/slow", "2")
    #expect(newer.status == 202)
    let superseded = try call.answer()
    #expect(superseded.status == 409)
    #expect(superseded.json["code"] == "superseded")

    let other = try curl.start("/v1/devices/lamp/slow?wait=sent", ["-X", "PUT", "--json", "3"])
    #expect(try awaitPending(curl, value: 3) == 1)
    #expect(try curl("/v1/cancel?key=lamp/*", "-X", "POST").json["cancelled"] == 1)
    #expect(try other.answer().json["code"] == "cancelled")

    bench.broker.stop(signal: SIGKILL)
    let expired = try curl.send("PUT", "/v1/devices/lamp/slow?wait=sent&now&ttl=50ms", "4")
    #expect(expired.status == 504)
    #expect(expired.json["code"] == "expired")
    #expect(try curl("/readyz").status == 503)
    #expect(try curl("/healthz").status == 200)
  }

  @Test func `the status is what the control socket says, with the lanes`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(3, policy: slow)
        .replacing("  properties:", with: "  lane: mesh\n  properties:"),
      settings: "lanes: {mesh: {window: 7}}"
    )
    let status = try curl("/v1/status").json
    #expect(status["running"] == true)
    #expect(status["devices"]?["count"] == 3)
    guard case .array(let lanes)? = status["queue"]?["lanes"], lanes.count == 1 else {
      Issue.record("one lane: \(status)")
      return
    }
    #expect(lanes[0]["name"] == "mesh")
    #expect(lanes[0]["window"]?["size"] == 7)
    let client = try bench.client()
    client.send(#"{"status":true}"#)
    let told = try client.next()
    for name in ["version", "settings", "devices", "journal", "warnings", "problems", "socket"] {
      #expect(status[name] != nil, "\(name)")
      #expect(status[name] == told["status"]?[name], "\(name)")
    }
    #expect(try curl("/v1/status", "-X", "POST").status == 405)
    #expect(try curl("/v1/status?key=dev0").status == 400)
  }

  @Test func `pending values are listed, flushed and cancelled by pattern`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(3, policy: slow))
    for number in 0..<3 {
      _ = try curl.send("PUT", "/v1/devices/dev\(number)/level", "\(number)")
    }

    guard case .array(let rows) = try curl("/v1/pending").json["pending"] else {
      Issue.record("no rows")
      return
    }
    #expect(rows.map { $0["key"] } == ["dev0/level", "dev1/level", "dev2/level"])
    #expect(rows.map { $0["value"] } == [0, 1, 2])
    #expect(rows.map { $0["waits"] } == ["quiet", "quiet", "quiet"])
    guard case .array(let one) = try curl("/v1/pending?key=dev1/*").json["pending"] else {
      Issue.record("no rows")
      return
    }
    #expect(one.count == 1)
    #expect(try curl("/v1/flush?key=dev0/level", "-X", "POST").json["flushed"] == 1)
    #expect(try curl.send("POST", "/v1/cancel", #"{"key":"dev1/*"}"#).json["cancelled"] == 1)
    #expect(try curl.send("POST", "/v1/flush", "{}").json["flushed"] == 1)
    let witness = try bench.witness()
    #expect(witness.waitFor("cmd/dev0", #"{"v":0}"#))
    #expect(witness.waitFor("cmd/dev2", #"{"v":2}"#))
    #expect(witness.texts(on: "cmd/dev1").isEmpty)
  }

  @Test func `of many changes in one request a bad one is answered and passed over`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(2, policy: quick))
    let lines = [
      #"{"key":"dev0/level","set":1,"id":"a","wait":"sent"}"#, "no JSON", "",
      #"{"key":"dev9/level","set":1,"id":2}"#, #"{"key":"dev1/level","set":99999999}"#,
      #"{"watch":"*"}"#, #"{"key":"dev1/level","set":5,"id":"last"}"#, #"{"flush":"dev1/*"}"#,
    ]

    let answer = try curl(
      "/v1/changes",
      "-H",
      "Content-Type: application/x-ndjson",
      "--data-binary",
      lines.joined(separator: "\n")
    )

    #expect(answer.status == 200)
    #expect(answer.headers["content-type"] == "application/x-ndjson")
    let replies = answer.lines
    #expect(
      replies.filter { $0["id"] == "a" }.map { $0["phase"] } == ["accepted", "sending", "sent"]
    )
    let errors = replies.compactMap { $0["error"] }
    #expect(errors.map { $0["code"] } == ["syntax", "unsupported"])
    #expect(errors.map { $0["line"] } == [2, 6])
    #expect(replies.first { $0["id"] == 2 }?["phase"] == "rejected")
    #expect(replies.first { $0["value"] == 99_999_999 }?["phase"] == "rejected")
    #expect(replies.first { $0["id"] == "last" }?["phase"] == "accepted")
    #expect(replies.contains { $0["flushed"] == 1 })
    #expect(try bench.witness().waitFor("cmd/dev1", #"{"v":5}"#))
  }

  @Test func `changes of one request take effect as they arrive, not at its end`() throws {
    let (bench, _) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let client = try bench.rawHTTP()

    client.send(
      "POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
        + "Transfer-Encoding: chunked\r\n\r"
    )
    let line = #"{"key":"dev0/level","set":7,"id":"early"}"# + "\n"
    client.send(bytes: Array("\(String(line.utf8.count, radix: 16))\r\n\(line)\r\n".utf8))
    #expect(try bench.witness().waitFor("cmd/dev0", #"{"v":7}"#))
    client.send(bytes: Array("0\r\n\r\n".utf8))

    #expect(client.nextLine() == "HTTP/1.1 200 OK\r")
    while let header = client.nextLine(), header != "\r" {}
    #expect(try client.next()["id"] == "early")
  }

  @Test func `ten thousand changes of one request are all answered`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let body = (1...10_000).map { #"{"key":"dev0/level","set":\#($0)}"# }.joined(separator: "\n")
    try TextFile.write(body, to: bench.folder + "/body")

    let answer = try curl(
      "/v1/changes",
      "-H",
      "Content-Type: application/x-ndjson",
      "-H",
      "Expect:",
      "--data-binary",
      "@\(bench.folder)/body"
    )

    #expect(answer.lines.count == 10_000)
    #expect(answer.lines.allSatisfy { $0["phase"] == "accepted" })
    #expect(try bench.witness().waitFor("cmd/dev0", #"{"v":10000}"#))
  }

  /// From version 1.0 on the library says so itself.
  @Test func `a request without the header Host is refused`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let change = ["-X", "PUT", "--json", "5", "-H", "Host:"]

    #expect(try curl("/v1/devices", "-H", "Host:").status == 400)
    #expect(try curl.start("/v1/devices/dev0/level", change).answer().status == 400)
    #expect(try bench.witness().texts(on: "cmd/dev0").isEmpty)
  }

  @Test func `an invalid request is a problem with its status`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))

    for bad in Self.badRequests {
      let answer = try curl.start(bad.path, bad.arguments).answer()
      #expect(answer.status == bad.status, "\(bad): \(answer.text)")
      #expect(answer.headers["content-type"] == "application/problem+json", "\(bad)")
      #expect(answer.json["status"] == .integer(Int64(bad.status)), "\(bad)")
      #expect(answer.json["code"] == .string(bad.code), "\(bad): \(answer.text)")
      #expect(answer.json["detail"]?.string?.isEmpty == false, "\(bad)")
      #expect((answer.headers["allow"] != nil) == (bad.status == 405), "\(bad)")
    }
    #expect(try bench.witness().texts(on: "cmd/dev0").isEmpty)
  }

  /// The pending values, once one is there, or there as wished.
  private func awaitPending(_ curl: Curl, value: Int64? = nil) throws -> Int {
    for _ in 0..<200 {
      guard case .array(let rows) = try curl("/v1/pending").json["pending"] else { continue }
      if let value, !rows.contains(where: { $0["value"] == .integer(value) }) { continue }
      if !rows.isEmpty { return rows.count }
    }
    return 0
  }

  private struct BadRequest {
    let arguments: [String]
    let path: String
    let status: Int
    let code: String

    init(_ row: (arguments: [String], path: String, status: Int, code: String)) {
      (arguments, path, status, code) = row
    }
  }

  private static let badRequests: [BadRequest] = [
    .init((["-X", "PUT", "--json", "9999999"], "/v1/devices/dev0/level", 422, "bad_value")),
    .init((["-X", "PUT", "--json", "\"4o\""], "/v1/devices/dev0/level", 422, "bad_type")),
    .init(
      (
        ["-X", "PUT", "--json", #"{"value":1,"vaule":2}"#], "/v1/devices/dev0/level", 422,
        "unknown_member"
      )
    ),
    .init(
      (["-X", "PUT", "--json", #"{"value":1,"ttl":5}"#], "/v1/devices/dev0/level", 422, "bad_type")
    ),
    // The query counts more, and the body must be right all the same.
    .init(
      (
        ["-X", "PUT", "--json", #"{"value":1,"wait":"now"}"#], "/v1/devices/dev0/level?wait=sent",
        422, "bad_value"
      )
    ),
    .init((["-X", "PUT", "--json", "{"], "/v1/devices/dev0/level", 400, "syntax")),
    .init((["-X", "PUT", "--json", ""], "/v1/devices/dev0/level", 400, "syntax")),
    .init((["-X", "PUT", "--json", "1"], "/v1/devices/dev0/levle", 404, "unknown_key")),
    .init((["-X", "PUT", "--json", "1"], "/v1/devices/dev0/a%2Fb", 404, "bad_key")),
    .init((["-X", "PUT", "--json", "1"], "/v1/devices/dev0/level?wait=conf", 422, "bad_value")),
    .init(
      (
        ["-X", "PUT", "--json", "1"], "/v1/devices/dev0/level?wait=confirmed", 422, "cannot_confirm"
      )
    ),
    .init(
      (["-X", "PUT", "--json", "1"], "/v1/devices/dev0/level?wiat=sent", 400, "unknown_parameter")
    ),
    .init(
      (["-X", "PUT", "--json", "1"], "/v1/devices/dev0/level?now&now", 400, "unknown_parameter")
    ),
    .init((["-X", "PUT", "-d", "1"], "/v1/devices/dev0/level", 415, "media_type")),
    .init(
      (
        ["-X", "PUT", "-H", "Content-Type: text/plain", "-d", "1"], "/v1/devices/dev0/level", 415,
        "media_type"
      )
    ),
    .init((["-X", "POST", "--json", "\"a\""], "/v1/devices/dev0/level/step", 422, "bad_type")),
    .init((["-X", "POST", "--json", "5"], "/v1/devices/dev0/level/step", 409, "no_base")),
    .init((["-X", "POST"], "/v1/devices/dev0/level/toggle", 422, "unsupported")),
    .init((["-X", "DELETE"], "/v1/devices/dev0/level", 405, "method_not_allowed")),
    .init((["-X", "POST"], "/v1/cancel", 422, "missing_key")),
    .init((["-X", "POST"], "/v1/flush?key=dev7/level", 404, "unknown_key")),
    .init((["-X", "POST", "--json", "[]"], "/v1/flush", 422, "bad_type")),
    .init(
      (["-X", "POST", "--json", #"{"key":"b"}"#], "/v1/flush?key=*", 422, "several_operations")
    ),
    .init((["-X", "POST", "--json", "{}"], "/v1/changes?x=1", 400, "unknown_parameter")),
    .init(([], "/v1/devices/dev1", 404, "unknown_key")),
    .init(([], "/v1/devcies", 404, "not_found")),
    .init(([], "/v1/devices?limit=3", 400, "unknown_parameter")),
    .init(([], "/%00", 400, "bad_request")),
    .init(([], "/v1/events?key=dev7/level", 404, "unknown_key")),
    .init(([], "/v1/events?key=%2B", 422, "bad_key")),
    .init(([], "/v1/pending?key=", 422, "bad_key")),
    .init(([], "/v1/history", 422, "missing_key")),
    .init(([], "/v1/history?key=dev7/level", 404, "unknown_key")),
    .init(([], "/v1/history?limit=3", 400, "unknown_parameter")),
    .init(
      ([], "/v1/history?key=a" + String(repeating: "&key=a", count: 64), 422, "limit")
    ),
    .init((["-d", "x", "-X", "GET"], "/v1/devices", 400, "bad_request")),
    .init((["-H", "Host: evil.example"], "/v1/devices", 421, "wrong_host")),
    .init((["-H", "Host: evil.example"], "/healthz", 421, "wrong_host")),
    .init((["-H", "Origin: http://evil.example"], "/v1/devices", 403, "wrong_origin")),
    .init((["-X", "POST", "-H", "Origin: null"], "/v1/flush", 403, "wrong_origin")),
    .init((["-X", "POST", "-H", "Sec-Fetch-Site: same-site"], "/v1/flush", 403, "wrong_origin")),
    .init(
      (
        [
          "-H", "Transfer-Encoding: chunked", "-H", "Content-Length: 3", "-X", "POST", "--json",
          "1",
        ], "/v1/flush", 400, "bad_request"
      )
    ),
  ]
}
