// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Changes under conditions: executed once, and not after a time.
@Suite(.blocking) struct HTTPConditionScenarios {
  private let patient = "{delay: 60s, max_wait: none}"

  private func target(_ curl: Curl) throws -> JSONValue? {
    try curl("/v1/devices/dev0/level").json["target"]
  }

  private func time(_ curl: Curl) throws -> Int64 {
    let health = try curl("/healthz").json
    guard case .integer(let time)? = health["time_ms"] else {
      throw GatewayProcess.Failure(description: "no time: \(health)")
    }
    return time
  }

  @Test func `a repeated request is answered as before and changes nothing`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: patient))
    defer { withExtendedLifetime(bench) {} }
    _ = try curl.send("PUT", "/v1/devices/dev0/level", "40")

    let step = { (key: String) in
      try curl.send("POST", "/v1/devices/dev0/level/step", "5", "-H", "Idempotency-Key: \(key)")
    }
    let first = try step("a")
    let second = try step("a")
    #expect(first.status == 202)
    #expect(second.status == 202)
    #expect(second.text == first.text)
    #expect(try target(curl) == 45)
    #expect(try step("b").json["value"] == 50)

    let other = try curl.send(
      "POST",
      "/v1/devices/dev0/level/step",
      "6",
      "-H",
      "Idempotency-Key: a"
    )
    #expect(other.status == 422)
    #expect(other.json["code"] == "key_reused")
    #expect(try target(curl) == 50)
    // Errors are repeated too.
    for _ in 0..<2 {
      let wrong = try curl.send(
        "PUT",
        "/v1/devices/dev0/level",
        "-1",
        "-H",
        "Idempotency-Key: c"
      )
      #expect(wrong.status == 422)
      #expect(wrong.json["code"] == "bad_value")
    }
  }

  @Test func `a batch with a key is executed once and as a whole`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: patient))
    let lines = #"{"key":"dev0/level","set":40}"# + "\n" + #"{"key":"dev0/level","step":5}"# + "\n"
    let head =
      "POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
      + "Idempotency-Key: a\r\nContent-Length: \(lines.utf8.count)\r\n\r\n"

    // The connection breaks within the second line.
    let broken = try bench.rawHTTP()
    broken.send(bytes: Array((head + lines.prefix(40)).utf8))
    broken.endInput()
    _ = broken.isClosed()
    #expect(try target(curl) == nil || target(curl) == .null)

    let post = {
      try curl.send(
        "POST",
        "/v1/changes",
        lines,
        "-H",
        "Content-Type: application/x-ndjson",
        "-H",
        "Idempotency-Key: a"
      )
    }
    let first = try post()
    let second = try post()
    #expect(first.status == 200)
    #expect(first.lines.map { $0["value"] } == [40, 45])
    #expect(second.text == first.text)
    #expect(try target(curl) == 45)
  }

  @Test func `an answer is kept for a client whose connection broke before it`() throws {
    // Answers wait for the commit.
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: patient),
      settings: "journal: {path: journal.db, commit: 300ms}"
    )
    _ = try curl.send("PUT", "/v1/devices/dev0/level", "40")
    for (key, path, body) in [
      ("a", "/v1/devices/dev0/level/step", "5"),
      ("b", "/v1/changes", #"{"key":"dev0/level","step":5}"#),
    ] {
      var lost: ControlClient? = try bench.rawHTTP()
      lost?.send(
        "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
          + "Idempotency-Key: \(key)\r\nContent-Length: \(body.utf8.count)\r\n\r"
      )
      lost?.send(bytes: Array(body.utf8))
      let again = { try curl.send("POST", path, body, "-H", "Idempotency-Key: \(key)") }
      // It is being executed.
      let early = try again()
      lost = nil
      let answer = try early.status == 409 ? Self.awaitAnswer(again) : early
      #expect(answer.status < 300)
    }
    #expect(try target(curl) == 50)
  }

  /// Repeats a request while the first one is being executed.
  private static func awaitAnswer(_ ask: () throws -> Answer) throws -> Answer {
    while true {
      let answer = try ask()
      guard answer.status == 409 else { return answer }
      #expect(answer.json["code"] == "in_progress")
    }
  }

  @Test func `a request after its time changes nothing, then and later`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: patient))
    defer { withExtendedLifetime(bench) {} }
    let put = { (value: Int, notAfter: Int64, key: String) in
      try curl.send(
        "PUT",
        "/v1/devices/dev0/level",
        "\(value)",
        "-H",
        "Settle-Not-After: \(notAfter)",
        "-H",
        "Idempotency-Key: \(key)"
      )
    }
    let now = try time(curl)
    #expect(try put(1, now + 600_000, "a").status == 202)
    let late = try put(2, now - 1, "b")
    #expect(late.status == 410)
    #expect(late.json["code"] == "too_late")
    guard case .integer(let later)? = late.json["time_ms"] else {
      Issue.record("no time: \(late.text)")
      return
    }
    #expect(later >= now)
    #expect(try target(curl) == 1)
    // The refusal is an answer too: the request cannot be executed by a later repetition.
    #expect(try put(2, now + 600_000, "b").status == 410)
    #expect(try target(curl) == 1)
    // What was executed in time is answered as before.
    #expect(try put(1, now - 1, "a").status == 202)
    for path in ["/v1/scenes/evening", "/v1/flush", "/v1/changes"] {
      let answer = try curl(path, "-X", "POST", "-H", "Settle-Not-After: \(now - 1)")
      #expect(answer.status == 410, "\(path)")
    }
    #expect(try curl("/v1/devices", "-H", "Settle-Not-After: \(now - 1)").status == 200)
    #expect(try curl("/v1/flush", "-X", "POST", "-H", "Settle-Not-After: soon").status == 400)
  }

  @Test func `a stream begins with the time of healthz`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: patient))
    let before = try time(curl)
    let client = try bench.rawHTTP()
    client.send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r")
    while let line = client.nextLine(), line != "event: time" {}
    let head = try JSONParser.parse(String(try #require(client.nextLine()).dropFirst(6)))
    guard case .integer(let time)? = head["time_ms"], case .integer(let since)? = head["since_ms"]
    else {
      Issue.record("no time: \(head)")
      return
    }
    #expect(since <= before)
    #expect(before <= time)
    #expect(try time <= self.time(curl))
  }
}
