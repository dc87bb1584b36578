// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import Glibc
import JSON
import Testing
import Values

@Suite struct PipeSessionTests {
  /// A session, and a gateway with scripted replies.
  private struct Pipe {
    var session = PipeSession(source: "pipe", idPrefix: "p-", lineLimit: 200)

    mutating func write(_ text: String) { session.append(Array(text.utf8).span) }

    mutating func hear(_ line: String) throws {
      let bytes = Array(line.utf8)
      let reply = ControlReply(line: bytes.span)
      session.receive(try #require(reply, "\(line)"), line: bytes[...])
    }

    mutating func hear(_ phase: String, _ id: String, key: String = "lamp/level") throws {
      try hear(Self.event(phase, id, key: key))
    }

    /// An event as the gateway sends it, or as the pipe shows it, with the number of its line.
    static func event(
      _ phase: String,
      _ id: String,
      key: String = "lamp/level",
      line: Int? = nil
    ) -> String {
      #"{"id":\#(id),"key":"\#(key)","phase":"\#(phase)","value":1,"collapsed":0,"source":"pipe","#
        + #""at":"2026-11-21T08:00:00.123Z","attempt":1,"reason":null"#
        + (line.map { #","line":\#($0)}"# } ?? "}")
    }

    /// The flush of a key at the end of the input.
    static func flush(_ key: String) -> String {
      #"{"key":"\#(key)","flush":true,"id":"p-flush-\#(key)"}"#
    }

    /// The gateway's refusal of a request of the pipe itself, or the pipe's for a line.
    static func unknownKey(_ id: String, line: Int, shown: Bool = false) -> String {
      #"{"error":{"code":"unknown_key","message":"none","line":\#(line)},"id":\#(id)"#
        + (shown ? #","line":\#(line)}"# : "}")
    }

    mutating func requests() -> [String] {
      let text = String(decoding: session.requests, as: UTF8.self)
      session.removeRequests(session.requests.count)
      return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        .map(String.init)
    }

    mutating func results() -> [String] {
      String(decoding: session.dequeueResults(), as: UTF8.self).split(separator: "\n")
        .map(String.init)
    }
  }

  @Test func `every change is followed until it is sent`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/level","set":1}"# + "\n")
    #expect(
      pipe.requests() == [
        #"{"key":"lamp/level","set":1,"id":"p-1","source":"pipe","wait":"sent"}"#
      ]
    )
    pipe.session.finish()
    #expect(pipe.requests() == [], "flushed before it was known to be accepted")
    try pipe.hear("accepted", #""p-1""#)
    #expect(pipe.requests() == [Pipe.flush("lamp/level")])
    try pipe.hear(#"{"flushed":1,"id":null}"#)
    try pipe.hear("sending", #""p-1""#)
    #expect(!pipe.session.isDone)
    #expect(pipe.session.openChanges == 1)
    try pipe.hear("sent", #""p-1""#)
    #expect(pipe.session.isDone)
    #expect(pipe.results() == [Pipe.event("accepted", #""p-1""#, line: 1)])
    #expect(pipe.session.tally.sent == 1)
  }

  @Test func `a line with wait shows every phase up to the awaited one`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/level","set":1,"id":7,"source":"me","wait":"confirmed"}"# + "\n")
    #expect(
      pipe.requests() == [
        #"{"key":"lamp/level","set":1,"id":7,"source":"me","wait":"confirmed"}"#
      ]
    )
    pipe.session.finish()
    let phases = ["accepted", "sending", "sent", "confirmed"]
    for phase in phases {
      #expect(!pipe.session.isDone)
      try pipe.hear(phase, "7")
    }
    try pipe.hear(#"{"flushed":0,"id":null}"#)
    #expect(pipe.session.isDone)
    #expect(pipe.results() == phases.map { Pipe.event($0, "7", line: 1) })
  }

  @Test func `a bad line is answered with its number and id, and the others continue`() throws {
    var pipe = Pipe()
    pipe.write("oops\n\n")
    pipe.write(#"{"key":"lamp/level","sot":1,"id":"x"}"# + "\n")
    pipe.write(#"{"get":"*","id":"g"}"# + "\n" + String(repeating: "x", count: 300) + "\n")
    pipe.write(#"{"key":"lamp/level","set":1}"# + "\n")
    // Blank lines replace the lines that are not sent, so that the gateway's line numbers match.
    #expect(pipe.requests().map { $0.isEmpty } == [true, true, true, true, true, false])
    let results = try pipe.results().map { try JSONParser.parse(Array($0.utf8).span) }
    #expect(results.map { $0["error"]?["line"] } == [1, 3, 4, 5])
    #expect(results.map { $0["id"] } == [.null, "x", "g", .null])
    #expect(
      results.map { $0["error"]?["code"]?.string }
        == ["syntax", "unknown_member", "unsupported", "line_too_long"]
    )
    #expect(pipe.session.tally.refused == 4)
    #expect(pipe.session.tally.changes == 1)
  }

  @Test func `a refusal by the gateway is shown and ends the change`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/nope","set":1}"# + "\n" + #"{"key":"lamp/level","set":1,"id":"w"}"#)
    pipe.session.finish()
    _ = pipe.requests()
    let refusal =
      #"{"error":{"code":"cannot_confirm","message":"nothing can confirm","line":2},"id":"w"}"#
    try pipe.hear("rejected", #""p-1""#, key: "lamp/nope")
    try pipe.hear(refusal)
    #expect(pipe.session.isDone, "nothing was accepted, so nothing is flushed")
    #expect(pipe.requests() == [])
    #expect(pipe.results().count == 2)
    #expect(pipe.session.tally.refused == 2)
  }

  @Test func `flush and cancel are answered; the pipe's own flush is not shown`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/level","set":1}"# + "\n" + #"{"key":"*","cancel":true,"id":"c"}"#)
    pipe.session.finish()
    try pipe.hear("accepted", #""p-1""#)
    try pipe.hear(#"{"cancelled":1,"id":"c"}"#)
    try pipe.hear("cancelled", #""p-1""#)
    #expect(!pipe.session.isDone)
    try pipe.hear(#"{"flushed":0,"id":null}"#)
    #expect(pipe.session.isDone)
    #expect(
      pipe.results() == [
        Pipe.event("accepted", #""p-1""#, line: 1),
        #"{"cancelled":1,"id":"c","key":"*","line":2}"#,
      ]
    )
  }

  @Test func `every reply has the number of its line, also for lines that share an id`() throws {
    var pipe = Pipe()
    for (key, id) in [("a/x", #""s""#), ("b/x", #""s""#), ("a/x", #""s""#), ("c/x", "4")] {
      pipe.write(#"{"key":"\#(key)","set":1,"id":\#(id),"wait":"sent"}"# + "\n")
    }
    pipe.write("oops\n" + #"{"flush":"a/*"}"# + "\n")
    try pipe.hear("accepted", #""s""#, key: "a/x")
    try pipe.hear("accepted", #""s""#, key: "b/x")
    try pipe.hear("superseded", #""s""#, key: "a/x")
    try pipe.hear("accepted", #""s""#, key: "a/x")
    try pipe.hear("rejected", "4", key: "c/x")
    try pipe.hear(#"{"flushed":1,"id":null}"#)
    try pipe.hear("sent", #""s""#, key: "a/x")
    try pipe.hear("sent", #""s""#, key: "b/x")
    let results = try pipe.results().map { try JSONParser.parse(Array($0.utf8).span) }
    let shown = results.map { "\($0["line"].map { JSONWriter.text($0) } ?? "-")" }
    #expect(shown == ["5", "1", "2", "1", "3", "4", "6", "3", "2"])
    #expect(results.compactMap { $0["flushed"] == nil ? nil : $0["key"] } == ["a/*"])
    #expect(pipe.session.openChanges == 0)
  }

  @Test func `failed and expired commands are failures, superseded ones are not`() throws {
    var pipe = Pipe()
    for key in ["a/x", "a/x", "b/x", "c/x"] { pipe.write(#"{"key":"\#(key)","set":1}"# + "\n") }
    pipe.session.finish()
    for id in 1...4 { try pipe.hear("accepted", #""p-\#(id)""#) }
    try pipe.hear("superseded", #""p-1""#)
    try pipe.hear("sent", #""p-2""#)
    try pipe.hear("failed", #""p-3""#)
    try pipe.hear("expired", #""p-4""#)
    let tally = pipe.session.tally
    #expect((tally.changes, tally.sent, tally.failed, tally.refused) == (4, 1, 2, 0))
    #expect(pipe.session.openChanges == 0)
  }

  @Test func `changes that share an id are all waited for`() throws {
    var pipe = Pipe()
    for value in 1...3 {
      pipe.write(#"{"key":"lamp/level","set":\#(value),"id":"same"}"# + "\n")
    }
    pipe.session.finish()
    for _ in 1...3 { try pipe.hear("accepted", #""same""#) }
    for _ in 1...2 { try pipe.hear("superseded", #""same""#) }
    try pipe.hear(#"{"flushed":1,"id":null}"#)
    #expect(!pipe.session.isDone)
    try pipe.hear("sent", #""same""#)
    #expect(pipe.session.isDone)
  }

  @Test func `a scene is answered for each of its keys`() throws {
    var pipe = Pipe()
    pipe.write(#"{"scene":"evening"}"# + "\n" + #"{"scene":"evening","dry_run":true}"#)
    pipe.session.finish()
    #expect(
      pipe.requests().first == #"{"scene":"evening","id":"p-1","source":"pipe","wait":"sent"}"#
    )
    for key in ["a/x", "b/x"] {
      let event = Pipe.event("accepted", #""p-1""#, key: key)
      try pipe.hear(event.dropLast() + #","of":2}"#)
    }
    #expect(pipe.requests().count == 2, "the keys are flushed")
    for key in ["a/x", "b/x"] {
      #expect(!pipe.session.isDone)
      try pipe.hear("sent", #""p-1""#, key: key)
      try pipe.hear(#"{"flushed":1,"id":null}"#)
    }
    #expect(pipe.session.isDone)
    let results = try pipe.results().map { try JSONParser.parse(Array($0.utf8).span) }
    #expect(results.map { $0["line"] } == [2, 1, 1])
    #expect(pipe.session.tally.changes == 2)
  }

  @Test func `a scene's key that nothing can confirm ends with sent`() throws {
    var pipe = Pipe()
    pipe.write(#"{"scene":"evening","wait":"confirmed"}"# + "\n")
    for key in ["a/x", "b/x"] {
      let event = Pipe.event("accepted", #""p-1""#, key: key)
      try pipe.hear(event.dropLast() + #","of":2}"#)
    }
    _ = pipe.requests()
    for key in ["a/x", "b/x"] { try pipe.hear("sent", #""p-1""#, key: key) }
    #expect(
      pipe.requests() == ["a/x", "b/x"].map { #"{"describe":"\#($0)","id":"p-scene-\#($0)"}"# }
    )
    try pipe.hear(Self.description("a/x", confirms: false))
    try pipe.hear(Self.description("b/x", confirms: true))
    #expect(pipe.session.openChanges == 1)
    try pipe.hear("confirmed", #""p-1""#, key: "b/x")
    #expect(pipe.session.openChanges == 0)
  }

  @Test func `a scene's key that is gone after it was sent ends with an error`() throws {
    var pipe = Pipe()
    pipe.write("\n" + #"{"scene":"evening","wait":"confirmed"}"# + "\n")
    try pipe.hear("accepted", #""p-2""#, key: "a/x")
    try pipe.hear("sent", #""p-2""#, key: "a/x")
    _ = pipe.results()
    try pipe.hear(Pipe.unknownKey(#""p-scene-a/x""#, line: 3))
    #expect(pipe.results() == [Pipe.unknownKey(#""p-2""#, line: 2, shown: true)])
    #expect(pipe.session.openChanges == 0)
    #expect(pipe.session.tally.refused == 1)
  }

  private static func description(_ key: String, confirms: Bool, id: String = "null") -> String {
    #"{"describe":[{"key":"\#(key)","device":"A","type":"number","policy":{"delay_ms":1},"#
      + #""confirm_ms":\#(confirms ? "5000" : "null")}],"id":\#(id)}"#
  }

  @Test func `a line that waits until its key has settled ends with what others did last`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/level","set":1,"wait":"settled"}"# + "\n")
    pipe.write(#"{"flush":"nope"}"# + "\n")
    let change = #"{"key":"lamp/level","set":1,"id":"p-1","source":"pipe","wait":"sent"}"#
    #expect(pipe.requests() == [#"{"watch":"*"}"#, change, #"{"key":"nope","flush":true}"#])
    try pipe.hear("accepted", #""p-1""#)
    let id = #""p-settling-lamp/level""#
    let questions = ["describe", "pending", "get"].map { #"{"\#($0)":"lamp/level","id":\#(id)}"# }
    #expect(pipe.requests() == questions)
    // The gateway counts one line more than the input.
    try pipe.hear(#"{"error":{"code":"unknown_key","message":"none","line":3},"id":null}"#)
    try pipe.hear("superseded", #""p-1""#)
    try pipe.hear(Self.description("lamp/level", confirms: false, id: id))
    func answer(_ phase: String) throws {
      try pipe.hear(#"{"pending":[],"id":\#(id)}"#)
      try pipe.hear(
        #"{"get":[{"key":"lamp/level","target":2,"actual":null,"phase":"\#(phase)","age_ms":1}],"#
          + #""id":\#(id)}"#
      )
    }
    try answer("sending")
    #expect(pipe.session.openChanges == 1)
    let other = Pipe.event("failed", #""another""#)
    try pipe.hear(#"{"watch":null,"event":\#(other)}"#)
    #expect(pipe.requests() == Array(questions.dropFirst()))
    try answer("failed")
    #expect(pipe.session.openChanges == 0)
    #expect(
      pipe.results() == [
        Pipe.event("accepted", #""p-1""#, line: 1),
        #"{"error":{"code":"unknown_key","message":"none","line":2},"id":null,"line":2}"#,
        Pipe.event("superseded", #""p-1""#, line: 1),
        Pipe.event("failed", #""another""#, line: 1),
      ]
    )
    #expect(pipe.session.tally.failed == 1)
  }

  @Test func `a line that waits until its key has settled ends when the key disappears`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/level","set":1}"# + "\n")
    pipe.write(#"{"key":"lamp/level","set":2,"wait":"settled"}"# + "\n")
    pipe.write(#"{"key":"lamp/level","set":3,"wait":"settled","id":"c"}"# + "\n")
    let ids = [#""p-1""#, #""p-2""#, #""c""#]
    for id in ids { try pipe.hear("accepted", id) }
    for id in ids.dropLast() { try pipe.hear("superseded", id) }
    try pipe.hear("cancelled", #""c""#)
    _ = (pipe.requests(), pipe.results())
    for line in 5...7 { try pipe.hear(Pipe.unknownKey(#""p-settling-lamp/level""#, line: line)) }
    #expect(
      pipe.results() == [
        Pipe.unknownKey(#""p-2""#, line: 2, shown: true),
        Pipe.unknownKey(#""c""#, line: 3, shown: true),
      ]
    )
    #expect(pipe.session.openChanges == 0)
    pipe.session.finish()
    #expect(pipe.requests() == [Pipe.flush("lamp/level")])
    #expect(!pipe.session.isDone)
    try pipe.hear(Pipe.unknownKey(#""p-flush-lamp/level""#, line: 8))
    #expect(pipe.session.isDone)
    #expect(pipe.results() == [])
    #expect(pipe.session.tally.refused == 2)
  }

  @Test func `the flush at the end of a key that is gone ends the pipe`() throws {
    var pipe = Pipe()
    pipe.write(#"{"key":"lamp/level","set":1,"wait":"sent"}"# + "\n")
    pipe.session.finish()
    try pipe.hear("accepted", #""p-1""#)
    try pipe.hear("cancelled", #""p-1""#)
    #expect(!pipe.session.isDone)
    try pipe.hear(Pipe.unknownKey(#""p-flush-lamp/level""#, line: 2))
    #expect(pipe.session.isDone)
    let phases = ["accepted", "cancelled"]
    #expect(pipe.results() == phases.map { Pipe.event($0, #""p-1""#, line: 1) })
    #expect(pipe.session.tally.refused == 0)
  }

  @Test func `a change that another gateway accepted and lost ends with its line`() throws {
    var pipe = Pipe()
    pipe.write("\n" + #"{"key":"lamp/level","set":1,"wait":"sent"}"# + "\n")
    try pipe.hear("accepted", #""p-2""#)
    _ = pipe.results()
    let lost = #"{"error":{"code":"unanswered","message":"ended","line":"#
    try pipe.hear(lost + #"null},"id":"p-2"}"#)
    #expect(pipe.results() == [lost + #"2},"id":"p-2","line":2}"#])
    pipe.session.finish()
    try pipe.hear(#"{"flushed":0,"id":"p-flush-lamp/level"}"#)
    #expect(pipe.session.isDone)
  }

  // With a search of all open changes for each reply, eight times the lines take 64 times as long.
  @Test func `thousands of lines that wait for as many keys have settled in linear time`() {
    let few = Self.timeToSettle(2000)
    #expect(Self.timeToSettle(16_000) < few * 24)
  }

  /// The processor's time until lines have settled that wait for a key each.
  private static func timeToSettle(_ count: Int) -> Duration {
    let start = ownProcessorTime()
    var pipe = Pipe()
    func key(_ number: Int) -> String { "lamp-\(number)/level" }
    func hear(_ phase: Phase, _ number: Int) {
      let event = EventObject(id: "\(number)", key: key(number), phase: phase, value: 1, at: "")
      pipe.session.receive(.event(event, id: .string("p-\(number)")), line: [])
    }
    for number in 1...count {
      pipe.write(#"{"key":"\#(key(number))","set":1,"wait":"settled"}"# + "\n")
      hear(.accepted, number)
    }
    #expect(pipe.session.openChanges == count)
    for number in 1...count {
      hear(.sent, number)
      let key = key(number)
      let id = JSONValue.string("p-settling-\(key)")
      let row = PropertyRow(
        key: key,
        deviceName: "Lamp",
        kind: .boolean,
        policy: .init(delay: .zero)
      )
      let target = TargetRow(
        key: key,
        target: 1,
        actual: nil,
        phase: .sent,
        ageMilliseconds: 1
      )
      let replies: [ControlReply] = [
        .described([row], id: id), .pending([], id: id), .targets([target], id: id),
      ]
      for reply in replies { pipe.session.receive(reply, line: []) }
    }
    #expect(pipe.session.openChanges == 0)
    #expect(pipe.session.tally.sent == count)
    return ownProcessorTime() - start
  }

  @Test func `memory is bounded by the changes in progress, for thousands of lines`() throws {
    var pipe = Pipe()
    for number in 1...2000 {
      pipe.write(#"{"key":"lamp/level","step":1}"# + "\n")
      try pipe.hear("accepted", #""p-\#(number)""#)
      if number > 1 { try pipe.hear("superseded", #""p-\#(number - 1)""#) }
      _ = (pipe.requests(), pipe.results())
      #expect(pipe.session.openChanges == 1)
    }
    #expect(pipe.session.lineCount == 2000)
  }
}

/// The CPU time of the calling thread.
private func ownProcessorTime() -> Duration {
  var time = timespec()
  unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
