// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// The files of the panel, and the states of keys.
@Suite(.blocking) struct HTTPPanelScenarios {
  @Test func `what the panel keeps outlives the gateway if there is a journal`() throws {
    let order = #"{"order":["b","a"],"hidden":[]}"#
    for settings in ["journal: {path: journal.db}", ""] {
      let (bench, curl) = try Bench.serving(devices: DeviceText.lamp(), settings: settings)
      let first = try curl("/v1/panel")
      #expect(first.text == "{}")
      #expect(try curl.send("PUT", "/v1/panel", "{").status == 400)
      let long = #"{"x":"\#(String(repeating: "x", count: 65_530))"}"#
      #expect(try curl.send("PUT", "/v1/panel", long).status == 413)
      #expect(try curl("/v1/panel").text == "{}")
      #expect(try curl.send("PUT", "/v1/panel", order).status == 200)
      let kept = try curl("/v1/panel")
      #expect(kept.text == order)
      #expect(kept.headers["settle-kept"] == (settings.isEmpty ? "memory" : "file"))

      try bench.startGateway()
      let again = Curl(port: try bench.running().httpPort())
      #expect(try again("/v1/panel").text == (settings.isEmpty ? "{}" : order))
    }
  }

  private let quick = "{delay: 20ms, max_wait: none}"

  /// A client that streams states over the unix socket, past the head.
  private func stream(_ bench: Bench, _ query: String) throws -> ControlClient {
    let client = try bench.rawHTTP()
    client.send("GET /v1/events?states=true\(query) HTTP/1.1\r\nHost: x\r\n\r")
    while let line = client.nextLine(), line != "retry: 2000" {}
    return client
  }

  /// The data of the next event of that name.
  private func next(_ name: String, _ client: ControlClient) throws -> JSONValue {
    while let line = client.nextLine() {
      guard line == "event: \(name)" else { continue }
      return try JSONParser.parse(String(try #require(client.nextLine()).dropFirst(6)))
    }
    throw GatewayProcess.Failure(description: "no event of the name \(name) came")
  }

  /// The next row that `matches`.
  private func state(
    _ client: ControlClient,
    where matches: (JSONValue) -> Bool
  ) throws -> JSONValue {
    while true {
      let row = try next("state", client)
      if matches(row) { return row }
    }
  }

  @Test func `the page and its files are served without a token, and only once`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.lamp())
    defer { withExtendedLifetime(bench) {} }

    let page = try curl("/")
    #expect(page.status == 200)
    #expect(page.headers["content-type"] == "text/html; charset=utf-8")
    #expect(page.headers["cache-control"] == "no-cache")
    #expect(page.headers["content-security-policy"]?.hasPrefix("default-src 'none'; ") == true)
    #expect(page.headers["x-content-type-options"] == "nosniff")
    #expect(page.text.hasPrefix("<!doctype html>"))
    let tag = try #require(page.headers["etag"])
    for known in [tag, "W/\(tag)", "\"x\", \(tag)", "*"] {
      let again = try curl("/", "-H", "If-None-Match: \(known)")
      #expect(again.status == 304, "\(known)")
      #expect(again.text.isEmpty)
    }
    #expect(try curl("/", "-H", "If-None-Match: \"x\"").status == 200)
    let script = try curl("/panel/panel.js")
    #expect(script.headers["content-type"] == "text/javascript; charset=utf-8")
    #expect(script.headers["etag"] != tag)
    #expect(try curl("/panel/panel.css").headers["content-type"] == "text/css; charset=utf-8")
    #expect(script.headers["cache-control"] == "no-cache")
    // The page names its scripts and styles with a version, and a browser need not ask for those.
    let link = try #require(page.text.firstMatch(of: /src="(panel\/[0-9a-f]+\/panel\.js)"/))
    let fixed = try curl("/\(link.1)")
    #expect(fixed.headers["cache-control"] == "max-age=31536000, immutable")
    #expect(fixed.text == script.text)
    let older = try curl("/panel/0/panel.js")
    #expect(older.headers["cache-control"] == "no-cache" && older.text == script.text)
    #expect(try curl("/panel/../settle.yaml", "--path-as-is").status == 404)
    #expect(try curl("/panel/none.js").status == 404)
    #expect(try curl("/panel/0/none.js").status == 404)
    #expect(try curl.send("POST", "/", "1").status == 405)
  }

