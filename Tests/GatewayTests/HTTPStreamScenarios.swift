// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Server-sent events.
@Suite(.blocking) struct HTTPStreamScenarios {
  private let quick = "{delay: 20ms, max_wait: none}"

  /// One event of a stream.
  private struct Event {
    let number: UInt64
    let object: JSONValue
  }

  /// A client that streams over the unix socket.
  private func stream(_ bench: Bench, _ query: String = "", header: String = "") throws
    -> ControlClient
  {
    let client = try bench.rawHTTP()
    client.send(
      "GET /v1/events\(query) HTTP/1.1\r\nHost: x\r\(header.isEmpty ? "" : "\n\(header)\r")"
    )
    client.send("\r")
    #expect(client.nextLine() == "HTTP/1.1 200 OK\r")
    while let line = client.nextLine(), line != "\r" {}
    while let line = client.nextLine(), line != "retry: 2000" {}
    return client
  }

  /// The next event; chunk sizes and blank lines are passed over.
  private func next(_ client: ControlClient) throws -> Event {
    while let line = client.nextLine() {
      guard line.hasPrefix("id: "), let number = UInt64(line.dropFirst(4)) else { continue }
      let data = try #require(client.nextLine())
      return Event(number: number, object: try JSONParser.parse(String(data.dropFirst(6))))
    }
    throw GatewayProcess.Failure(description: "no event came")
  }

  @Test func `every phase is an event with the next number`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(2, policy: quick))
    let client = try stream(bench)

    _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "1")
    _ = try curl.send("PUT", "/v1/devices/dev0/nothing", "1")
    _ = try curl.send("PUT", "/v1/devices/dev1/level", "9999999")

    let events = try (0..<5).map { _ in try next(client) }
    #expect(
      events.map { $0.object["phase"] } == ["accepted", "sending", "sent", "rejected", "rejected"]
    )
    for (older, newer) in zip(events, events.dropFirst()) {
      #expect(newer.number == older.number + 1)
    }
  }

  @Test func `a pattern chooses keys, and an alias counts as its property`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(3, policy: quick))
    let client = try stream(bench, "?key=dev1/*")

    for number in 0..<3 {
      _ = try curl.send("PUT", "/v1/devices/dev\(number)/level?wait=sent", "4")
    }

    let events = try (0..<3).map { _ in try next(client) }
    #expect(events.allSatisfy { $0.object["key"] == "dev1/level" })
  }

  @Test func `a client that reconnects gets the missed events, or a gap`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: quick),
      settings: "limits: {events: 16}"
    )
    var client = try stream(bench)
    _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "1")
    let last = try (0..<3).map { _ in try next(client) }[2]
    client = try stream(bench)
    _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "2")

    client = try stream(bench, header: "Last-Event-ID: \(last.number)")
    let missed = try (0..<3).map { _ in try next(client) }
    #expect(missed.map(\.number) == [1, 2, 3].map { last.number + $0 })
    #expect(missed.map { $0.object["value"] } == [2, 2, 2])

    for value in 3...12 { _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "\(value)") }
    client = try bench.rawHTTP()
    client.send("GET /v1/events HTTP/1.1\r\nHost: x\r\nLast-Event-ID: \(last.number)\r\n\r")
    while let line = client.nextLine(), line != "event: gap" {}
    let gap = try JSONParser.parse(String(try #require(client.nextLine()).dropFirst(6)))
    let first = try next(client)
    #expect(gap["after"] == .integer(Int64(last.number)))
    #expect(gap["until"] == .integer(Int64(first.number)))
    #expect(first.number > last.number + 1)
    #expect(first.object["phase"] == "sent" || first.object["value"] != 3)
  }

  @Test func `clients that never read are dropped and delay no others`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: "{delay: 5ms, max_wait: none}"),
      settings: "limits: {http_clients: 800, events: 64}"
    )
    Self.allowManyDescriptors()
    let deaf = try (0..<50).map { _ in try stream(bench) }
    let keen = try (0..<500).map { _ in try stream(bench) }
    let gateway = try bench.running()
    #expect(try metric("settle_http_event_streams", curl) == 550)
    let before = gateway.residentBytes()
    let control = try bench.client()

    var value = 0
    while try metric("settle_http_event_streams", curl) > 500, value < 60 {
      value += 1
      // Events without a pause between them, and of some size.
      let id = String(repeating: "i", count: 250)
      let bad = (0..<20).map { _ in #"{"key":"dev0/level","set":-1,"id":"\#(id)"}"# + "\n" }
      control.send(bytes: Array(bad.joined().utf8))
      for _ in bad { #expect(try control.next()["phase"] == "rejected") }
      for client in keen { client.discard() }
      let sent = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "\(value)")
      #expect(sent.json["phase"] == "sent")
    }

    #expect(try metric("settle_http_event_streams", curl) == 500)
    #expect(try metric(#"settle_http_event_streams_dropped_total{reason="slow"}"#, curl) == 50)
    #expect(gateway.lines(containing: "the client does not read").count == 50)
    #expect(gateway.residentBytes() - before < 32 << 20)
    _ = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", #"{"value":77777,"id":"end"}"#)
    for client in [keen[0], keen[250], keen[499]] {
      while true {
        let event = try next(client)
        if event.object["id"] == "end", event.object["phase"] == "sent" { break }
      }
    }
    withExtendedLifetime(deaf) {}
  }

  @Test func `idle streams cost no time, and leave room for commands`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: quick),
      settings: "limits: {http_clients: 8}"
    )
    let clients = try (0..<6).map { _ in try stream(bench) }
    for client in clients { while client.nextLine(within: .milliseconds(50)) != nil {} }

    let before = try bench.running().processorTicks()
    #expect(clients[0].nextLine(within: .milliseconds(500)) == nil)
    #expect(try bench.running().processorTicks() - before <= 5)
    let refused = try curl("/v1/events")
    #expect(refused.status == 503)
    #expect(refused.headers["retry-after"] == "5")
    #expect(try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "3").status == 200)
  }

  @Test func `a stream whose client has disconnected makes room at once`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: quick),
      settings: "limits: {http_clients: 4}"
    )
    for _ in 0..<10 {
      let client = try stream(bench)
      #expect(try metric("settle_http_event_streams", curl) >= 1)
      withExtendedLifetime(client) {}
    }
    #expect(try metric("settle_http_event_streams", curl) <= 1)
  }

  /// One sample of the metrics.
  private func metric(_ name: String, _ curl: Curl) throws -> Double {
    let text = try curl("/metrics").text
    let line = text.split(separator: "\n").first { $0.hasPrefix(name + " ") }
    return try #require(line?.split(separator: " ").last.flatMap { Double($0) }, "\(name)")
  }

  private static func allowManyDescriptors() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard unsafe getrlimit(resource, &limit) == 0, limit.rlim_cur < 4096 else { return }
    limit.rlim_cur = min(limit.rlim_max, 4096)
    unsafe setrlimit(resource, &limit)
  }
}
