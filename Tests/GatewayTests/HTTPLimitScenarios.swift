// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// HTTP under pressure: limits, tokens, slow clients, shutdown.
@Suite(.blocking) struct HTTPLimitScenarios {
  private let quick = "{delay: 20ms, max_wait: none}"
  private let slow = "{delay: 60s, max_wait: none}"

  @Test func `half a head is closed after five seconds, and others are served meanwhile`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let start = EventLoop.now()
    let halves = try (0..<10).map { number in
      let client = try bench.rawHTTP()
      client.send(
        bytes: Array(
          "GET /v1/devices HTTP/1.1\r\nHost: x\r\nX-\(number)".utf8.prefix(10 + 5 * number)
        )
      )
      return client
    }

    #expect(try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "3").status == 200)
    #expect(!halves.contains { $0.isClosed(within: .zero) })
    for half in halves { #expect(half.nextLine() == "HTTP/1.1 408 Request Timeout\r") }
    for half in halves { #expect(half.isClosed()) }

    #expect(start.duration(to: EventLoop.now()) >= .seconds(5))
  }

  @Test func `a client that sends its head byte by byte gets no more time`() throws {
    let (bench, _) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let client = try bench.rawHTTP()

    client.send("GET /healthz HTTP/1.1\r")
    var answer: String?
    var number = 0
    // The head never ends: only its own limit can end it.
    while answer == nil, number < 240, client.send(bytes: Array("X-\(number): y\r\n".utf8)) {
      number += 1
      answer = client.nextLine(within: .milliseconds(250))
    }

    #expect(answer == "HTTP/1.1 408 Request Timeout\r")
  }

  @Test func `a request that is too large is refused before it is stored`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: quick),
      settings: "limits: {line: 1KiB}"
    )
    let before = try bench.running().residentBytes()
    let path = "/v1/devices/dev0/level"
    let body = bench.folder + "/body"
    try TextFile.write(String(repeating: "1", count: 5000), to: body)

    let stated = try curl.send("PUT", path, "@\(body)")
    let chunked = try curl.send("PUT", path, "@\(body)", "-H", "Transfer-Encoding: chunked")
    let head = try curl(path, "-H", "X: \(String(repeating: "x", count: 9000))")
    let line = try curl(
      "/v1/changes",
      "-H",
      "Content-Type: application/x-ndjson",
      "--data-binary",
      "@\(body)"
    )
    for answer in [stated, chunked] {
      #expect(answer.status == 413)
      #expect(answer.json["code"] == "body_too_long")
    }
    #expect(head.status == 431)
    #expect(head.json["code"] == "head_too_long")
    #expect(line.status == 200)
    #expect(line.lines.map { $0["error"]?["code"] } == ["line_too_long"])
    #expect(chunked.json["detail"] == "the body has more than 1024 bytes, which is the limit")
    let answers = try PrometheusText.parse(try curl("/metrics").text)["settle_http_responses_total"]
    #expect(answers?.samples[#"settle_http_responses_total{code="413"}"#] == 2)
    #expect(answers?.samples[#"settle_http_responses_total{code="431"}"#] == 1)

    let flood = try bench.rawHTTP()
    flood.send("PUT \(path) HTTP/1.1\r\nHost: x\r")
    flood.send("Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r")
    let chunk = Array("10000\r\n".utf8) + Array(repeating: 0x31, count: 65_536) + [0x0D, 0x0A]
    var rounds = 0
    while rounds < 10_000, flood.send(bytes: chunk) { rounds += 1 }
    #expect(rounds < 10_000)
    #expect(try bench.running().residentBytes() - before < 16 << 20)
    #expect(try curl.send("PUT", path + "?wait=sent", "3").status == 200)
  }

  @Test func `a long document is written while its client reads`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1000, policy: quick))
    let devices = try curl("/v1/devices")
    let before = try bench.running().residentBytes()
    let clients = try (0..<40).map { number in
      let client = try bench.rawHTTP()
      client.send("GET \(number < 20 ? "/v1/devices" : "/metrics") HTTP/1.1\r\nHost: x\r\n\r")
      return client
    }
    #expect(try curl("/healthz").status == 200)
    #expect(try bench.running().residentBytes() - before < 8 << 20)

    #expect(devices.headers["content-type"] == "application/json")
    guard case .array(let rows) = devices.json["devices"] else {
      Issue.record("no devices")
      return
    }
    #expect(rows.map { $0["id"]?.string } == (0..<1000).map { "dev\($0)" })
    #expect(devices.json["broker"]?["connected"] == true)
    let families = try PrometheusText.parse(try curl("/metrics").text)
    #expect(families["settle_changes_total"]?.samples.count == 1000)
    #expect(families["settle_expired_total"]?.samples.count == 1000)
    #expect(families["process_open_fds"]?.samples.count == 1)
    #expect(try curl("/metrics", "--head").status == 200)
    // It has ended its side, and receives the whole document.
    let ended = try bench.rawHTTP()
    ended.send("GET /metrics HTTP/1.1\r\nHost: x\r\n\r")
    ended.endInput()
    var last: String?
    while let line = ended.nextLine() { last = line }
    #expect(last == "\r")
    withExtendedLifetime(clients) {}
  }

  @Test func `the figures of the process are those of the kernel`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))

    let families = try PrometheusText.parse(try curl("/metrics").text)

    func figure(_ name: String) throws -> Double { try #require(families[name]?.samples[name]) }
    let resident = try bench.running().residentBytes()
    let stated = try figure("process_resident_memory_bytes")
    #expect((Double(resident) / 2..<Double(resident) * 2).contains(stated))
    #expect((5..<1000).contains(try figure("process_open_fds")))
    #expect(try figure("process_max_fds") >= figure("process_open_fds"))
  }

  @Test func `clients above the limit are refused with the reason`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: quick),
      settings: "limits: {http_clients: 1}"
    )
    // An event stream is neither idle nor stalled.
    var streams = [try bench.rawHTTP()]
    streams[0].send("GET /v1/events HTTP/1.1\r\nHost: x\r\n\r")
    #expect(streams[0].nextLine() == "HTTP/1.1 200 OK\r")

    let refused = try curl("/healthz")
    #expect(refused.status == 503)
    #expect(refused.json["code"] == "limit")
    #expect(try bench.running().lines(containing: "too many clients").count == 1)
    // The control socket and MQTT go on.
    let control = try bench.client()
    #expect(try control.ask(#"{"key":"dev0/level","set":5}"#)["phase"] == "accepted")
    streams = []
    #expect(try (0..<50).contains { _ in try curl("/healthz").status == 200 })
  }

  @Test(arguments: [
    String(repeating: "GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n", count: 40),
    "PUT /v1/devices/dev0/level HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
      + "Content-Length: 100\r\n\r\n1",
    "POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
      + "Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n",
    "POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
      + "Content-Length: 43\r\n\r\n{\"key\":\"dev#/level\",\"set\":1,\"wait\":\"sent\"}\n",
  ])
  func `clients that do not read, do not finish or wait keep nobody out`(text: String) throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(10, policy: slow),
      settings: "limits: {http_clients: 8}"
    )
    var clients: [ControlClient] = []
    for round in 0..<5 {
      for device in "0123456789" {
        let client = try bench.rawHTTP()
        client.send(bytes: Array(String(text.map { $0 == "#" ? device : $0 }).utf8))
        clients.append(client)
      }
      #expect(try curl("/healthz").status == 200)
      #expect(try curl.send("PUT", "/v1/devices/dev1/level", "\(round)").status == 202)
    }
    #expect(try bench.running().lines(containing: "too many clients").isEmpty)
  }

  @Test func `a batch that completes no line for ten seconds is ended`() throws {
    let (bench, _) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let client = try bench.rawHTTP()
    client.send("POST /v1/changes HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r")
    client.send("Transfer-Encoding: chunked\r\n\r")
    var answer: String?
    var number = 0
    while answer == nil, number < 240, client.send(bytes: Array("1\r\n \r\n".utf8)) {
      number += 1
      answer = client.nextLine(within: .milliseconds(250))
    }

    #expect(answer == "HTTP/1.1 408 Request Timeout\r")
  }

  @Test(arguments: [true, false])
  func `half heads, kept open or closed, keep nobody out`(areKept: Bool) throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    var halves: [ControlClient] = []
    for round in 0..<10 {
      for _ in 0..<40 {
        let half = try bench.rawHTTP()
        half.send(bytes: Array("GET /v1/devices HTTP/1.1\r\nHost: x\r\nX-".utf8))
        if areKept { halves.append(half) }
      }
      let answer = try curl.send("PUT", "/v1/devices/dev0/level?wait=sent", "\(round)")
      #expect(answer.status == 200)
    }
    #expect(try bench.running().lines(containing: "too many clients").isEmpty)
    if let first = halves.first {
      #expect(first.nextLine() == "HTTP/1.1 503 Service Unavailable\r")
    }
  }

  @Test func `clients between two requests make room for others`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: slow),
      settings: "limits: {http_clients: 4}"
    )
    let clients = try (0..<4).map { _ in
      let client = try bench.rawHTTP()
      client.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r")
      #expect(client.nextLine() == "HTTP/1.1 200 OK\r")
      return client
    }

    for _ in 0..<3 { #expect(try curl("/healthz").status == 200) }
    #expect(clients[0].isClosed())
    clients[3].send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r")
    while let line = clients[3].nextLine(), !line.hasPrefix("HTTP/1.1 200") {}
  }

  @Test func `waiting requests leave room for others`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(4, policy: slow),
      settings: "limits: {http_clients: 4}"
    )
    let waiting = try (0..<3).map {
      try curl.start("/v1/devices/dev\($0)/level?wait=sent", ["-X", "PUT", "--json", "1"])
    }
    let control = try bench.client()
    while case .array(let rows) = try control.ask(#"{"pending":"*","id":1}"#)["pending"],
      rows.count < 3
    {}

    let refused = try curl.send("PUT", "/v1/devices/dev3/level?wait=sent", "1")
    #expect(refused.status == 503)
    #expect(try curl.send("PUT", "/v1/devices/dev3/level", "1").status == 202)
    #expect(try curl("/v1/flush", "-X", "POST").json["flushed"] == 4)
    for call in waiting { #expect(try call.answer().status == 200) }
    #expect(try curl.send("PUT", "/v1/devices/dev3/level?wait=sent&now", "1").status == 200)
  }

  @Test func `a key for which there is no room is refused with 429, a known one is not`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(2, policy: slow),
      settings: "limits: {pending: 1}"
    )

    #expect(try curl.send("PUT", "/v1/devices/dev0/level", "1").status == 202)
    let refused = try curl.send("PUT", "/v1/devices/dev1/level", "1")
    #expect(refused.status == 429)
    #expect(refused.json["code"] == "limit")
    #expect(try curl.send("PUT", "/v1/devices/dev0/level", "2").status == 202)
    withExtendedLifetime(bench) {}
  }

  @Test func `pipelined requests are answered in order`() throws {
    let (bench, _) = try Bench.serving(devices: DeviceText.levels(1, policy: quick))
    let client = try bench.rawHTTP()
    let body = #"{"value":5,"wait":"sent"}"#
    client.send(
      bytes: Array(
        ("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
          + "PUT /v1/devices/dev0/level HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
          + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
          + "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").utf8
      )
    )
    var text = ""
    while let line = client.nextLine() { text += line + "\n" }
    let places = [#""alive""#, #""phase":"sent""#, #""ready""#].map { text.firstRange(of: $0) }
    #expect(places.allSatisfy { $0 != nil }, "\(text)")
    #expect(text.split(separator: "HTTP/1.1 200 OK").count == 3)
  }

  @Test func `the token is needed over TCP, not on the socket, and is never logged`() throws {
    let token = "0123456789abcdef-secret-token"
    let folder = try TemporaryFolder.make("settle-token")
    defer { TemporaryFolder.remove(folder) }
    try TextFile.write(token + "\n", to: folder + "/token")
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: quick),
      http: ", token_file: \(folder)/token"
    )
    let good = "Authorization: Bearer \(token)"

    let missing = try curl("/v1/devices")
    #expect(missing.status == 401)
    #expect(missing.headers["www-authenticate"] == #"Bearer realm="settle""#)
    #expect(try curl("/v1/nothing").status == 401)
    #expect(try curl("/healthz").status == 200)
    #expect(try curl("/readyz").status == 200)
    #expect(try curl("/v1/devices", "-H", good).status == 200)
    let description = try curl("/v1/openapi.json", "-H", good).json
    #expect(description["security"] == .array([.object(["token": .array([])])]))
    #expect(try curl("/v1/devices", "-H", "Authorization: Bearer \(token)x").status == 401)
    // On one connection, which is quicker than a guess a second on any machine.
    let guesses = try curl(
      "/v1/devices?guess=[1-40]",
      "--no-globoff",
      "-H",
      "Authorization: Bearer wrong-guess"
    )
    let said = guesses.text.split(whereSeparator: \.isNewline)
    #expect(said.contains { $0.contains("HTTP/1.1 429") })
    #expect(said.contains("Retry-After: 1"))
    let local = try bench.rawHTTP()
    local.send("GET /v1/openapi.json HTTP/1.1\r\nHost: anything\r\nOrigin: http://proxy\r\n\r")
    #expect(local.nextLine() == "HTTP/1.1 200 OK\r")
    while let line = local.nextLine(), line != "\r" {}
    #expect(local.nextLine()?.contains(#""security":[],"#) == true)
    let log = try bench.running().log()
    #expect(log.contains("reason=unauthorized peer=127.0.0.1"))
    #expect(!log.contains("secret-token") && !log.contains("wrong-guess"))
    #expect(try bench.running().lines(containing: "HTTP request refused").count <= 4)
  }

  @Test func `without descriptors clients are refused, and commands are still sent`() throws {
    let bench = try Bench(
      devices: DeviceText.levels(1, policy: quick),
      settings: "http: {listen: [\"127.0.0.1:0\", \"unix:h.sock\"]}"
    )
    try bench.broker.start()
    let witness = try bench.witness()
    try bench.launchGateway(descriptorLimit: 48)
    #expect(witness.waitFor("settle/status", "online"))

    var clients: [ControlClient] = []
    for _ in 0..<60 { clients.append(try bench.rawHTTP()) }
    #expect(try bench.running().waitForLine(containing: "no file descriptors left") != nil)
    witness.publish("settle/dev0/level/set", "5")

    #expect(witness.waitFor("cmd/dev0", #"{"v":5}"#))
    let before = try bench.running().processorTicks()
    #expect(clients[0].nextLine(within: .milliseconds(300)) == nil)
    #expect(try bench.running().processorTicks() - before <= 5)
  }

  @Test func `shutdown answers waiting requests, ends the streams and removes the socket`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(2, policy: slow))
    let waiting = try curl.start("/v1/devices/dev0/level?wait=sent", ["-X", "PUT", "--json", "8"])
    let stream = try curl.start("/v1/events", ["-N"])
    #expect(stream.waitForLine(containing: "retry:") != nil)
    let control = try bench.client()
    while try control.ask(#"{"pending":"*","id":1}"#)["pending"] == [] {}
    let gateway = try bench.running()

    gateway.signal(SIGTERM)

    let answer = try waiting.answer()
    #expect(answer.status == 200)
    #expect(answer.json["phase"] == "sent")
    let end = try stream.answer()
    #expect(end.text.contains(#""phase":"sent""#))
    #expect(gateway.waitForExit() == 0)
    #expect(!ControlClient.accepts(bench.folder + "/h.sock"))
    var status = stat()
    #expect(unsafe lstat(bench.folder + "/h.sock", &status) != 0)
  }

  @Test func `requests that still wait at the shutdown timeout are answered`() throws {
    let (bench, curl) = try Bench.serving(
      devices: DeviceText.levels(1, policy: slow),
      settings: "shutdown: {timeout: 300ms}"
    )
    bench.broker.stop(signal: SIGKILL)
    let waiting = try curl.start("/v1/devices/dev0/level?wait=sent", ["-X", "PUT", "--json", "8"])
    let control = try bench.client()
    while try control.ask(#"{"pending":"*","id":1}"#)["pending"] == [] {}
    let gateway = try bench.running()

    gateway.signal(SIGTERM)

    let answer = try waiting.answer()
    #expect(answer.status == 503)
    #expect(answer.json["code"] == "stopping")
    #expect(gateway.waitForExit() == 1)
  }

  @Test func `the metrics can be read by a parser that is not ours`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.lamp(policy: quick))
    _ = try curl.send("PUT", "/v1/devices/desk-lamp/brightness?wait=sent", "40")
    _ = try curl.send("PUT", "/v1/devices/desk-lamp/brightness", "999")

    let answer = try curl("/metrics")
    #expect(answer.headers["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
    let families = try PrometheusText.parse(answer.text)
    let sent = try #require(families["settle_sent_total"])
    #expect(sent.kind == "counter")
    #expect(sent.samples[#"settle_sent_total{device="desk-lamp"}"#] == 1)
    #expect(families["settle_changes_total"]?.samples.values.reduce(0, +) == 1)
    #expect(families["settle_rejected_total"]?.samples.values.reduce(0, +) == 1)
    #expect(families["settle_messages_dropped_total"]?.samples.values.reduce(0, +) == 0)
    #expect(families["settle_broker_connected"]?.samples.values.first == 1)
    #expect(families["settle_pending_values"]?.kind == "gauge")
    for name in ["settle_lateness_seconds", "settle_acknowledgement_seconds"] {
      let histogram = try #require(families[name])
      #expect(histogram.kind == "histogram")
      #expect(histogram.samples["\(name)_count"] == 1)
      #expect(histogram.samples[#"\#(name)_bucket{le="+Inf"}"#] == 1)
    }
    withExtendedLifetime(bench) {}
  }
}