  @Test func `long answers are compressed for clients that read it, and events are not`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(200, policy: quick))
    defer { withExtendedLifetime(bench) {} }

    let script = try curl("/panel/panel.js")
    #expect(script.headers["content-encoding"] == nil)
    let packed = try curl("/panel/panel.js", "--compressed")
    #expect(packed.headers["content-encoding"] == "gzip")
    #expect(packed.headers["vary"] == "Accept-Encoding")
    #expect(packed.text == script.text)
    let tag = try #require(packed.headers["etag"])
    #expect(tag != script.headers["etag"])
    #expect(
      try curl("/panel/panel.js", "--compressed", "-H", "If-None-Match: \(tag)").status == 304
    )
    #expect(
      try curl("/panel/icon-192.png", "--compressed", "-I")
        .headers["content-encoding"] == nil
    )

    let all = try curl("/v1/devices", "--compressed")
    #expect(all.headers["content-encoding"] == "gzip")
    #expect(all.json["broker"]?["connected"] == true)
    #expect(all.text.contains(#""id":"dev199""#))
    #expect(try curl("/readyz", "--compressed").headers["content-encoding"] == nil)
  }

  @Test func `a property has its pending value, its policy and its failure`() throws {
    let (bench, curl) = try Bench.serving(
      devices: """
        lamp:
          properties:
            level: {type: number, range: [0, 100], policy: live, \
        command: {topic: cmd/lamp, payload: $value}, state: {topic: state/lamp}, \
        confirm: {within: 3s}}
            slow: {type: number, range: [0, 100], policy: {delay: 60s, max_wait: none}, \
        urgent: [0], command: {topic: cmd/slow, payload: $value}}

        """
    )
    let witness = try bench.witness()

    _ = try curl.send("PUT", "/v1/devices/lamp/slow", "3")
    _ = try curl.send("PUT", "/v1/devices/lamp/slow", "4")
    let slow = try curl("/v1/devices/lamp/slow").json
    #expect(slow["pending"]?["value"] == 4)
    #expect(slow["pending"]?["collapsed"] == 1)
    #expect(slow["pending"]?["waits"] == "quiet")
    #expect(slow["pending"]?["due_ms"]?.double ?? 0 > 30_000)
    #expect(slow["leading"] == false)
    #expect(slow["urgent"] == [0])
    #expect(slow["confirm_ms"] == .null)
    #expect(slow["failure"] == .null)
    #expect(slow["online"] == true)

    #expect(try curl.send("PUT", "/v1/devices/lamp/level?wait=confirmed", "7").status == 502)
    let level = try curl("/v1/devices/lamp/level").json
    #expect(level["leading"] == true)
    #expect(level["confirm_ms"] == 3000)
    #expect(level["pending"] == .null)
    #expect(level["failure"]?["value"] == 7)
    #expect(level["failure"]?["reason"] == "not confirmed within 3s")
    let answer = try curl.start(
      "/v1/devices/lamp/level?wait=confirmed&now",
      ["-X", "PUT", "--json", "8"]
    )
    #expect(witness.waitFor("cmd/lamp", "8"))
    witness.publish("state/lamp", "8")
    #expect(try answer.answer().status == 200)
    #expect(try curl("/v1/devices/lamp/level").json["failure"] == .null)
    #expect(try curl("/v1/devices").json["broker"]?["connected"] == true)
  }

  @Test func `a stream of states has the state of a key after the events that led to it`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.lamp(policy: quick))
    let witness = try bench.witness()
    let client = try stream(bench, "&key=desk-lamp/brightness")

    // Another key is not of interest.
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"ON"}"#)
    #expect(witness.waitFor("settle/desk-lamp/power", "true"))
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":40}"#)
    let byHand = try next("state", client)
    #expect(byHand["key"] == "desk-lamp/brightness")
    #expect(byHand["actual"] == 40)
    #expect(byHand["target"] == 40)
    #expect(byHand["pending"] == .null)

    _ = try curl.send("PUT", "/v1/devices/desk-lamp/brightness", "50")
    while let line = client.nextLine(), !line.contains(#""phase":"accepted""#) {}
    let asked = try next("state", client)
    #expect(asked["target"] == 50)
    #expect(asked["actual"] == 40)
    #expect(try state(client) { $0["phase"] == "sent" }["pending"] == .null)
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":50}"#)
    #expect(try state(client) { $0["phase"] == "confirmed" }["actual"] == 50)
  }

  @Test func `an offline device, a lost broker and reloaded devices are events`() throws {
    let (bench, _) = try Bench.serving(devices: DeviceText.lamp(policy: quick))
    let witness = try bench.witness()
    let client = try stream(bench, "")

    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"offline"}"#)
    #expect(try state(client) { $0["online"] == false }["key"] != nil)
    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"online"}"#)
    _ = try state(client) { $0["online"] == true }

    try bench.running().signal(1)
    _ = try next("devices", client)

    bench.broker.stop()
    #expect(try next("broker", client)["connected"] == false)
  }

  @Test func `devices that are imported are an event, and the list of devices names them`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.lamp(policy: quick),
      settings: "import: {quiet: 100ms}"
    )
    #expect(try curl("/v1/devices").json["import"]?["added_at"] == .null)
    let client = try stream(bench, "")
    let config = #"{"name":"Fan","unique_id":"f","command_topic":"fan/set"}"#
    try bench.witness().publish("homeassistant/switch/fan/config", config, retain: true)

    _ = try next("devices", client)

    let devices = try curl("/v1/devices").json
    #expect(devices["import"]?["added"] == ["fan"])
    #expect(devices["import"]?["added_count"] == 1)
    #expect(devices["import"]?["added_at"]?.double ?? 0 > 1_600_000_000_000)
    #expect(devices["import"]?["refused_count"] == 0)
    #expect(devices["devices"]?.elements?.count == 2)
  }

  @Test func `streams without states are as they were, and the word is checked`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let client = try bench.rawHTTP()
    client.send("GET /v1/events?states=false HTTP/1.1\r\nHost: x\r\n\r")
    while let line = client.nextLine(), line != "retry: 2000" {}

    _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "1")
    _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "2")

    var lines: [String] = []
    while lines.count(where: { $0.hasPrefix("data: ") }) < 6, let line = client.nextLine() {
      lines.append(line)
    }
    #expect(!lines.contains { $0.hasPrefix("event:") })
    #expect(try curl("/v1/events?states=maybe").status == 400)
    #expect(try curl("/v1/events?state=true").status == 400)
  }
}
